//! Identity of a run: a UUID of version 7 (RFC 9562), which sorts by time.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::text::stored_as_text;

/// Identity of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

/// A text that is no run id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{0}\" is no UUID of version 7, as 01890a5d-ac96-774b-bcce-b302099a8057 is")]
pub struct RunIdError(String);

impl RunId {
    /// A new id of a time in ms since 1970 and 10 random bytes.
    pub fn new(unix_ms: u64, random: [u8; 10]) -> Self {
        let random = random
            .iter()
            .fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
        // RFC 9562 section 5.7: 48 bits of time, version 7, variant 2, and random bits between.
        let fields = (u128::from(unix_ms) & 0xFFFF_FFFF_FFFF) << 80 | random;
        Self(fields & !(0xF << 76) & !(0x3 << 62) | 0x7 << 76 | 0x2 << 62)
    }

    /// The end of it, which differs from run to run: what reports show.
    pub fn short(self) -> String {
        format!("{:08x}", self.0 as u32)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = format!("{:032x}", self.0);
        write!(
            f,
            "{}-{}-{}-{}-{}",
            &all[..8],
            &all[8..12],
            &all[12..16],
            &all[16..20],
            &all[20..]
        )
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let wrong = || RunIdError(text.chars().take(64).collect());
        let id = u128::from_str_radix(&text.replace('-', ""), 16)
            .map(Self)
            .map_err(|_| wrong())?;
        // The number alone accepts a sign, and hyphens anywhere.
        let is_canonical = id.to_string().eq_ignore_ascii_case(text) && id.0 >> 76 & 0xF == 7;
        is_canonical.then_some(id).ok_or_else(wrong)
    }
}

stored_as_text!(RunId, { "type": "string", "format": "uuid" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_version_and_variant_and_survive_their_text() {
        let id = RunId::new(0x0001_890A_5DAC_9600, [0xFF; 10]);
        assert_eq!(id.to_string(), "890a5dac-9600-7fff-bfff-ffffffffffff");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.short(), "ffffffff");
        assert!(RunId::new(1, [0; 10]) < RunId::new(2, [0; 10]));

        for wrong in [
            "",
            "last",
            "890a5dac-9600-4fff-bfff-ffffffffffff",
            "890a5dac96007fffbfffffffffffffff",
        ] {
            assert!(wrong.parse::<RunId>().is_err(), "{wrong}");
        }
    }
}
