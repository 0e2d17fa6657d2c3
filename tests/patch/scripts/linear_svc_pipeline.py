"""Scaling matters: wine by a linear support vector machine."""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

X, y = load_wine(return_X_y=True)
for loss in ("squared_hinge", "hinge"):
    model = make_pipeline(StandardScaler(), LinearSVC(loss=loss, C=0.05, max_iter=100000, random_state=0))
    print(loss, cross_val_score(model, X, y, cv=5).round(4))
    print(model.fit(X, y)[-1].intercept_.round(2))
