# Every target sets up what it needs in .venv; a fresh machine has Python 3.11+, make and g++.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
STAMPS := $(VENV)/stamps
NATIVE_CODE := $(shell find native -name '*.?pp')
NATIVE := CMakeLists.txt pyproject.toml $(NATIVE_CODE)
LEVELS := $(if $(filter x86_64,$(shell uname -m)),v2 v3,)
NATIVE_TESTS := tests/native tests/solvers
# Tests run side by side: threads of BLAS would only wait for each other. Those of our own loops stay, to be tested.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: run test test-levels test-oldest lint format bench sanitize clean

run: $(STAMPS)/build
	env -u OPENBLAS_NUM_THREADS $(BIN)/python -m sixfold

test: $(STAMPS)/test test-levels test-oldest
	$(BIN)/python -m pytest -q -n 2

# The default level is part of the whole suite; the others run the tests that reach native loops.
test-levels: $(STAMPS)/test
	for level in $(LEVELS); do SIXFOLD_ISA=$$level $(BIN)/python -m pytest -q -n 2 $(NATIVE_TESTS) || exit 1; done

# The oldest scikit-learn that is supported, with the contracts it knows, and the loops for the oldest processors.
test-oldest: .venv-oldest/stamp
	.venv-oldest/bin/python -m pytest -q -n 2 tests/contracts

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

# The native loops under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: .venv-sanitize/stamp
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 \
	.venv-sanitize/bin/python -m pytest -q -p no:cacheprovider $(NATIVE_TESTS)

clean:
	rm -rf $(VENV) .venv-oldest .venv-sanitize build

$(STAMPS)/venv:
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS)
	$(PIP) "scikit-build-core>=0.10" "nanobind>=2.2" cmake ninja
	touch $@

$(STAMPS)/build: $(STAMPS)/venv $(NATIVE)
	$(PIP) --no-build-isolation --editable .
	touch $@

$(STAMPS)/test: $(STAMPS)/build
	$(PIP) --no-build-isolation --editable ".[test]"
	touch $@

$(STAMPS)/lint: $(STAMPS)/venv pyproject.toml
	$(PIP) numpy "clang-format>=18" "import-linter>=2.0" "mypy>=1.10" "ruff>=0.6"
	touch $@

$(STAMPS)/bench: $(STAMPS)/build
	$(PIP) --no-build-isolation --editable ".[bench]"
	touch $@

.venv-oldest/stamp: $(NATIVE)
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --config-settings=build-dir=build/oldest \
	  $(addprefix --config-settings=cmake.define.SIXFOLD_LEVELS=,$(firstword $(LEVELS))) \
	  --editable ".[test]" "scikit-learn==1.6.*"
	touch $@

.venv-sanitize/stamp: $(NATIVE) $(shell find src -name '*.py')
	$(PYTHON) -m venv .venv-sanitize
	.venv-sanitize/bin/python -m pip install --quiet --disable-pip-version-check --config-settings=build-dir=build/sanitize \
	  --config-settings=cmake.define.SIXFOLD_SANITIZE=ON ".[test]"
	touch $@
