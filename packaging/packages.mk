# Static programs, libraries and packages, and their tests. Architectures have the names of Debian and of Go.

# Target of the static programs; one of glibc is static with LINK_FLAGS="-C target-feature=+crt-static".
DIST_TARGET ?= x86_64-unknown-linux-musl
DIST_MACHINE := $(firstword $(subst -, ,$(DIST_TARGET)))
# Name of the folder and of the emulator.
MACHINE_aarch64 := arm64 aarch64
MACHINE_armv7 := armv7 arm
MACHINE_riscv64gc := riscv64 riscv64
MACHINE := $(MACHINE_$(DIST_MACHINE))
# Routers and single-board computers: the drop-in program alone, and a smaller one.
SMALL := $(filter armv7 riscv64gc,$(DIST_MACHINE))
# Their folder.
DIST ?= dist$(addprefix /,$(word 1,$(MACHINE)))
DIST_TOOLS := musl-gcc=musl-tools
QEMU = qemu-$(word 2,$(MACHINE))-static
CROSS_TOOLS = $(QEMU)=qemu-user-static
.PHONY: dist dist-deps libs header

# An emulator starts the programs of another machine. Those of arm64 are linked by the linker of the toolchain; zig, which
# has a compiler and the headers of musl, compiles their C parts.
CROSS := $(if $(MACHINE),$(filter-out $(DIST_MACHINE:riscv64gc=riscv64) $(DIST_MACHINE:armv7=armv7l),$(shell uname -m)))
ZIG_PATH = $(TOOLS)/ziglang/zig
ifeq ($(CROSS),)
comma := ,
LINKER_OPTION := -C link-arg=-Wl$(comma)
else
LINKER_OPTION := -C link-arg=
RUN := $(QEMU)
ifeq ($(SMALL),)
export CC_$(subst -,_,$(DIST_TARGET)) := $(CURDIR)/packaging/zig-cc
export AR_$(subst -,_,$(DIST_TARGET)) := $(CURDIR)/packaging/zig-ar
export ZIG := $(ZIG_PATH)
endif
endif

# Packed relocations save a quarter of a megabyte. The C library of older toolchains cannot read them: the program then
# does not start, and LINK_FLAGS= builds without them.
LINK_FLAGS ?= $(LINKER_OPTION)-zpack-relative-relocs

# Outlining of repeated instructions, and folding of identical functions where the toolchain has lld: 5 % of the size.
OUTLINER := -C llvm-args=-enable-machine-outliner -C llvm-args=-machine-outliner-reruns=2
SYSROOT := $(shell rustc --print sysroot)
LLD := $(firstword $(wildcard $(SYSROOT)/lib/rustlib/*/bin/gcc-ld))
SIZE_FLAGS := $(OUTLINER)
ifneq ($(CROSS),)
SIZE_FLAGS += -C linker=rust-lld $(LINKER_OPTION)--icf=all
else ifneq ($(LLD),)
SIZE_FLAGS += -C link-arg=-fuse-ld=lld -C link-arg=-B$(LLD) $(LINKER_OPTION)--icf=all
endif

# Unwinding tables take most of a megabyte. The compiler emits them as long as one function of the standard library has
# some, so the linker discards them. Cargo starts the linker in this folder. Paths of sources are remapped, so the program
# has the same bytes wherever it is built.
REGISTRY := $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
REMAPPED := --remap-path-prefix=$(REGISTRY)=/registry
DIST_RUSTFLAGS = $(LINK_FLAGS) $(SIZE_FLAGS) $(LINKER_OPTION)--script=packaging/static.ld $(REMAPPED)
BUILD := $(CARGO) build

# Not every release of the toolchain has a standard library for small machines. It is built here, for size, which stable
# cargo does only with RUSTC_BOOTSTRAP, and linked by zig, which has musl. Thumb instructions take 2.6 MB, those of ARM
# 3.4 MB; with the outliner, a program in them does not start.
ifneq ($(SMALL),)
BUILD := RUSTC_BOOTSTRAP=1 CARGO_ZIGBUILD_ZIG_PATH=$(ZIG_PATH) $(TOOLS)/wheel/bin/cargo-zigbuild zigbuild \
	-Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size
SMALL_FLAGS_armv7 := -C target-feature=+thumb-mode
SMALL_FLAGS_riscv64gc := -C target-feature=+crt-static $(OUTLINER)
DIST_RUSTFLAGS = -C link-self-contained=no $(SMALL_FLAGS_$(DIST_MACHINE)) $(REMAPPED) \
	--remap-path-prefix=$(SYSROOT)/lib/rustlib/src/rust=/rust
endif
VERSION := $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
COMMIT = $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)

# Name, features, and the size in bytes that it may have.
define static_program
	LINERATE_VERSION="$(VERSION)$(COMMIT:%= (%))" $(BUILD) --release --locked --target $(DIST_TARGET) \
		-p linerate-cli $(2) --config "target.$(DIST_TARGET).rustflags='$(DIST_RUSTFLAGS)'"
	mkdir -p $(dir $(DIST)/$(1))
	cp $(TARGET_DIR)/$(DIST_TARGET)/release/linerate $(DIST)/$(1)
	ldd $(DIST)/$(1) 2>&1 | grep -q -E 'statically linked|not a dynamic executable'
	@echo "$(DIST)/$(1): $$(stat -c %s $(DIST)/$(1)) of $(3) bytes"
	@test "$$(stat -c %s $(DIST)/$(1))" -le $(3)
	$(RUN) $(DIST)/$(1) --version
endef

dist: dist-deps ## the static programs dist/linerate and dist/linerate-iperf, and their sizes
	$(if $(SMALL),,$(call static_program,linerate,,15728640))
	$(call static_program,linerate-iperf,$(IPERF_FEATURES),$(if $(SMALL),3145728,4194304))

# Libraries for programs in C: file names end in the version, links in the number of the soname.
define library
	install -m 644 $(TARGET_DIR)/libs/$(1) dist/lib/$(2).$(3)
	ln -sf $(2).$(3) dist/lib/$(2)
endef

libs: ## dist/lib/liblinerate.so.0 and dist/lib/libiperf.so.0, and the header dist/include/linerate.h
	$(CARGO) build --profile libs --locked -p linerate-capi -p linerate-libiperf \
		--config "target.$(HOST).rustflags='$(REMAPPED)'"
	mkdir -p dist/lib dist/include
	$(call library,liblinerate_capi.so,liblinerate.so.0,1.0)
	$(call library,libiperf.so,libiperf.so.0,0.0)
	ln -sf liblinerate.so.0 dist/lib/liblinerate.so
	install -m 644 crates/faces/capi/include/linerate.h dist/include/linerate.h
	@stat -c '%n: %s bytes' dist/lib/*.so.0.*

# cbindgen takes minutes to build, so `make test` compares the names alone.
header: ## write the header of liblinerate.so by cbindgen
	@test -x $(TOOLS)/bin/cbindgen || $(CARGO) install --locked --version 0.29.4 --root $(TOOLS) cbindgen
	$(TOOLS)/bin/cbindgen --quiet --config crates/faces/capi/cbindgen.toml --output crates/faces/capi/include/linerate.h \
		crates/faces/capi

dist-deps: ## install the programs that dist needs
	@.ci/tools $(if $(CROSS),$(CROSS_TOOLS),$(DIST_TOOLS))
	@$(if $(SMALL),.ci/wheel-tools $(TOOLS),$(if $(CROSS),.ci/zig $(TOOLS)))
	$(if $(SMALL),rustup component add rust-src,rustup target add $(DIST_TARGET))

ARCHES ?= amd64 arm64
TARGET_amd64 := x86_64-unknown-linux-musl
TARGET_arm64 := aarch64-unknown-linux-musl
PROGRAMS_amd64 := dist
PROGRAMS_arm64 := dist/arm64
RUN_arm64 := $(if $(filter-out aarch64,$(shell uname -m)),qemu-aarch64-static)
# Revision of the packages: raised where the same version is packed again.
REVISION ?= 1
# All files have the time of the commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

DEB_TOOLS := dpkg-buildpackage=dpkg-dev dh=debhelper lintian=lintian
TREES := $(ARCHES:%=tree-%)
DEBS := $(ARCHES:%=deb-%)
TARBALLS := $(ARCHES:%=tarball-%)
RPMS := $(ARCHES:%=rpm-%)
WHEELS := $(ARCHES:%=wheel-%)
MUSL_WHEELS := $(ARCHES:%=wheel-musl-%)
.PHONY: $(TREES) $(DEBS) $(TARBALLS) $(RPMS) $(WHEELS) $(MUSL_WHEELS) \
	deb tarball libs-tarball image rpm sbom wheel artefacts release \
	test-deb test-image test-rpm test-tarball test-libs-tarball test-wheel test-wheel-arm64 test-wheel-musl \
	test-cargo-install test-action test-recipes test-arm64

# The files of an installation, below dist/tree/ARCHITECTURE.
$(TREES): tree-%:
	$(MAKE) dist DIST_TARGET=$(TARGET_$*)
	packaging/licenses $(TARGET_$*) -p linerate-cli >$(PROGRAMS_$*)/THIRD-PARTY-LICENSES
	rm -rf dist/tree/$*
	RUN="$(RUN_$*)" packaging/tree $(PROGRAMS_$*) dist/tree/$*

deb: $(DEBS) ## Debian packages for ARCHES (amd64, arm64), checked by lintian
$(DEBS): deb-%: tree-%
	@.ci/tools $(DEB_TOOLS)
	rm -f dist/linerate*_$*.deb
	VERSION=$(VERSION)-$(REVISION) packaging/deb $* dist/tree/$* dist

tarball: $(TARBALLS) ## archives of the static programs, their manual and their units
$(TARBALLS): tarball-%: tree-%
	packaging/tarball linerate-$(VERSION)-linux-$* dist/tree/$* dist

image: $(TREES) ## container image of linerate for all of ARCHES: an OCI archive
	packaging/image dist/linerate-$(VERSION)-oci.tar $(VERSION) \
		$(foreach arch,$(ARCHES),$(arch)=$(PROGRAMS_$(arch))/linerate)

# An upgrade needs the same packages with a higher revision.
test-deb: deb-amd64 ## install, upgrade, remove and purge the Debian packages in a fresh chroot (root)
	@.ci/tools mmdebstrap=mmdebstrap unshare=util-linux ip=iproute2
	rm -rf dist/upgrade && mkdir -p dist/upgrade
	VERSION=$(VERSION)-$(REVISION)+upgrade packaging/deb amd64 dist/tree/amd64 dist/upgrade
	packaging/test-deb dist dist/upgrade

test-tarball: tarball-amd64 ## unpack the archive and run what it holds
	packaging/test-tarball dist/linerate-$(VERSION)-linux-amd64.tar.gz $(VERSION)

test-image: image ## start the container image, where there is a runtime
	packaging/test-image dist/linerate-$(VERSION)-oci.tar

rpm: $(RPMS) ## RPM packages for ARCHES
$(RPMS): rpm-%: tree-%
	@.ci/tools rpmbuild=rpm
	packaging/rpm $* $(VERSION) dist/tree/$* dist

test-rpm: rpm-amd64 ## install and remove the RPM package below a new root (root)
	packaging/test-rpm dist/linerate-$(VERSION)-1.x86_64.rpm $(VERSION)

# One per architecture: some dependencies belong to one alone.
sbom: ## bill of materials of the static program for each of ARCHES (CycloneDX)
	@.ci/cargo-cyclonedx $(TOOLS)
	mkdir -p dist
	$(foreach arch,$(ARCHES),PATH="$(TOOLS)/bin:$$PATH" packaging/sbom dist/linerate-$(VERSION)-linux-$(arch).cdx.json \
		$(TARGET_$(arch)) &&) true

# Of the architecture and the C library of this host.
LIBS_ARCHIVE = linerate-libs-$(VERSION)-linux-$(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(shell uname -m)))
LIBS_DOC := dist/tree/libs/share/doc/linerate-libs
libs-tarball: libs ## archive of the libraries for programs in C, and their header
	rm -rf dist/tree/libs
	mkdir -p $(LIBS_DOC)
	cp -a dist/lib dist/include dist/tree/libs
	cp docs/libraries.md LICENSE LICENSE-APACHE LICENSE-MIT $(LIBS_DOC)
	packaging/licenses $(HOST) -p linerate-capi -p linerate-libiperf >$(LIBS_DOC)/THIRD-PARTY-LICENSES
	packaging/tarball $(LIBS_ARCHIVE) dist/tree/libs dist

test-libs-tarball: libs-tarball ## unpack the archive of the libraries and load them from C and Python
	packaging/test-libs-tarball dist/$(LIBS_ARCHIVE).tar.gz $(VERSION)

# The program of a wheel is that of `dist`. Its library is linked by zig, for the C library that the tag of the wheel names.
MACHINE_amd64 := x86_64
MACHINE_arm64 := aarch64
$(WHEELS): LIBRARY_TARGET = $(MACHINE_$*)-unknown-linux-gnu
$(WHEELS): LIBC_VERSION := .2.17
$(WHEELS): WHEEL_TAG := manylinux_2_17
$(MUSL_WHEELS): LIBRARY_TARGET = $(MACHINE_$*)-unknown-linux-musl
# Programs for musl are static by default, and a library cannot be.
$(MUSL_WHEELS): LIBRARY_FLAGS := -C target-feature=-crt-static
$(MUSL_WHEELS): WHEEL_TAG := musllinux_1_2

define build_wheel
	$(MAKE) dist DIST_TARGET=$(TARGET_$*)
	@.ci/wheel-tools $(TOOLS)
	rustup target add $(LIBRARY_TARGET)
	CARGO_ZIGBUILD_ZIG_PATH=$(ZIG_PATH) $(TOOLS)/wheel/bin/cargo-zigbuild zigbuild --profile libs --locked \
		-p linerate-capi --target $(LIBRARY_TARGET)$(LIBC_VERSION) \
		--config "target.$(LIBRARY_TARGET).rustflags='$(REMAPPED) $(LIBRARY_FLAGS)'"
	rm -rf dist/$@
	cp -r packaging/python dist/$@
	cp LICENSE LICENSE-* $(PROGRAMS_$*)/linerate dist/$@
	packaging/licenses $(TARGET_$*) -p linerate-cli -p linerate-capi >dist/$@/THIRD-PARTY-LICENSES
	install $(TARGET_DIR)/$(LIBRARY_TARGET)/libs/liblinerate_capi.so dist/$@/src/linerate/liblinerate.so.0
	cd dist/$@ && PYTHONPATH=$(TOOLS)/wheel VERSION=$(VERSION) WHEEL_TAG=py3-none-$(WHEEL_TAG)_$(MACHINE_$*) \
		python3 -m hatchling build --target wheel --directory ..
endef

wheel: $(WHEELS) $(MUSL_WHEELS) ## Python wheels for ARCHES, glibc and musl: the program, the module and its library
$(WHEELS): wheel-%:
	$(build_wheel)
$(MUSL_WHEELS): wheel-musl-%:
	$(build_wheel)

test-wheel: wheel-amd64 ## install the wheel for each Python from 3.9 on that is here, and use its program, module and fixture
	@python3 -c 'import ensurepip' 2>/dev/null || .ci/tools ensurepip=python3-venv
	packaging/test-wheel dist/linerate-$(VERSION)-*manylinux*_x86_64.whl

test-wheel-arm64: wheel-arm64 ## install the wheel for arm64 in a Debian for arm64, emulated (root)
	@.ci/tools mmdebstrap=mmdebstrap unshare=util-linux qemu-aarch64-static=qemu-user-static
	packaging/test-wheel-arm64 dist/linerate-$(VERSION)-*manylinux*_aarch64.whl

test-wheel-musl: wheel-musl-amd64 ## build Python for musl from the sources of this Debian, and use the wheel with it
	@.ci/tools musl-gcc=musl-tools make=make xz=xz-utils
	packaging/test-wheel-musl dist/linerate-$(VERSION)-*musllinux*_x86_64.whl

test-cargo-install: ## install by cargo in a fresh chroot with gcc and a toolchain (root)
	@.ci/tools mmdebstrap=mmdebstrap unshare=util-linux
	packaging/test-cargo-install

test-action: ## run the steps of action.yml, by a runner of the test
	@python3 -c 'import yaml' 2>/dev/null || .ci/tools python3=python3 yaml=python3-yaml
	$(CARGO) build --locked -p linerate-cli
	packaging/test-action $(TARGET_DIR)/debug/linerate

test-recipes: ## evaluate the recipes of Homebrew and Nix, and build the package of Arch Linux
	@.ci/tools ruby=ruby nix=nix-bin makepkg=makepkg pacman=pacman-package-manager bsdtar=libarchive-tools
	TARGET_DIR="$(TARGET_DIR)" packaging/test-recipes

artefacts: deb tarball libs-tarball image rpm sbom

release: ## all artefacts, built twice with the same bytes, in dist/release
	packaging/release

# Both dialects, the native test and the HTTP server. qemu-user 7.2 has neither SO_MAX_PACING_RATE nor TCP_INFO, which two
# of these tests assert.
SMOKE := test(/^(iperf3::(auth|options|whole_blocks)|iperf2::(options|streams)|path::modes|http::server)::/) \
	- test(fq_rate_lets_the_kernel_pace) - test(what_is_in_flight_is_shown_in_the_newer_layout)

test-arm64: test-deps tree-arm64 ## linerate try and a part of the live tests with the arm64 programs, emulated on amd64
	$(CARGO) test --locked -p linerate-interop --no-run
	packaging/emulated $(PROGRAMS_arm64)/linerate-iperf try
	packaging/emulated $(PROGRAMS_arm64)/linerate try
	LINERATE_BIN="$(CURDIR)/$(PROGRAMS_arm64)/linerate" packaging/emulated env $(NEXTEST) \
		-p linerate-interop --test interop -E '$(SMOKE)'

SMALL_TARGETS ?= armv7-unknown-linux-musleabihf riscv64gc-unknown-linux-musl
.PHONY: test-small $(SMALL_TARGETS)
test-small: $(SMALL_TARGETS) ## build and run the drop-in program of armv7 and riscv64, emulated
$(SMALL_TARGETS):
	$(MAKE) dist test-small-program DIST_TARGET=$@

test-small-program:
	packaging/test-small "$(RUN)" $(DIST)/linerate-iperf
