"""What a certificate proves, in plain words."""

from sixfold import DecisionTreeClassifier
from sixfold.explain.certificate_words import in_plain_words


def test_a_tree_without_a_mistake_cannot_be_bettered():
    X, y = [["a"], ["b"], ["b"], ["a"]], ["no", "yes", "yes", "no"]
    whole = DecisionTreeClassifier().fit(X, y).certificate_
    assert in_plain_words(whole) == "Proven optimal: no tree fits the training rows better."
    part = DecisionTreeClassifier(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], ["a", "b", "a", "b"])
    assert "a better tree is not ruled out" in in_plain_words(part.certificate_)
