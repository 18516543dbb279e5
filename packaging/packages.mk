# Packages of the static programs and their tests. Architectures have the names of Debian and of Go.

ARCHES ?= amd64 arm64
TARGET_amd64 := x86_64-unknown-linux-musl
TARGET_arm64 := aarch64-unknown-linux-musl
PROGRAMS_amd64 := dist/packaged
PROGRAMS_arm64 := dist/arm64/packaged
RUN_arm64 := $(if $(filter-out aarch64,$(shell uname -m)),qemu-aarch64-static)
# Revision of the packages: raised where the same version is packed anew.
REVISION ?= 1
# All files have the time of the commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

DEB_TOOLS := dpkg-buildpackage=dpkg-dev dh=debhelper lintian=lintian
TREES := $(ARCHES:%=tree-%)
DEBS := $(ARCHES:%=deb-%)
TARBALLS := $(ARCHES:%=tarball-%)
RPMS := $(ARCHES:%=rpm-%)
.PHONY: $(TREES) $(DEBS) $(TARBALLS) $(RPMS) deb tarball libs-tarball image rpm sbom artefacts release \
	test-deb test-image test-rpm test-tarball test-libs-tarball test-arm64

# The files of an installation, below dist/tree/ARCHITECTURE.
$(TREES): tree-%:
	$(MAKE) packaged DIST_TARGET=$(TARGET_$*)
	packaging/licenses $(TARGET_$*) -p linerate-cli $(PACKAGED_FEATURES) >$(PROGRAMS_$*)/THIRD-PARTY-LICENSES
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
		$(TARGET_$(arch)) $(PACKAGED_FEATURES) &&) true

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

artefacts: deb tarball libs-tarball image rpm sbom

release: ## all artefacts, built twice with the same bytes, in dist/release
	packaging/release

# Both dialects, the native test and the HTTP server. qemu-user 7.2 has neither SO_MAX_PACING_RATE nor TCP_INFO, which two of
# these tests assert.
SMOKE := test(/^(iperf3::(auth|options|whole_blocks)|iperf2::(options|streams)|path::modes|http::server)::/) \
	- test(fq_rate_lets_the_kernel_pace) - test(what_is_in_flight_is_shown_in_the_newer_layout)

test-arm64: test-deps tree-arm64 ## linerate try and a part of the live tests with the arm64 programs, emulated on amd64
	$(CARGO) test --locked -p linerate-interop --no-run
	packaging/emulated $(PROGRAMS_arm64)/linerate-iperf try
	packaging/emulated $(PROGRAMS_arm64)/linerate try
	LINERATE_BIN="$(CURDIR)/$(PROGRAMS_arm64)/linerate" packaging/emulated env $(NEXTEST) \
		-p linerate-interop --test interop -E '$(SMOKE)'
