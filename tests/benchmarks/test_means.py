"""The geometric mean of ratios: known figures, and none where a case is missing."""

import pytest

from benchmarks.means import Mean, geometric_mean
from benchmarks.runner import Row

MEAN = Mean("both", ("one", "two"), "peer", bar=5.0)


def case(title, ratio, error=0.0, **parts):
    return [
        Row(title, "sixfold", ratio=1.0, error=error, accurate=error == 0.0),
        Row(title, "peer", ratio=ratio, error=0.0, accurate=True, **parts),
    ]


@pytest.mark.parametrize(("ratios", "mean", "met"), [((2.0, 18.0), 6.0, True), ((2.0, 8.0), 4.0, False)])
def test_the_mean_is_the_root_of_the_product(ratios, mean, met):
    ours, peer = geometric_mean(MEAN, case("one", ratios[0]) + case("two", ratios[1]))
    assert (ours.case, ours.contender, peer.contender) == ("both", "sixfold", "peer")
    assert peer.ratio == pytest.approx(mean)
    assert (peer.met, peer.at_least) == (met, False)


def test_one_stopped_peer_makes_it_at_least():
    assert geometric_mean(MEAN, case("one", 2.0) + case("two", 18.0, at_least=True))[1].at_least


def test_one_inaccurate_answer_of_ours_misses_the_bar():
    assert geometric_mean(MEAN, case("one", 20.0) + case("two", 18.0, error=1.0))[1].met is False


def test_without_one_of_its_cases_there_is_no_mean():
    assert geometric_mean(MEAN, case("one", 2.0)) == []
    absent = [Row("two", name, installed=False) for name in ("sixfold", "peer")]
    assert geometric_mean(MEAN, case("one", 2.0) + absent) == []
