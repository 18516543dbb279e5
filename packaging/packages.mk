# Packages of the static programs and their tests. Architectures have the names of Debian and of Go.

# ARCHES="amd64 arm64" cross-compiles for arm64 as well.
ARCHES ?= amd64
TARGET_amd64 := x86_64-unknown-linux-musl
TARGET_arm64 := aarch64-unknown-linux-musl
PROGRAMS_amd64 := dist
PROGRAMS_arm64 := dist/arm64
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
.PHONY: $(TREES) $(DEBS) $(TARBALLS) $(RPMS) deb tarball image rpm sbom artefacts release test-deb test-image test-rpm \
	test-tarball

# The files of an installation, below dist/tree/ARCHITECTURE.
$(TREES): tree-%:
	$(MAKE) dist DIST_TARGET=$(TARGET_$*)
	packaging/licenses $(TARGET_$*) $(FULL_FEATURES) >$(PROGRAMS_$*)/THIRD-PARTY-LICENSES
	rm -rf dist/tree/$*
	RUN="$(RUN_$*)" packaging/tree $(PROGRAMS_$*) dist/tree/$*

deb: $(DEBS) ## Debian packages for ARCHES (amd64), checked by lintian
$(DEBS): deb-%: tree-%
	@.ci/tools $(DEB_TOOLS)
	rm -f dist/linerate*_$*.deb
	VERSION=$(VERSION)-$(REVISION) packaging/deb $* dist/tree/$* dist

tarball: $(TARBALLS) ## archives of the static programs, their manual and their units
$(TARBALLS): tarball-%: tree-%
	packaging/tarball $* $(VERSION) dist/tree/$* dist

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
		$(TARGET_$(arch)) $(FULL_FEATURES) &&) true

artefacts: deb tarball image rpm sbom

release: ## all artefacts, built twice with the same bytes, in dist/release
	packaging/release
