//! Names of releases in messages.

use std::fmt;

use linerate_model::workload::Release;

/// Release of a peer: two words of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number.
    pub patch: u16,
    /// Stage of the release, four bits.
    stage: u8,
}

/// Suffixes of the stages of a release by number: under development, release candidates, released,
/// built privately, built from the main branch. A later number is one that is not known yet.
const STAGES: [&str; 6] = ["-dev", "-rc", "-rc2", "", "-private", "-master"];
/// Stage of a first release candidate, as builds of 2.2.1 announce.
const CANDIDATE: u8 = 1;
const RELEASE: u8 = 3;

impl Version {
    /// The release whose layout and words are the default here.
    pub const V2_1_8: Self = Self::new(2, 1, 8, RELEASE);
    /// As 2.2.1 announces itself.
    pub const V2_2_1: Self = Self::new(2, 2, 1, CANDIDATE);

    const fn new(major: u16, minor: u16, patch: u16, stage: u8) -> Self {
        Self {
            major,
            minor,
            patch,
            stage,
        }
    }

    /// Name and version in messages.
    pub fn of(release: Release) -> Self {
        match release {
            Release::V2_2 => Self::V2_2_1,
            _ => Self::V2_1_8,
        }
    }

    /// Reads the two words; `None` unless they are those of a release 2.
    pub fn from_words(upper: u32, lower: u32) -> Option<Self> {
        let major = (upper >> 16) as u16;
        let minor = upper as u16;
        let patch = (lower >> 16) as u16;
        let credible = major == 2 && minor <= MINOR_MAX && lower & UNUSED_BITS == 0;
        credible.then(|| Self::new(major, minor, patch, lower as u8 & 0xf))
    }

    /// The two words.
    pub fn to_words(self) -> (u32, u32) {
        let upper = u32::from(self.major) << 16 | u32::from(self.minor);
        let lower = u32::from(self.patch) << 16 | u32::from(self.stage);
        (upper, lower)
    }

    /// Headers of this release are four bytes longer (field for the wait at the barrier).
    pub fn has_wide_header(self) -> bool {
        (self.major, self.minor) >= (2, 2)
    }
}

impl Default for Version {
    fn default() -> Self {
        Self::V2_1_8
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = STAGES.get(usize::from(self.stage)).unwrap_or(&"");
        write!(f, "{}.{}.{}{suffix}", self.major, self.minor, self.patch)
    }
}

/// Later second numbers are more likely not a version at all.
const MINOR_MAX: u16 = 15;
/// Bits between patch number and stage, always 0.
const UNUSED_BITS: u32 = 0x0000_fff0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_as_captured_and_read_back() {
        assert_eq!(Version::V2_1_8.to_words(), (0x0002_0001, 0x0008_0003));
        assert_eq!(Version::V2_2_1.to_words(), (0x0002_0002, 0x0001_0001));

        for version in [Version::V2_1_8, Version::V2_2_1] {
            let (upper, lower) = version.to_words();
            assert_eq!(Version::from_words(upper, lower), Some(version));
        }

        assert_eq!(Version::V2_1_8.to_string(), "2.1.8");
        assert_eq!(Version::V2_2_1.to_string(), "2.2.1-rc");
    }

    #[test]
    fn other_words_are_no_version() {
        for (upper, lower) in [
            (0, 0),
            (0x3637_3839, 0x3031_3233),
            (0x0003_0001, 3),
            (0x0002_0001, 0x0008_0013),
        ] {
            assert_eq!(
                Version::from_words(upper, lower),
                None,
                "{upper:x} {lower:x}"
            );
        }
    }
}
