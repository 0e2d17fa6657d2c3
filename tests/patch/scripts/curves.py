"""Learning and validation curves."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import learning_curve, validation_curve
from sklearn.svm import SVC

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
train, test = validation_curve(SVC(), X, y, param_name="gamma", param_range=np.logspace(-5, -1, 4), cv=3)
print(train.mean(axis=1).round(4), test.mean(axis=1).round(4))
sizes, train, test = learning_curve(SVC(kernel="linear"), X, y, train_sizes=[0.3, 1.0], cv=3)
print(sizes, train.mean(axis=1).round(4), test.mean(axis=1).round(4))
