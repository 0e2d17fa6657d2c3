"""Several models vote."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

X, y = load_iris(return_X_y=True)
X = X[:, 1:3]
parts = [
    ("lr", LogisticRegression(random_state=1)),
    ("rf", RandomForestClassifier(n_estimators=30, random_state=1)),
    ("gnb", GaussianNB()),
    ("knn", KNeighborsClassifier(7)),
]
for voting in ("hard", "soft"):
    vote = VotingClassifier(parts, voting=voting)
    print(voting, cross_val_score(vote, X, y, scoring="accuracy", cv=5).mean().round(4))
