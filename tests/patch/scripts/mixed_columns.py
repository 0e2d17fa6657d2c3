"""A frame with numbers, gaps and categories."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

rng = np.random.RandomState(0)
frame = pd.DataFrame({"age": rng.normal(40, 12, 600), "fare": rng.exponential(30, 600)})
frame["port"], frame["sex"] = rng.choice(list("CQS"), 600), rng.choice(["female", "male"], 600)
score = 0.03 * frame["fare"] - 0.02 * frame["age"] + 1.5 * (frame["sex"] == "female")
y = (score + rng.logistic(size=600) > 1).astype(int)
frame.loc[rng.rand(600) < 0.1, "age"] = np.nan
numbers = Pipeline([("gaps", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
before = ColumnTransformer(
    [("num", numbers, ["age", "fare"]), ("cat", OneHotEncoder(handle_unknown="ignore"), ["port", "sex"])]
)
model = Pipeline([("before", before), ("classifier", LogisticRegression())])
X_train, X_test, y_train, y_test = train_test_split(frame, y, test_size=0.2, random_state=0)
print(round(model.fit(X_train, y_train).score(X_test, y_test), 4))
search = GridSearchCV(model, {"classifier__C": [0.1, 1.0, 10.0, 100.0]}, cv=5).fit(X_train, y_train)
print(search.best_params_, round(search.best_score_, 4))
