"""Bags of neighbours, boosted stumps, calibrated machines."""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

X, y = make_classification(1000, 10, n_informative=5, random_state=3)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
bag = BaggingClassifier(KNeighborsClassifier(), max_samples=0.5, max_features=0.5, random_state=0)
print(round(bag.fit(X_train, y_train).score(X_test, y_test), 4))
boost = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=30, random_state=0)
print(round(boost.fit(X_train, y_train).score(X_test, y_test), 4))
calibrated = CalibratedClassifierCV(LinearSVC(), cv=3).fit(X_train, y_train)
print(round(brier_score_loss(y_test, calibrated.predict_proba(X_test)[:, 1]), 4))
