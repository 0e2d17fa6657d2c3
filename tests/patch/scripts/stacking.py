"""Regressors and classifiers stacked."""

from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor, StackingClassifier, StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

X, y = load_diabetes(return_X_y=True)
stack = StackingRegressor(
    [("ols", LinearRegression()), ("rf", RandomForestRegressor(10, random_state=42))],
    final_estimator=RidgeCV(),
)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=42)
print(round(stack.fit(X_train, y_train).score(X_test, y_test), 4))
X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=42)
stack = StackingClassifier(
    [("svc", SVC()), ("lin", make_pipeline(StandardScaler(), LinearSVC(random_state=42)))],
    final_estimator=LogisticRegression(),
)
print(round(stack.fit(X_train, y_train).score(X_test, y_test), 4))
