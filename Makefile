# Everything a developer runs. `make test` decides over a change. Packages: packaging/packages.mk.

CARGO ?= cargo
TARGET_DIR ?= $(or $(CARGO_TARGET_DIR),target)
TOOLS := $(abspath $(TARGET_DIR))/tools
FUZZ_SECONDS ?= 600
PEER ?= iperf3
KIND ?= all
SUITE ?=

# Program that must exist = Debian package that contains it.
TEST_TOOLS := iperf3=iperf3 iperf=iperf ip=iproute2 ss=iproute2 openssl=openssl git=git python3=python3 pip3=python3-pip \
	cc=gcc ethtool=ethtool lspci=pciutils nft=nftables iptables=iptables curl=curl wrk=wrk ab=apache2-utils h2load=nghttp2-client \
	nginx=nginx-light sshd=openssh-server ssh=openssh-client tc=iproute2 taskset=util-linux setpriv=util-linux \
	renice=bsdutils tmux=tmux strace=strace pg_createcluster=postgresql systemd-analyze=systemd \
	ansible-playbook=ansible-core chromium=chromium

# The drop-in build: iperf3, iperf 2, serve, try, links and generate.
IPERF_FEATURES := --no-default-features

# Settings of scripts that run cargo.
SETTINGS = CARGO="$(CARGO)" TARGET_DIR="$(TARGET_DIR)" TOOLS="$(TOOLS)"
NEXTEST = $(SETTINGS) .ci/nextest

.PHONY: try help check test live bench bench-report pictures fuzz deny msrv systems semver test-deps

# The drop-in part alone: the trial needs no more.
try: ## build linerate and test this machine against itself
	$(CARGO) build --profile try --locked $(IPERF_FEATURES) -p linerate-cli
	$(TARGET_DIR)/try/linerate try

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

check: ## formatting, lints, documentation, dependency rules
	@.ci/deny $(TOOLS) local
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked -p linerate-cli $(IPERF_FEATURES) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	$(CARGO) test --locked --workspace --test architecture

# The program is built before the live tests because they run it, and cargo does not know that they do. Building it
# together with the tests lets both share every dependency. `check` has run the dependency rules.
test: test-deps check ## everything a change must pass; `check` is part of it
	$(CARGO) build --locked --workspace --all-targets
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" $(NEXTEST) --workspace -E 'not binary(architecture)'
	$(CARGO) test --locked --workspace --doc

live: ## SUITE=NAME: live tests at full length; without SUITE the list of suites
	@$(SETTINGS) .ci/live $(SUITE)

bench: ## throughput and CPU time beside PEER; KIND=iperf|http|strategies|instructions|floor for one part
	@$(SETTINGS) PEER="$(PEER)" bench/run $(KIND)

bench-report: ## table and picture of BENCHMARKS.md, and all tables in target/benchmarks.md, from bench/results
	python3 bench/report.py $(REPORT_ARGS)
	mkdir -p $(TARGET_DIR)
	python3 bench/report.py --all $(TARGET_DIR)/benchmarks.md

pictures: ## draw docs/pictures from fixtures/records
	UPDATE_SNAPSHOTS=1 $(CARGO) test --locked -p linerate --test library pictures

fuzz: ## every fuzz target for FUZZ_SECONDS (nightly, cargo-fuzz)
	cd tests/fuzz && for target in $$($(CARGO) +nightly fuzz list); do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

deny: ## licenses, sources and known vulnerabilities of the dependencies
	@.ci/deny $(TOOLS)

# clippy knows which functions of the standard library are newer; this also finds what only a compiler does.
msrv: ## build with the oldest supported Rust
	@.ci/msrv $(TARGET_DIR)

# Crates without sockets: what another system needs first is in them. See docs/decisions/036-systems.md.
systems: ## check the crates without sockets for FreeBSD and macOS
	@$(SETTINGS) .ci/systems

semver: ## compare the interface of the Rust library with the last commit (cargo-semver-checks)
	@.ci/semver $(TOOLS)

test-deps: ## install the programs that tests need
	@.ci/tools $(TEST_TOOLS)
	@.ci/cargo-tools $(TOOLS)
	@.ci/nats-server $(TOOLS) >/dev/null
	@.ci/python-tools $(TOOLS) >/dev/null

include packaging/packages.mk
