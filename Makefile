# SPDX-License-Identifier: Apache-2.0
# The front door. Each target installs what it needs (tools/dev/setup), says so, and is quick the second time.

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SEEDS ?= 100000

.DEFAULT_GOAL := help
.PHONY: help build demo torch quick test test-all bench bench-cluster bench-links bench-sparse check asan tsan fuzz sim install clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "make %-12s %s\n", $$1, $$2}'

build: ## install the libraries, build build/release/gossamer
	@tools/dev/setup build
	@test -f build/release/CMakeCache.txt || cmake --preset release -DGOSSAMER_TESTS=OFF
	@cmake --preset release >/dev/null
	@cmake --build build/release -j $(JOBS) --target gossamer

demo: build ## train a reverse dictionary on this machine, print one page (DICTIONARY= your own files)
	@tools/dev/setup demo
	@test -n "$(DICTIONARY)" || tools/demo/fetch-dictionaries build/demo-data
	@tools/demo/demo build/release/gossamer runs/dictionary $(or $(DICTIONARY),build/demo-data)

torch: ## unpack libtorch (200 MB are fetched), build the modules that language models need
	@tools/dev/setup torch
	@pkg-config --exists sentencepiece || { echo "torch: SentencePiece is missing: install libsentencepiece-dev" >&2; exit 1; }
	@tools/dev/torch
	@test -f build/release/CMakeCache.txt || cmake --preset release -DGOSSAMER_TESTS=OFF
	@cmake --preset release >/dev/null
	@cmake --build build/release -j $(JOBS) --target gossamer_torch gossamer_sentencepiece

quick: ## at each change: tests of the release build but for whole fleets, scenarios, processes and farms (ALL=1: unchanged ones too)
	@tools/dev/setup test
	@ALL=$(ALL) JOBS=$(JOBS) tools/dev/run-tests quick

test: ## build and run every test that CI runs: release, ASan+UBSan, TSan (ALL=1: also what passed before, unchanged)
	@tools/dev/setup test
	@ALL=$(ALL) JOBS=$(JOBS) tools/dev/run-tests release debug tsan

# No sanitizer sees tests labelled slow: whole farms, which would take many hours, and process tests that wait on real
# time. Their code meets sanitizers in the tests of its parts, and in short farms.
test-all: ## before an issue ends: sanitizers over all but slow tests (farms, real time), SEEDS=100000, fuzzers (hours)
	@tools/dev/setup test
	@JOBS=$(JOBS) SEEDS=$(SEEDS) FUZZ_SECONDS=$(FUZZ_SECONDS) tools/dev/run-all

bench: bench-sparse bench-links bench-cluster ## every table of docs/benchmarks.md (hours with the peers; needs real data, see bench/README.md)

bench-links: build ## the tables of the links on slow lines, in tools/lab (as root; half an hour)
	@tools/dev/setup bench
	@cmake --build build/release -j $(JOBS) --target delay_queue
	@build/bench-venv/bin/python bench/links.py --write

bench-cluster: build ## the tables of steps over several nodes, in tools/lab, beside PyTorch over gloo (as root; an hour)
	@tools/dev/setup bench
	@cmake --build build/release -j $(JOBS) --target delay_queue
	@build/bench-venv/bin/python bench/cluster.py --write
	@build/bench-venv/bin/python bench/plots.py --write

bench-sparse: build ## the tables of the sparse engine: accuracy, step, scale, sessions, word2vec, serving, reading
	@tools/dev/setup bench
	@build/bench-venv/bin/python -B -m unittest discover -q -s bench
	@build/bench-venv/bin/python bench/sparse_accuracy.py --write
	@build/bench-venv/bin/python bench/sparse_step.py --write
	@build/bench-venv/bin/python bench/sparse_scale.py --write
	@build/bench-venv/bin/python bench/next_item.py --write
	@build/bench-venv/bin/python bench/word2vec.py --write
	@build/bench-venv/bin/python bench/serve_latency.py --write
	@build/bench-venv/bin/python bench/reading.py --write
	@build/release/gossamer bench kernels --json --quiet >build/bench/kernels.json
	@build/bench-venv/bin/python bench/plots.py --write

check: ## format, tidy, shellcheck, every header and source alone, fuzz targets, clang-tidy on changed files (ALL=1: on all)
	@tools/dev/setup check
	@ALL=$(ALL) JOBS=$(JOBS) tools/dev/run-checks

asan: ## all but slow tests under AddressSanitizer and UndefinedBehaviorSanitizer (make test: tests of the parts)
	@tools/dev/setup test
	@SANITIZE_ALL=1 JOBS=$(JOBS) tools/dev/run-tests debug

tsan: ## all but slow tests under ThreadSanitizer (make test: only those with threads)
	@tools/dev/setup test
	@SANITIZE_ALL=1 JOBS=$(JOBS) tools/dev/run-tests tsan

fuzz: ## every fuzz target for FUZZ_SECONDS=60
	@tools/dev/setup fuzz
	@tools/dev/run-fuzz $(FUZZ_SECONDS)

sim: build ## each scenario of tests/simulation 200 times, and SEEDS=100000 drawn disasters; a seed that breaks something is named
	@for file in tests/simulation/*.toml; do build/release/gossamer simulate $$file --seeds 200 --quiet || exit 1; done
	@build/release/gossamer simulate cluster-chaos --seeds $(SEEDS)
	@build/release/gossamer simulate sparse-chaos --seeds $(SEEDS)

install: build ## copy the program to PREFIX=/usr/local
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove build/; runs/ stays
	rm -rf build
