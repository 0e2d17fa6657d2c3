# Every target sets up what it needs in .venv; a fresh machine has Python 3.11+, make and g++.
PYTHON ?= python3
BIN := .venv/bin
STAMPS := .venv/stamps
INSTALL := -m pip install --quiet --disable-pip-version-check
PIP := $(BIN)/python $(INSTALL)
BUILD_TOOLS := "scikit-build-core>=0.10" "nanobind>=2.2" cmake ninja
NATIVE_CODE := $(shell find native -name '*.?pp')
NATIVE := CMakeLists.txt pyproject.toml $(NATIVE_CODE)
PACKAGE := $(NATIVE) $(shell find src -name '*.py')
NATIVE_TESTS := tests/native tests/solvers
PYTEST := -m pytest -q -n auto --dist worksteal
# Tests run side by side: threads of BLAS would only wait for each other. Those of our own loops stay, to be tested.
export OPENBLAS_NUM_THREADS ?= 1

.DELETE_ON_ERROR:  # a stamp of what failed would be taken for done
.PHONY: run test test-all test-levels test-oldest test-tools lint format bench bench-quick gauntlet gallery wheel sanitize clean

# From a built-in table to a leaderboard, a model file and a report.
run: $(STAMPS)/app
	env -u OPENBLAS_NUM_THREADS $(BIN)/sixfold fit --output build/run

# The suite, with the loops for this machine.
test: $(STAMPS)/test
	$(BIN)/python $(PYTEST)

test-all: test wheel test-levels test-oldest

# The tests that reach native loops, with the loops for other processors: those that `make test` has not run.
test-levels: wheel
	.venv-wheel/bin/python $(INSTALL) "$$(ls dist/*.whl)[app,test]"
	for level in $$(.venv-wheel/bin/python -c "from sixfold import _native as n; print(*n.built_levels()[: n.built_levels().index(n.level)])"); do \
	  SIXFOLD_ISA=$$level HYPOTHESIS_PROFILE=few .venv-wheel/bin/python $(PYTEST) $(NATIVE_TESTS) || exit 1; done

# The oldest scikit-learn that is supported, with the contracts it knows, searches, which call its code, and
# model files, which hold its transformers; certificates ask nothing of it.
test-oldest: .venv-oldest/stamp
	.venv-oldest/bin/python $(PYTEST) tests/contracts tests/selection/test_grid_search.py tests/app/model_file \
	  --ignore-glob='*_certificates.py'

# SHAP, dtreeviz and skl2onnx on our models; imbalanced-learn's tests and all of scikit-learn's with the patch on.
test-tools: $(STAMPS)/test $(STAMPS)/peers
	$(BIN)/python $(PYTEST) tests/peers
	$(BIN)/python -m tests.peers.patched_suite

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_CODE)

format: $(STAMPS)/lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE_CODE)

# Compiled first, as an installed package is: a fresh process is one of the cases.
bench: $(STAMPS)/bench
	$(BIN)/python -m compileall -q src
	env -u OPENBLAS_NUM_THREADS $(BIN)/python -m benchmarks

# The last commit beside the working tree, in turns: what has become slower? For instance: make bench-quick BASE=HEAD~3.
BASE ?= HEAD
bench-quick: $(STAMPS)/build
	env -u OPENBLAS_NUM_THREADS $(BIN)/python -m benchmarks.landscape.beside --base $(BASE)

# Is every fit certified, confirmed and quick? For instance: make gauntlet ASKED="--quick --learners LinearSVC".
gauntlet: $(STAMPS)/build
	$(BIN)/python -m benchmarks.gauntlet $(ASKED)

# The pictures of docs/figures.md and docs/gallery.
gallery: $(STAMPS)/test
	$(BIN)/python docs/figures/draw.py
	$(BIN)/python docs/gallery/draw.py

# A wheel with the loops for every processor, installed where nothing else is, and tried there.
wheel: $(STAMPS)/wheel
	rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python $(INSTALL) dist/*.whl
	.venv-wheel/bin/python -I tests/installed_package.py

# The native loops under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: .venv-sanitize/stamp
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 HYPOTHESIS_PROFILE=few \
	.venv-sanitize/bin/python $(PYTEST) -p no:cacheprovider -m "not limits_memory" $(NATIVE_TESTS)

clean:
	rm -rf .venv .venv-oldest .venv-sanitize .venv-wheel build dist

$(STAMPS)/venv:
	$(PYTHON) -m venv .venv
	mkdir -p $(STAMPS)
	$(PIP) $(BUILD_TOOLS)
	touch $@

$(STAMPS)/build: $(STAMPS)/venv $(NATIVE)
	$(PIP) --no-build-isolation --editable .
	touch $@

# What an extra asks for, without building the package again.
$(STAMPS)/app $(STAMPS)/test $(STAMPS)/bench $(STAMPS)/peers: $(STAMPS)/%: $(STAMPS)/extra-% $(STAMPS)/extra-app $(STAMPS)/build
	touch $@

$(STAMPS)/extra-%: $(STAMPS)/venv pyproject.toml
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$*'], sep='\n')" > $@
	$(PIP) --requirement $@

$(STAMPS)/lint: $(STAMPS)/extra-lint
	$(PIP) numpy
	touch $@

# In the same build folder and from the same headers as the editable build: its level is not compiled again.
$(STAMPS)/wheel: $(STAMPS)/build $(PACKAGE)
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist .
	touch $@

.venv-oldest/stamp: $(STAMPS)/wheel
	rm -rf .venv-oldest && $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python $(INSTALL) "$$(ls dist/*.whl)[app,test]" "scikit-learn==1.6.*"
	touch $@

.venv-sanitize/stamp: $(NATIVE)
	$(PYTHON) -m venv .venv-sanitize
	.venv-sanitize/bin/python $(INSTALL) $(BUILD_TOOLS)
	.venv-sanitize/bin/python $(INSTALL) --no-build-isolation --config-settings=build-dir=build/sanitize \
	  --config-settings=cmake.define.SIXFOLD_SANITIZE=ON --editable ".[app,test]"
	touch $@
