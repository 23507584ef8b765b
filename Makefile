# The same targets that CI and the README use. Each does its own set-up on a fresh Debian-like machine with Rust.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# More options for the scenarios in `make test`, for example `--only current --only life`, or `--again`.
E2E_OPTIONS ?=
# Everything when the cache is warm; on a new machine what can be built and run in this time (docs/adr/0010).
E2E_BUDGET ?= 1200
# Runs of `make faults`, the seed of the first one, and how many are made between two lines of progress.
FAULT_RUNS ?= 10000
FAULT_FIRST ?= 0
FAULT_PORTION ?= 250
CARGO_DENY_VERSION := 0.20.2
CARGO_FUZZ_VERSION := 0.13.2
# Seconds for each fuzz target.
FUZZ_SECONDS ?= 60

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Install what a build needs: a C compiler for the TLS library
	@command -v cc >/dev/null || { \
	  echo "installing a C compiler"; \
	  sudo=$$( [ "$$(id -u)" = 0 ] || echo sudo ); \
	  $$sudo apt-get update -q && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q gcc libc6-dev; }

.PHONY: demo
demo: setup ## Show the break and the cure on embedded OpenStack and Kubernetes (no root, no cluster)
	$(CARGO) run --quiet --locked --package openstack-ccm --features demo -- demo $(DEMO_ARGS)

.PHONY: test
test: setup ## Run all tests, the demo, and of the scenarios on real components those that fit into E2E_BUDGET seconds
	$(CARGO) test --locked --workspace --all-features
	$(MAKE) --no-print-directory demo
	$(MAKE) --no-print-directory e2e E2E_ARGS="--if-possible --budget $(E2E_BUDGET) $(E2E_OPTIONS)"

.PHONY: e2e
e2e: setup ## Run all scenarios on real Kubernetes and OpenStack components (root, Go, Python 3; see e2e/README.md)
	@# The same features as for the tests: nothing is compiled twice.
	$(CARGO) build --locked --workspace --all-features --bins
	$${CARGO_TARGET_DIR:-target}/debug/openstack-ccm-e2e run $(E2E_ARGS)

.PHONY: faults
faults: setup ## Make FAULT_RUNS random stories under random faults and kills, from the seed FAULT_FIRST on
	@# In portions, so that it can be seen how far it is.
	@for first in $$(seq $(FAULT_FIRST) $(FAULT_PORTION) $$(( $(FAULT_FIRST) + $(FAULT_RUNS) - 1 ))); do \
	  echo "seeds from $$first on"; \
	  FAULT_FIRST=$$first FAULT_RUNS=$(FAULT_PORTION) $(CARGO) test --quiet --locked --profile faults \
	    --package openstack-ccm --test program -- --exact fault_run::faults_and_kills_change_no_end; \
	done

.PHONY: check
check: setup ## Formatting, lints, documentation, dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --all-features -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --locked --workspace --all-features --no-deps
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny@$(CARGO_DENY_VERSION)
	$(CARGO) deny --locked check licenses bans sources

.PHONY: fuzz
fuzz: setup ## Feed whatever is read from outside with any input, FUZZ_SECONDS each (nightly Rust, a C++ compiler)
	@command -v cargo-fuzz >/dev/null || $(CARGO) install --locked cargo-fuzz@$(CARGO_FUZZ_VERSION)
	cd fuzz && for target in $$($(CARGO) +nightly fuzz list); do \
	  mkdir -p found/$$target && \
	  $(CARGO) +nightly fuzz run $$target found/$$target corpus/$$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10; done

.PHONY: bench
bench: setup ## Measure calls, time and memory against the simulated cloud (minutes; BENCH=restart chooses)
	@# The binary of the image. The simulators beside it are built for speed, or one would wait for them.
	program=$${BENCH_PROGRAM:-$$(image/build.py --only-binary)}; \
	BENCH_PROGRAM=$$program $(CARGO) bench --locked --profile release --package openstack-ccm --bench load_balancers -- $(BENCH)

.PHONY: manifests
manifests: setup ## Write the plain manifests and the chart's snapshots anew (Go, for the pinned Helm)
	UPDATE_MANIFESTS=1 INSTA_UPDATE=always $(CARGO) test --locked --package openstack-ccm --test chart

.PHONY: image
image: setup ## Build the container image without a container engine (Python 3.11; see docs/guides/build-the-image.md)
	image/build.py $(IMAGE_ARGS)

.PHONY: docs
docs: setup ## Write the generated reference pages anew
	UPDATE_DOCS=1 $(CARGO) test --locked --package openstack-ccm-provider-openstack reference
	UPDATE_DOCS=1 $(CARGO) test --locked --package openstack-ccm --test reference --test compatibility
	UPDATE_DOCS=1 $(CARGO) test --locked --package openstack-ccm --test program the_page_of_metrics
