# Everything a developer runs. `make test` is what decides over a change.

CARGO ?= cargo
TARGET_DIR ?= $(or $(CARGO_TARGET_DIR),target)
# Target of the static programs; one of glibc is static with LINK_FLAGS="-C target-feature=+crt-static".
DIST_TARGET ?= x86_64-unknown-linux-musl
# Where they are.
DIST ?= $(if $(filter aarch64-%,$(DIST_TARGET)),dist/arm64,dist)
FUZZ_SECONDS ?= 600
SOAK_TESTS ?= 20000
SOAK_SECONDS ?= 2400
SCALE_CLIENTS ?= 200
ATTACK_SECONDS ?= 300
FLEET_RUNS ?= 1
PEER ?= iperf3

# Program that must exist = Debian package that brings it.
TEST_TOOLS := iperf3=iperf3 iperf=iperf ip=iproute2 ss=iproute2 openssl=openssl git=git python3=python3 pip3=python3-pip cc=gcc \
	ethtool=ethtool lspci=pciutils nft=nftables curl=curl wrk=wrk ab=apache2-utils h2load=nghttp2-client nginx=nginx-light \
	sshd=openssh-server ssh=openssh-client tc=iproute2 taskset=util-linux setpriv=util-linux renice=bsdutils tmux=tmux strace=strace pg_createcluster=postgresql
DIST_TOOLS := musl-gcc=musl-tools
CROSS_TOOLS := qemu-aarch64-static=qemu-user-static

# The full program; what carries a fleet's control connections over NATS does not fit in its limit.
FULL_FEATURES := --no-default-features --features auth,full,postgres,tls,tui
# The program of the packages.
PACKAGED_FEATURES := $(FULL_FEATURES),bus
# The drop-in build: iperf3, iperf 2, serve, try, links and generate.
IPERF_FEATURES := --no-default-features --features auth

.PHONY: try help check deny msrv test test-dist test-dist-iperf bench bench-http bench-instructions bench-floor bench-strategies dist \
	packaged fuzz header libs libs-memory semver vm vm-lab vm-path faults compare soak attacks fleet scale exporters reports http-lab path test-deps dist-deps history-scale

# The drop-in part alone: the trial needs no more.
try: ## build linerate and test this machine against itself
	$(CARGO) build --profile try --locked $(IPERF_FEATURES) -p linerate-cli
	$(TARGET_DIR)/try/linerate try

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

check: deny ## formatting, lints, documentation, dependency rules
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked -p linerate-cli $(FULL_FEATURES) -- -D warnings
	$(CARGO) clippy --locked -p linerate-cli $(IPERF_FEATURES) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	$(CARGO) test --locked --workspace --test architecture

# Licenses, sources and versions of the dependencies, and known weaknesses where their database can be reached.
TOOLS := $(abspath $(TARGET_DIR))/tools
deny: ## licenses, sources and known weaknesses of the dependencies
	@.ci/deny $(TOOLS)

# clippy knows which functions of the standard library are newer; this also finds what only a compiler does.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

msrv: ## build with the oldest supported Rust; skipped where it is not installed
	@toolchain=$$(rustup toolchain list 2>/dev/null | grep -m 1 -o '^$(MSRV)[^ ]*') || { \
		echo "skipped: Rust $(MSRV) is not installed: rustup toolchain install $(MSRV)"; exit 0; }; \
	cargo "+$$toolchain" check --locked -p linerate-cli --target-dir $(TARGET_DIR)/msrv

# The program is built first because the interop tests run it, and cargo does not know that they do. Building it
# together with the tests lets both share every dependency.
NEXTEST = NATS_SERVER_BIN="$$(.ci/nats-server $(TOOLS) 2>/dev/null)" LINERATE_TEST_PYTHON="$$(.ci/python-tools $(TOOLS) 2>/dev/null)" PATH="$(TOOLS)/bin:$$PATH" $(CARGO) nextest run --locked --profile ci --test-threads $$((2 * $$(nproc)))
# `check` has run the dependency rules.
test: test-deps check ## everything a change must pass; `check` is part of it
	$(CARGO) build --locked --workspace --all-targets
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" $(NEXTEST) --workspace -E 'not binary(architecture)'
	$(CARGO) test --locked --workspace --doc

bench: ## throughput and CPU time against the installed iperf3, HTTP lab included
	$(CARGO) build --release --locked -p linerate-cli
	python3 bench/bench.py --ours $(TARGET_DIR)/release/linerate --peer $(PEER) $(BENCH_ARGS)
	$(MAKE) bench-http

# The I/O strategy that is chosen during a test against every fixed one.
bench-strategies: ## the I/O strategy chosen during a test against every fixed one
	$(CARGO) build --release --locked -p linerate-cli
	python3 bench/strategies.py --ours $(TARGET_DIR)/release/linerate $(BENCH_ARGS)

# The HTTP lab against nginx, wrk, ab and h2load.
bench-http: ## the HTTP lab against nginx, wrk, ab and h2load
	@.ci/tools nginx=nginx-light wrk=wrk ab=apache2-utils h2load=nghttp2-client
	$(CARGO) build --release --locked -p linerate-cli
	python3 bench/http_lab.py --ours $(TARGET_DIR)/release/linerate $(BENCH_HTTP_ARGS)

# What the loops that run per datagram cost, and what the machine can do at all.
bench-instructions: ## instructions per datagram of the hot loops (valgrind)
	@.ci/tools valgrind=valgrind
	bench/instructions

bench-floor: ## what copying over loopback costs on this machine
	mkdir -p $(TARGET_DIR)
	cc -O2 -o $(TARGET_DIR)/floor bench/floor.c
	cc -O2 -pthread -o $(TARGET_DIR)/transfer bench/transfer.c
	echo "a cache line takes $$($(TARGET_DIR)/transfer 0,1) ns from CPU to CPU"
	for pause in 0 30 60; do for copies in 1 8; do \
		echo "$$copies blocks per call, pauses of $$pause us: $$($(TARGET_DIR)/floor -c $$copies -p $$pause)"; done; done
	for offset in 0 1 16 64 128 1024 2048 4032 4080; do \
		echo "send offset $$offset: $$($(TARGET_DIR)/floor -p 30 -s $$offset)"; \
		echo "receive offset $$offset: $$($(TARGET_DIR)/floor -p 30 -d $$offset)"; done

# Programs of the other architecture: their C parts are compiled by zig, which has a compiler and the headers of musl, they are
# linked by the linker of the toolchain, and an emulator starts them.
CROSS := $(if $(filter aarch64-%,$(DIST_TARGET)),$(filter-out aarch64,$(shell uname -m)))
ifeq ($(CROSS),)
comma := ,
LINKER_OPTION := -C link-arg=-Wl$(comma)
else
LINKER_OPTION := -C link-arg=
RUN := qemu-aarch64-static
export CC_aarch64_unknown_linux_musl := $(CURDIR)/packaging/zig-cc
export AR_aarch64_unknown_linux_musl := $(CURDIR)/packaging/zig-ar
export ZIG := $(TOOLS)/ziglang/zig
endif

# Relocations in their packed form take a quarter of a megabyte less. Older toolchains bring a C library that cannot read
# them, which running the program shows; LINK_FLAGS= does without.
LINK_FLAGS ?= $(LINKER_OPTION)-zpack-relative-relocs

# Sequences of instructions that occur often become functions, and functions that are alike become one where the toolchain
# brings a linker that finds them: a twentieth of the size.
SIZE_FLAGS := -C llvm-args=-enable-machine-outliner -C llvm-args=-machine-outliner-reruns=2
LLD := $(firstword $(wildcard $(shell rustc --print sysroot)/lib/rustlib/*/bin/gcc-ld))
ifneq ($(CROSS),)
SIZE_FLAGS += -C linker=rust-lld $(LINKER_OPTION)--icf=all
else ifneq ($(LLD),)
SIZE_FLAGS += -C link-arg=-fuse-ld=lld -C link-arg=-B$(LLD) $(LINKER_OPTION)--icf=all
endif

# Tables for unwinding take most of a megabyte. The compiler makes them as long as one function of the standard library has
# some, so the linker leaves them out. Cargo starts the linker in this folder. The place of the sources is not part of the
# program: it has the same bytes wherever it is built.
REGISTRY := $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
DIST_RUSTFLAGS = $(LINK_FLAGS) $(SIZE_FLAGS) $(LINKER_OPTION)--script=packaging/static.ld \
	--remap-path-prefix=$(REGISTRY)=/registry
VERSION := $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
COMMIT = $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)

# Name, features, and the size in bytes that it may have.
define static_program
	LINERATE_VERSION="$(VERSION)$(COMMIT:%= (%))" $(CARGO) build --release --locked --target $(DIST_TARGET) \
		-p linerate-cli $(2) --config "target.$(DIST_TARGET).rustflags='$(DIST_RUSTFLAGS)'"
	mkdir -p $(dir $(DIST)/$(1))
	cp $(TARGET_DIR)/$(DIST_TARGET)/release/linerate $(DIST)/$(1)
	ldd $(DIST)/$(1) 2>&1 | grep -q -E 'statically linked|not a dynamic executable'
	@echo "$(DIST)/$(1): $$(stat -c %s $(DIST)/$(1)) of $(3) bytes"
	@test "$$(stat -c %s $(DIST)/$(1))" -le $(3)
	$(RUN) $(DIST)/$(1) --version
endef

dist: dist-deps ## the static programs dist/linerate and dist/linerate-iperf, and their sizes
	$(call static_program,linerate,$(FULL_FEATURES),12582912)
	$(call static_program,linerate-iperf,$(IPERF_FEATURES),4194304)

# A package is not copied by hand: its program has the bus as well, which linerate-agent.service and the manifests need.
packaged: dist-deps ## the static programs of packages and images, below dist/packaged
	$(call static_program,packaged/linerate,$(PACKAGED_FEATURES),14680064)
	$(call static_program,packaged/linerate-iperf,$(IPERF_FEATURES),4194304)

test-dist: test-deps dist ## the live tests with the static program
	LINERATE_BIN="$(CURDIR)/dist/linerate" $(NEXTEST) -p linerate-interop -E 'not test(/^(fleet::bus|libraries)::/)'

# Two tests need the history.
test-dist-iperf: test-deps dist ## the live tests of both dialects with the small static program
	LINERATE_BIN="$(CURDIR)/dist/linerate-iperf" $(NEXTEST) -p linerate-interop --test interop \
		-E 'test(/^iperf[23]::/) - test(/^iperf3::records::a_(recorded_test|history)_/)'
	$(CARGO) test --locked -p linerate-cli $(IPERF_FEATURES) --test absent

# The libraries for programs in C: file names end in the version, links in the number of the soname.
define library
	install -m 644 $(TARGET_DIR)/libs/$(1) dist/lib/$(2).$(3)
	ln -sf $(2).$(3) dist/lib/$(2)
endef

libs: ## dist/lib/liblinerate.so.0 and dist/lib/libiperf.so.0, and the header dist/include/linerate.h
	$(CARGO) build --profile libs --locked -p linerate-capi -p linerate-libiperf \
		--config "target.$(HOST).rustflags='--remap-path-prefix=$(REGISTRY)=/registry'"
	mkdir -p dist/lib dist/include
	$(call library,liblinerate_capi.so,liblinerate.so.0,1.0)
	$(call library,libiperf.so,libiperf.so.0,0.0)
	ln -sf liblinerate.so.0 dist/lib/liblinerate.so
	install -m 644 crates/faces/capi/include/linerate.h dist/include/linerate.h
	@stat -c '%n: %s bytes' dist/lib/*.so.0.*

# Tests of the libraries as `make libs` builds them, under valgrind: definite losses of memory fail.
libs-memory: test-deps ## tests of the libraries under valgrind
	@.ci/tools valgrind=valgrind
	$(CARGO) build --locked --workspace --all-targets
	$(NEXTEST) -p linerate-interop -E 'test(/^libraries::/)' --run-ignored only --retries 0 --no-capture

# The interface of the Rust library against the last commit; what it names of the model is compared in that crate. The tool is
# built here once, which takes minutes; it is the newest one, because it reads a format of the compiler that changes with each
# release.
semver: ## compare the interface of the Rust library with the last commit (cargo-semver-checks)
	@test -x $(TOOLS)/bin/cargo-semver-checks || $(CARGO) install --quiet --locked --root $(TOOLS) cargo-semver-checks || { \
		echo "skipped: cargo-semver-checks cannot be installed"; exit 0; }; \
	PATH="$(TOOLS)/bin:$$PATH" $(CARGO) semver-checks -p linerate -p linerate-model --baseline-rev HEAD

# cbindgen takes minutes to build, so `make test` compares the names alone.
header: ## write the header of liblinerate.so by cbindgen
	@test -x $(TOOLS)/bin/cbindgen || $(CARGO) install --locked --version 0.29.4 --root $(TOOLS) cbindgen
	$(TOOLS)/bin/cbindgen --quiet --config crates/faces/capi/cbindgen.toml --output crates/faces/capi/include/linerate.h crates/faces/capi

fuzz: ## every fuzz target for FUZZ_SECONDS (nightly, cargo-fuzz)
	cd tests/fuzz && for target in $$($(CARGO) +nightly fuzz list); do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

# What this machine's kernel may lack runs in a guest.
vm: dist ## tests in a guest of what this kernel may lack (SCTP)
	@.ci/tools qemu-system-x86_64=qemu-system-x86 busybox=busybox-static cpio=cpio depmod=kmod iperf3=iperf3
	vm/sctp dist/linerate

# Adapters, links and queueing disciplines this machine does not have, shown to the doctor in a guest.
vm-lab: ## doctor on NICs, links and qdiscs of a guest
	@.ci/tools qemu-system-x86_64=qemu-system-x86 busybox=busybox-static cpio=cpio depmod=kmod iperf3=iperf3 \
		ethtool=ethtool ip=iproute2 lspci=pciutils strip=binutils python3=python3
	$(CARGO) build --locked -p linerate-cli
	vm/lab $(TARGET_DIR)/debug/linerate

# Long and managed queues of a router, and fq at the sender, in a guest.
vm-path: dist ## linerate test over pfifo, fq_codel and fq of a guest
	@.ci/tools qemu-system-x86_64=qemu-system-x86 busybox=busybox-static cpio=cpio depmod=kmod ethtool=ethtool \
		ip=iproute2 strip=binutils python3=python3
	vm/path dist/linerate

# Each fault three times without a second attempt, and 20 tests without a fault.
faults: test-deps ## faults that are made here: what doctor concludes, and what its fixes do (root)
	$(CARGO) build --locked --workspace --all-targets
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" LINERATE_FAULT_RUNS=3 $(NEXTEST) -p linerate-interop \
		-E 'test(/^diagnosis::(faults|fixes|prove)::/)' --run-ignored all --retries 0 --no-capture

# Each fault of a link and each breakdown FLEET_RUNS times, without a second attempt.
BREAKDOWNS := test(/^fleet::(bus|failures|records)::/) - test(three_thousand_agents)
fleet: test-deps ## fleets over ssh and a bus at full length: ladders, faults, breakdowns, 3,000 agents (root)
	$(CARGO) build --locked --workspace --all-targets
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" LINERATE_FLEET_RUNS=$(FLEET_RUNS) $(NEXTEST) -p linerate-interop \
		-E 'test(/^fleet::/) - ($(BREAKDOWNS))' --run-ignored only --retries 0 --no-capture
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" $(NEXTEST) -p linerate-interop \
		-E '$(BREAKDOWNS)' --run-ignored all --retries 0 --stress-count $(FLEET_RUNS)

# Forty times five tests against five over the same shaper, and ten times a slower one.
compare: test-deps ## verdicts over equal and over slower paths, counted (root)
	$(CARGO) build --locked --workspace --all-targets
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" LINERATE_COMPARISONS=40 $(NEXTEST) -p linerate-interop \
		-E 'test(/^diagnosis::compare::timed_/)' --retries 0 --no-capture

soak: ## thousands of tests, then random clients for SOAK_SECONDS
	$(CARGO) build --release --locked -p linerate-cli
	LINERATE_BIN="$(abspath $(TARGET_DIR))/release/linerate" SOAK_TESTS=$(SOAK_TESTS) \
		$(CARGO) test --locked -p linerate-interop --test interop server::endurance:: -- --nocapture
	LINERATE_BIN="$(abspath $(TARGET_DIR))/release/linerate" SOAK_SECONDS=$(SOAK_SECONDS) \
		$(CARGO) test --locked -p linerate-interop --test interop server::soak:: -- --ignored --nocapture

# Each attack alone for 20 s, then all of them at once for ATTACK_SECONDS.
ATTACKED = LINERATE_BIN="$(abspath $(TARGET_DIR))/release/linerate" $(NEXTEST) -p linerate-interop --retries 0 --no-capture
attacks: test-deps ## attacks on a server in 512 MB with 1,024 descriptors, in the end all at once for ATTACK_SECONDS (root)
	$(CARGO) build --release --locked -p linerate-cli
	LINERATE_ATTACK_SECONDS=20 $(ATTACKED) -E 'test(/^attacks::/) - test(/^attacks::all_at_once::/)'
	LINERATE_ATTACK_SECONDS=$(ATTACK_SECONDS) $(ATTACKED) -E 'test(/^attacks::all_at_once::/)'

# 200 writers and 20 sweeps that are killed, 200 clients of a server whose store is locked, a watch of 60 runs, and 100,000
# runs in a file and on a PostgreSQL server.
history: test-deps ## the history at full length: kills, locks, a watch, 100,000 runs (root)
	$(CARGO) build --locked -p linerate-cli
	TEST_KILLS=200 $(CARGO) test --locked -p linerate-store --features postgres --test store killed_writer -- --nocapture
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" LINERATE_KILLS=20 \
		$(CARGO) test --locked -p linerate-interop --test interop records:: -- --nocapture --include-ignored
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" LINERATE_WATCH_RUNS=60 \
		$(CARGO) test --locked -p linerate-interop --test interop watches:: -- --nocapture
	$(CARGO) test --release --locked -p linerate-store --features postgres --test store \
		hundred_thousand -- --ignored --nocapture
	$(CARGO) test --release --locked -p linerate --test history_scale -- --ignored --nocapture

# Two hosts in namespaces; needs root.
scale: ## SCALE_CLIENTS clients between two namespaces (root)
	$(CARGO) build --release --locked -p linerate-cli
	LINERATE_BIN="$(abspath $(TARGET_DIR))/release/linerate" SCALE_CLIENTS=$(SCALE_CLIENTS) \
		$(CARGO) test --locked -p linerate-interop --test interop server::scale:: -- --ignored --nocapture

# Prometheus, its node exporter, DuckDB, sqlite3 and the messages of OpenTelemetry read what the exporters write.
exporters: ## exported runs read by Prometheus, DuckDB, sqlite3, markdown-it and opentelemetry-proto
	@.ci/tools promtool=prometheus prometheus=prometheus prometheus-node-exporter=prometheus-node-exporter \
		sqlite3=sqlite3 python3=python3 pip3=python3-pip
	test -x $(TOOLS)/exporters/bin/python || python3 -m venv $(TOOLS)/exporters
	$(TOOLS)/exporters/bin/pip install --quiet duckdb markdown-it-py opentelemetry-proto
	$(CARGO) build --locked -p linerate-cli
	$(TOOLS)/exporters/bin/python bench/exporters.py --ours $(TARGET_DIR)/debug/linerate

# Full length and full load, in namespaces; needs root.
reports: test-deps ## reports about iperf 2 at full length, pages in Chromium, the cost of viewers (root)
	$(CARGO) build --release --locked -p linerate-cli
	LINERATE_BIN="$(abspath $(TARGET_DIR))/release/linerate" \
		$(CARGO) test --locked -p linerate-interop --test interop iperf2::reports:: -- --ignored --nocapture
	LINERATE_BIN="$(abspath $(TARGET_DIR))/release/linerate" \
		$(CARGO) test --locked -p linerate-interop --test interop -- pages:: views:: --ignored --nocapture

# The default plan at a gigabit between two hosts in namespaces; needs root.
http-lab: test-deps ## the default plan of the HTTP lab at 1 Gbit/s (root)
	$(CARGO) build --release --locked -p linerate-cli
	LINERATE_BIN="$(abspath $(TARGET_DIR))/release/linerate" \
		$(CARGO) test --locked -p linerate-interop --test interop http::lab_verdicts:: -- --ignored --nocapture

# Full profiles over a shaped path, and waits as long as the protocol has; needs root.
path: test-deps ## linerate test at full length (root)
	$(CARGO) build --locked --workspace --all-targets
	LINERATE_BIN="$(abspath $(TARGET_DIR))/debug/linerate" $(NEXTEST) -p linerate-interop \
		-E 'test(/^path::/)' --run-ignored all --retries 0 --no-capture

test-deps: ## install the programs that tests need
	@.ci/tools $(TEST_TOOLS)
	@.ci/cargo-tools $(TOOLS)
	@.ci/nats-server $(TOOLS) >/dev/null
	@.ci/python-tools $(TOOLS) >/dev/null

dist-deps: ## install the programs that dist needs
	@.ci/tools $(if $(CROSS),$(CROSS_TOOLS),$(DIST_TOOLS))
	@$(if $(CROSS),.ci/zig $(TOOLS))
	rustup target add $(DIST_TARGET)

include packaging/packages.mk
