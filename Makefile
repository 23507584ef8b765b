# The same targets that CI and the README use. Each does its own set-up on a fresh Debian-like machine with Rust.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# One set of packages and features for tests and programs, or Cargo compiles what they share once more (docs/adr/0032).
WORKSPACE := --locked --workspace --all-features
PROGRAMS := $${CARGO_TARGET_DIR:-target}/debug
# More options for the scenarios in `make test`, for example `--only current --only life`.
E2E_OPTIONS ?=
# Everything when the cache is warm; on a new machine what can be built and run in this time (docs/adr/0010).
E2E_BUDGET ?= 900
# Runs of `make faults`, the seed of the first one, and how many are made between two lines of progress.
FAULT_RUNS ?= 10000
FAULT_FIRST ?= 0
FAULT_PORTION ?= 250
# Pairs of breaks that `make faults` has doctor explain.
DOCTOR_PAIRS ?= 10000
CARGO_DENY_VERSION := 0.20.2
CARGO_MACHETE_VERSION := 0.9.2
CARGO_FUZZ_VERSION := 0.13.2
# The oldest Rust that Cargo.toml promises.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
ZIG_VERSION := 0.17.0
MACOS := $(CURDIR)/target/macos
PROMTOOL := target/alerts/promtool
PROMTOOL_VERSION := v0.316.0
# Seconds for each fuzz target.
FUZZ_SECONDS ?= 60

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-17s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Install what a build needs: a C compiler for the TLS library
	@# Root of a container or of CI is not asked; nobody else gets sudo without a yes.
	@command -v cc >/dev/null || { \
	  sudo=; install="apt-get install gcc libc6-dev"; \
	  if [ "$$(id -u)" != 0 ]; then \
	    sudo=sudo; \
	    [ -t 0 ] || { echo "a C compiler is missing: run 'sudo $$install' first"; exit 1; }; \
	    read -r -p "A C compiler is missing. Run 'sudo $$install' now? [y/N] " answer; \
	    [[ "$$answer" = [yY]* ]] || { echo "nothing was installed; install a C compiler and try again"; exit 1; }; \
	  fi; \
	  $$sudo apt-get update -q && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q gcc libc6-dev; }

.PHONY: programs
programs: setup
	@# `--examples`, of which there are none, makes Cargo switch on the features that the tests need.
	@$(CARGO) build $(WORKSPACE) --bins --examples

.PHONY: demo
demo: programs ## Show the break and the cure on embedded OpenStack and Kubernetes (no root, no cluster)
	@$(PROGRAMS)/openstack-ccm demo $(DEMO_ARGS)

.PHONY: hermetic
hermetic: programs ## Run the tests that need nothing but this repository, and say what they take
	@began=$$SECONDS; $(CARGO) test $(WORKSPACE) --no-run; echo "hermetic tests: compiled in $$(( SECONDS - began )) s"
	@# Tests of whole processes wait more than they compute.
	@began=$$SECONDS; RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(( 3 * $$(nproc) ))} $(CARGO) test $(WORKSPACE); echo "hermetic tests: passed in $$(( SECONDS - began )) s"

.PHONY: quick
quick: setup ## The inner loop: formatting, unit tests and pages, without whole programs
	$(CARGO) fmt --all --check
	$(CARGO) test $(WORKSPACE) --lib --test settings --test config --test reference --test compatibility --test documentation

.PHONY: test
test: ## Run all tests, the demo, and of the scenarios on real components those that fit into E2E_BUDGET seconds
	@MAKE="$(MAKE)" E2E_ARGS="--if-possible --budget $(E2E_BUDGET) $(E2E_OPTIONS)" e2e/everything.sh

.PHONY: e2e
e2e: programs ## Run all scenarios on real Kubernetes and OpenStack components (root, Go, Python 3; see e2e/README.md)
	$(PROGRAMS)/openstack-ccm-e2e run $(E2E_ARGS)

.PHONY: faults
faults: setup ## Make FAULT_RUNS random stories under faults and kills, from the seed FAULT_FIRST on; kills at every call; DOCTOR_PAIRS pairs of breaks
	@# In portions, so that it can be seen how far it is.
	@for first in $$(seq $(FAULT_FIRST) $(FAULT_PORTION) $$(( $(FAULT_FIRST) + $(FAULT_RUNS) - 1 ))); do \
	  echo "seeds from $$first on"; \
	  FAULT_FIRST=$$first FAULT_RUNS=$(FAULT_PORTION) $(CARGO) test --quiet --locked --profile faults \
	    --package openstack-ccm --test program -- --exact fault_run::faults_and_kills_change_no_end; \
	done
	@echo "kills beside every call"
	@EVERY_CALL=1 $(CARGO) test --quiet --locked --profile faults --package openstack-ccm --test program -- \
	  crash:: contract::rename::r3 contract::serial::killed takeover::marking retained::what_is_to_be
	@echo "$(DOCTOR_PAIRS) pairs of breaks"
	@DOCTOR_PAIRS=$(DOCTOR_PAIRS) $(CARGO) test --quiet --locked --profile faults \
	  --package openstack-ccm --test program -- doctor_breaks::doctor_says_what_packets_do

.PHONY: check
check: setup ## Formatting, lints, documentation, dependencies that are allowed and used
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(WORKSPACE) --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc $(WORKSPACE) --no-deps
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny@$(CARGO_DENY_VERSION)
	$(CARGO) deny --locked check licenses bans sources
	@command -v cargo-machete >/dev/null || $(CARGO) install --locked cargo-machete@$(CARGO_MACHETE_VERSION)
	$(CARGO) machete crates e2e
	@$(MAKE) --no-print-directory advisories

.PHONY: advisories
advisories: setup ## Look for crates with known vulnerabilities (REQUIRED=1 fails where the database cannot be had)
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny@$(CARGO_DENY_VERSION)
	@if $(CARGO) deny --locked fetch db; then \
	  $(CARGO) deny --locked check advisories; \
	else \
	  echo "advisories: the database of RustSec cannot be had, so no crate was looked up"; [ -z "$(REQUIRED)" ]; \
	fi

.PHONY: msrv
msrv: setup ## Build with the oldest Rust that Cargo.toml promises (rustup)
	rustup toolchain install $(MSRV) --profile minimal
	$(CARGO) +$(MSRV) check --locked --package openstack-ccm

.PHONY: check-macos
check-macos: ## Compile without linking for macOS, where people type doctor, plan and status (rustup, Python 3)
	rustup target add aarch64-apple-darwin
	@test -x $(MACOS)/bin/python3 || python3 -m venv $(MACOS)
	$(MACOS)/bin/pip install --quiet ziglang==$(ZIG_VERSION)
	@# With a folder for SDKROOT no build script looks for Xcode.
	PATH="$(MACOS)/bin:$$PATH" SDKROOT=$(MACOS) CC_aarch64_apple_darwin=$(CURDIR)/release/zig_cc.py \
	  $(CARGO) check --locked --package openstack-ccm --target aarch64-apple-darwin

.PHONY: alerts
alerts: ## Ask Prometheus' own rule engine what the chart's alerts say (Go; minutes for the first build)
	@mkdir -p target/alerts
	@test -x $(PROMTOOL) || GOBIN=$(CURDIR)/target/alerts go install -tags remove_all_sd,netgo,builtinassets \
	  github.com/prometheus/prometheus/cmd/promtool@$(PROMTOOL_VERSION)
	sed -e 's/$$selector/job="controllermanager"/g; s/$$cluster/cluster/g' charts/openstack-ccm/alerts.yaml > target/alerts/rules.yaml
	$(PROMTOOL) test rules charts/tools/promtool/alerts.yaml

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
manifests: setup ## Write the plain manifests and the chart's snapshots again (Go, for the pinned Helm)
	UPDATE_MANIFESTS=1 INSTA_UPDATE=always $(CARGO) test $(WORKSPACE) --test chart

.PHONY: image
image: export OPENSTACK_CCM_COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
image: setup ## Build the container image without a container engine (Python 3.11; see docs/guides/build-the-image.md)
	image/build.py $(IMAGE_ARGS)

.PHONY: setup-arm64
setup-arm64: ## Install the C compiler for the image of arm64 (Debian, Ubuntu)
	@command -v aarch64-linux-gnu-gcc >/dev/null || { \
	  sudo=$$( [ "$$(id -u)" = 0 ] || echo sudo ); \
	  $$sudo apt-get update -q && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q gcc-aarch64-linux-gnu; }

.PHONY: release-image
release-image: setup ## Build the image of a release, for amd64 and arm64
	image/build.py --architecture amd64 --architecture arm64

.PHONY: release-check
release-check: ## Check that everything states the same version, and that the changelog has it (RELEASE_TAG=v0.1.0)
	release/release.py check $(if $(RELEASE_TAG),--tag "$(RELEASE_TAG)")

.PHONY: release-version
release-version: setup ## Write VERSION, such as 0.3.0, or 0.4.0-dev after its release, to every place that states one (Go)
	@test -n "$(VERSION)" || { echo "VERSION is not set: name one, as in make $@ VERSION=0.3.0"; exit 1; }
	release/release.py version "$(VERSION)"
	$(MAKE) --no-print-directory manifests docs

.PHONY: release-registry
release-registry: ## Name REGISTRY, such as ghcr.io/openstack-ccm, on every page, in the charts and in the help
	@test -n "$(REGISTRY)" || { echo "REGISTRY is not set: name one, as in make $@ REGISTRY=ghcr.io/openstack-ccm"; exit 1; }
	release/release.py registry "$(REGISTRY)"

.PHONY: release-record
release-record: ## Note the version of this tree in release/versions.toml and in the table of support
	release/release.py record

# login, push, sign, verify and notes, into RELEASE_REGISTRY, which has no default. See release/README.md.
release-login release-push release-sign release-verify release-notes: release-%:
	release/release.py $*
.PHONY: release-login release-push release-sign release-verify release-notes

.PHONY: release-announce
release-announce: ## Publish the release's page on the forge (gh)
	gh release create "$(RELEASE_TAG)" --verify-tag --title "$(RELEASE_TAG)" --notes-file target/publish/notes.md \
	  target/publish/*.tgz target/publish/*.tar.gz target/publish/*.krew.yaml target/publish/SHA256SUMS* \
	  target/image/openstack-ccm.*.cdx.json

.PHONY: release-dry-run
release-dry-run: ## Push, sign, pull and verify with a registry and a key that exist for this run only (Go, Python 3.11)
	release/release.py dry-run $(RELEASE_ARGS)

# VERSION: a release of the framework, such as v0.37.2; without it the newest. OCCM: a clone of kubernetes/cloud-provider-openstack, or for occm-compare a release that `go mod download -json
# k8s.io/cloud-provider-openstack@VERSION` has put somewhere. The first build of its program takes a quarter of an hour;
# OCCM_ARGS=--no-build leaves flags and gates out. For occm-record OCCM_ARGS="--programs FOLDER" asks the programs in a folder and reads the
# sources of the other releases, which takes minutes.
.PHONY: occm-compare
occm-compare: ## Print what OCCM's framework, and a clone of OCCM (OCCM=PATH), have that our data lack (Python 3.11, Go)
	@release/framework.py compare $(VERSION)
	@if [ -n "$(OCCM)" ]; then release/occm.py compare "$(OCCM)" $(OCCM_ARGS); else \
	  echo "OCCM itself was not compared: name a clone of kubernetes/cloud-provider-openstack, as in make $@ OCCM=../cloud-provider-openstack"; fi

.PHONY: framework-check
framework-check: ## Fail where OCCM's framework has flags that are not accepted yet (seconds; Python 3.11, Go)
	@release/framework.py compare $(VERSION) | tee /dev/stderr | { ! grep -q "^flags: new"; }

.PHONY: framework-record
framework-record: ## Write the data about OCCM's framework again (VERSION=v0.37.2; seconds; Python 3.11, Go)
	@release/framework.py record $(VERSION)

.PHONY: occm-record
occm-record: ## Write the data about OCCM again, from the releases in a clone (OCCM=PATH; Go; some hours)
	@test -n "$(OCCM)" || { echo "OCCM is not set: name a clone of kubernetes/cloud-provider-openstack, as in make $@ OCCM=../cloud-provider-openstack"; exit 1; }
	@release/occm.py record "$(OCCM)" $(OCCM_ARGS)

.PHONY: docs
docs: setup ## Write the generated reference pages again
	UPDATE_DOCS=1 $(CARGO) test $(WORKSPACE) --test config --test settings reference
	UPDATE_DOCS=1 $(CARGO) test $(WORKSPACE) --test program
	UPDATE_DOCS=1 $(CARGO) test $(WORKSPACE) --test reference --test compatibility
