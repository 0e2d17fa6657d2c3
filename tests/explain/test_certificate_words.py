"""What a certificate proves, in plain words."""

from dataclasses import replace

from sixfold import DecisionTreeClassifier
from sixfold.explain.certificate_words import in_plain_words


def test_a_tree_without_a_mistake_cannot_be_bettered():
    X, y = [["a"], ["b"], ["b"], ["a"]], ["no", "yes", "yes", "no"]
    whole = DecisionTreeClassifier().fit(X, y).certificate_
    assert in_plain_words(whole) == "Proven optimal: no tree fits the training rows better."
    part = DecisionTreeClassifier(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], ["a", "b", "a", "b"])
    assert "a better tree is not ruled out" in in_plain_words(part.certificate_)


def test_trees_that_were_searched_for():
    X, y = [[1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "b", "a", "b", "a"]
    best = DecisionTreeClassifier(search="optimal", objective="error", max_depth=2).fit(X, y)
    assert in_plain_words(best.certificate_).startswith("Proven optimal: no other tree of this size")
    cut = best.pruned(max_depth=1).certificate_
    assert in_plain_words(cut) == "Proven: within 100% of the best tree of the size that was searched for."
    unknown = replace(cut, gap=cut.objective)
    assert "no bound on how much better another tree could be" in in_plain_words(unknown)
    ahead = DecisionTreeClassifier(search="lookahead", max_depth=1).fit(X, y).certificate_
    assert in_plain_words(ahead).startswith("Every split begins the best two levels")
