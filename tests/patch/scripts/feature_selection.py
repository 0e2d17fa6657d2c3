"""Columns chosen by models: recursively, and by a sparse penalty."""

from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
print(RFE(SVC(kernel="linear"), n_features_to_select=5).fit(X, y).support_.astype(int))
sparse = LinearSVC(C=0.01, penalty="l1", dual=False)
print(SelectFromModel(sparse).fit(X, y).get_support().astype(int))
print(SelectFromModel(LogisticRegression(C=0.1)).fit(X, y).get_support().astype(int))
chosen = SequentialFeatureSelector(KNeighborsClassifier(3), n_features_to_select=2, cv=3).fit(X[:, :8], y)
print(chosen.get_support().astype(int))
