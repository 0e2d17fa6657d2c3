"""Texts as sparse counts: four linear models."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

rng = np.random.RandomState(0)
words = np.array([f"word{k}" for k in range(400)])
labels = rng.randint(0, 3, 600)
texts = [" ".join(rng.choice(words[100 * c : 100 * c + 200], 30)) for c in labels]
X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
for model in (
    LogisticRegression(C=5),
    RidgeClassifier(alpha=1.0),
    LinearSVC(C=0.1),
    KNeighborsClassifier(20),
):
    print(type(model).__name__, round(model.fit(X[:400], labels[:400]).score(X[400:], labels[400:]), 4))
