"""Classes are replaced where users find them, stay where scikit-learn holds them, and come back."""

import pickle
import subprocess
import sys
import types

import numpy as np
import pytest
import sklearn.base
import sklearn.ensemble
import sklearn.linear_model
import sklearn.model_selection
from sklearn.base import clone

import sixfold
from sixfold.errors import InputError
from sixfold.patch import replace
from sixfold.patch.drop_in import DropIn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + 0.5 * RNG.normal(size=60) > 0
THEIRS = {
    name: getattr(__import__(home, fromlist=["x"]), name)
    for home, _, names in replace.DROP_INS
    for name in names
}


@pytest.mark.parametrize("name", THEIRS)
def test_a_drop_in_is_scikit_learns_class_with_its_signature(name):
    with sixfold.patch_sklearn():
        ours = getattr(sys.modules[replace._homes(name)[0]], name)
    theirs = THEIRS[name]
    assert issubclass(ours, theirs)
    assert ours is not theirs
    assert issubclass(ours, DropIn) or ours.__module__ == "sixfold.patch.selection"
    assert ours.__name__ == theirs.__name__
    assert ours._get_param_names() == theirs._get_param_names()
    assert getattr(sys.modules[replace._homes(name)[0]], name) is theirs


def test_modules_that_imported_before_and_after_have_ours_and_get_theirs_back():
    theirs = sklearn.linear_model.LogisticRegression
    user = types.ModuleType("a_users_module")
    user.Model = theirs
    sys.modules["a_users_module"] = user
    try:
        with sixfold.patch_sklearn():
            assert user.Model is sklearn.linear_model.LogisticRegression is not theirs
            exec("from sklearn.linear_model import LogisticRegression as Late", vars(user))
            assert user.Late is user.Model
        assert user.Model is user.Late is theirs
    finally:
        del sys.modules["a_users_module"]


def test_scikit_learns_own_modules_keep_theirs():
    from sklearn.ensemble import _forest

    with sixfold.patch_sklearn():
        assert _forest.DecisionTreeClassifier.__module__.startswith("sklearn.")
        forest = sklearn.ensemble.RandomForestClassifier(3, random_state=0).fit(X, Y)
    assert type(forest.estimators_[0]).__module__.startswith("sklearn.")


def test_some_names_only_and_twice_is_once():
    with sixfold.patch_sklearn("LinearRegression") as patch:
        assert sklearn.linear_model.LogisticRegression is THEIRS["LogisticRegression"]
        assert [one.__name__ for one in patch.classes] == ["LinearRegression"]
        with sixfold.patch_sklearn(["LinearRegression"]) as inner:
            assert inner.classes == ()
        assert sklearn.linear_model.LinearRegression is not THEIRS["LinearRegression"]
    assert sklearn.linear_model.LinearRegression is THEIRS["LinearRegression"]
    sixfold.patch_sklearn()
    sixfold.unpatch_sklearn("LinearRegression")
    assert sklearn.linear_model.LinearRegression is THEIRS["LinearRegression"]
    assert sklearn.linear_model.LogisticRegression is not THEIRS["LogisticRegression"]
    sixfold.unpatch_sklearn()
    sixfold.unpatch_sklearn()
    assert sklearn.linear_model.LogisticRegression is THEIRS["LogisticRegression"]


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'LogisticRegression'"):
        sixfold.patch_sklearn("LogisticRegresion")


def test_models_outlive_the_patch_and_users_may_subclass():
    with sixfold.patch_sklearn():

        class Own(sklearn.linear_model.LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                self.seen_ = len(y)
                return super().fit(X, y, sample_weight)

        model = Own(C=2.0).fit(X, Y)
        plain = sklearn.linear_model.LogisticRegression(C=2.0).fit(X, Y)
    assert model.seen_ == 60
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    copy = pickle.loads(pickle.dumps(plain))
    np.testing.assert_array_equal(copy.predict(X), plain.predict(X))
    assert clone(plain).get_params() == plain.get_params()
    assert copy.certificate_.converged


def test_each_call_says_who_answered(capsys, monkeypatch):
    monkeypatch.setenv("SIXFOLD_VERBOSE", "1")
    with sixfold.patch_sklearn():
        sklearn.linear_model.LogisticRegression().fit(X, Y).predict(X)
        sklearn.linear_model.LogisticRegression(solver="liblinear").fit(X, Y)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "sixfold.patch: LogisticRegression.fit: sixfold",
        "sixfold.patch: LogisticRegression.predict: sixfold",
        "sixfold.patch: LogisticRegression.fit: scikit-learn: liblinear penalises the intercept",
    ]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "sixfold.patch", *arguments], capture_output=True, text=True, check=False
    )


def test_a_script_runs_patched_with_its_arguments(tmp_path):
    (tmp_path / "helper.py").write_text("NAME = 'beside'\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, helper\nfrom sklearn.linear_model import LogisticRegression\n"
        "print(__name__, sys.argv[1:], helper.NAME, LogisticRegression.__module__)\nsys.exit(5)\n"
    )
    done = run(str(script), "--deep", "3")
    assert done.stdout == "__main__ ['--deep', '3'] beside sixfold.patch.linear\n"
    assert done.returncode == 5


def test_code_and_usage():
    done = run("-c", "from sklearn.linear_model import Ridge, LinearRegression as L; print(L.__module__)")
    assert done.stdout == "sixfold.patch.linear\n"
    assert run().returncode == 2
    assert run("--help").stdout.startswith("usage: python -m sixfold.patch")


def test_models_that_scikit_learn_has_made_are_instances_of_the_name():
    with sixfold.patch_sklearn():
        from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, LogisticRegressionCV
        from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

        forest = sklearn.ensemble.RandomForestClassifier(2).fit(X, Y)
        assert isinstance(forest.estimators_[0], DecisionTreeClassifier)
        assert isinstance(Lasso(), ElasticNet)
        assert isinstance(LogisticRegressionCV(), LogisticRegression)
        assert issubclass(ExtraTreeClassifier, DecisionTreeClassifier)
        assert not isinstance(LogisticRegression(), Lasso)

        class Own(LogisticRegression):
            pass

        assert isinstance(Own(), LogisticRegression)
        assert not isinstance(LogisticRegression(), Own)


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC", "RidgeClassifier"])
def test_what_a_users_subclass_overrides_is_used(name):
    with sixfold.patch_sklearn():
        kind = getattr(sys.modules[replace._homes(name)[0]], name)

        class Turned(kind):
            def decision_function(self, X):
                return -super().decision_function(X)

        assert np.all(Turned().fit(X, Y).predict(X) != kind().fit(X, Y).predict(X))


@pytest.mark.parametrize("name", ["LogisticRegression", "SVC", "DecisionTreeClassifier", "RidgeClassifier"])
def test_classes_that_are_set_anew_are_predicted(name):
    with sixfold.patch_sklearn():
        model = getattr(sys.modules[replace._homes(name)[0]], name)().fit(X, Y)
        model.classes_ = np.array(["no", "yes"])
        assert set(model.predict(X)) == {"no", "yes"}


@pytest.mark.parametrize("name", ["KNeighborsClassifier", "LogisticRegression", "SVC"])
def test_a_refit_that_fails_leaves_the_model(name):
    with sixfold.patch_sklearn():
        model = getattr(sys.modules[replace._homes(name)[0]], name)().fit(X, Y)
        before = model.predict(X)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(np.where(X > 1, np.nan, X), Y)
        np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "parameters", [{"n_jobs": "bogus"}, {"tol": -1.0}, {"random_state": "bogus"}], ids=str
)
def test_wrong_parameters_are_refused_as_there(parameters):
    with sixfold.patch_sklearn():
        model = sklearn.linear_model.LogisticRegression(**parameters)
        for _ in range(2):
            with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter"):
                model.fit(X, Y)


@pytest.mark.parametrize("name", ["SVC", "LinearSVC", "Lasso", "ElasticNet", "LogisticRegression"])
def test_what_a_script_draws_next_is_the_same(name):
    drawn = []
    for kind in (THEIRS[name], replace._ours(name)):
        np.random.seed(0)  # noqa: NPY002 - as scripts do
        kind().fit(X, Y)
        drawn.append(np.random.randint(10**6))  # noqa: NPY002
    assert drawn[0] == drawn[1]


def test_folds_are_drawn_again_where_a_search_is_handed_back():
    grid = {"C": [0.1, 1.0], "solver": ["lbfgs", "liblinear"]}
    scores, drawn = [], []
    for home in (THEIRS, {name: replace._ours(name) for name in ("GridSearchCV", "LogisticRegression")}):
        state = np.random.RandomState(0)
        folds = sklearn.model_selection.KFold(3, shuffle=True, random_state=state)
        search = home["GridSearchCV"](home["LogisticRegression"](), grid, cv=folds).fit(X, Y)
        scores.append(search.cv_results_["mean_test_score"])
        drawn.append(state.randint(1000))
    np.testing.assert_array_equal(*scores)
    assert drawn[0] == drawn[1]


def test_code_runs_where_pickle_finds_it():
    done = run("-c", "import pickle\ndef f(): return 1\nprint(pickle.loads(pickle.dumps(f))())")
    assert done.stdout == "1\n"


LEARNERS = [name for name in THEIRS if not name.endswith("SearchCV")]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of defaults that scikit-learn will change
@pytest.mark.parametrize("name", LEARNERS)
def test_a_plain_fit_is_ours_while_the_patch_is_on(name, capsys, monkeypatch):
    monkeypatch.setenv("SIXFOLD_VERBOSE", "1")
    wide = np.random.default_rng(0).normal(size=(30, 40))
    with sixfold.patch_sklearn():
        model = getattr(sys.modules[replace._homes(name)[0]], name)()
        labels = wide[:, 0] > 0 if sklearn.base.is_classifier(model) else wide[:, 0]
        model.fit(wide, labels)
    assert capsys.readouterr().err.splitlines() == [f"sixfold.patch: {name}.fit: sixfold"]
