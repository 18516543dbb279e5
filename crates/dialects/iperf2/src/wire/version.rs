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
    /// Stage of the release.
    pub stage: Stage,
}

/// Stage of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Under development.
    Dev,
    /// First release candidate, as builds of 2.2.1 announce.
    Candidate,
    /// Second release candidate.
    SecondCandidate,
    /// Released.
    Release,
    /// Built privately.
    Private,
    /// Built from the main branch.
    Master,
    /// Something later.
    Unknown(u8),
}

impl Version {
    /// The release whose layout and words are the default here.
    pub const V2_1_8: Self = Self {
        major: 2,
        minor: 1,
        patch: 8,
        stage: Stage::Release,
    };
    /// As 2.2.1 announces itself.
    pub const V2_2_1: Self = Self {
        major: 2,
        minor: 2,
        patch: 1,
        stage: Stage::Candidate,
    };

    /// Name and version in messages.
    #[must_use]
    pub fn of(release: Release) -> Self {
        match release {
            Release::V2_2 => Self::V2_2_1,
            _ => Self::V2_1_8,
        }
    }

    /// Reads the two words; `None` unless they are those of a release 2.
    #[must_use]
    pub fn from_words(upper: u32, lower: u32) -> Option<Self> {
        let (major, minor) = ((upper >> 16) as u16, upper as u16);
        let patch = (lower >> 16) as u16;
        let credible = major == 2 && minor <= MINOR_MAX && lower & UNUSED_BITS == 0;
        credible.then(|| Self {
            major,
            minor,
            patch,
            stage: Stage::from_bits(lower as u8 & 0xf),
        })
    }

    /// The two words.
    #[must_use]
    pub fn to_words(self) -> (u32, u32) {
        let upper = u32::from(self.major) << 16 | u32::from(self.minor);
        let lower = u32::from(self.patch) << 16 | u32::from(self.stage.bits());
        (upper, lower)
    }

    /// Headers of this release are four bytes longer (field for the wait at the barrier).
    #[must_use]
    pub fn has_wide_header(self) -> bool {
        (self.major, self.minor) >= (2, 2)
    }
}

impl Default for Version {
    fn default() -> Self {
        Self::V2_1_8
    }
}

impl Stage {
    fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Dev,
            1 => Self::Candidate,
            2 => Self::SecondCandidate,
            3 => Self::Release,
            4 => Self::Private,
            5 => Self::Master,
            other => Self::Unknown(other),
        }
    }

    fn bits(self) -> u8 {
        match self {
            Self::Dev => 0,
            Self::Candidate => 1,
            Self::SecondCandidate => 2,
            Self::Release => 3,
            Self::Private => 4,
            Self::Master => 5,
            Self::Unknown(other) => other,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        f.write_str(match self.stage {
            Stage::Dev => "-dev",
            Stage::Candidate => "-rc",
            Stage::SecondCandidate => "-rc2",
            Stage::Private => "-private",
            Stage::Master => "-master",
            Stage::Release | Stage::Unknown(_) => "",
        })
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
