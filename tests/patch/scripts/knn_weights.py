"""Neighbours of iris, alike or by distance, alone and behind a scaler."""

from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
for weights in ("uniform", "distance"):
    for k in (1, 4, 11):
        model = Pipeline([("scale", StandardScaler()), ("knn", KNeighborsClassifier(k, weights=weights))])
        print(weights, k, round(model.fit(X_train, y_train).score(X_test, y_test), 4))
