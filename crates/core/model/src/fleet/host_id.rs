//! Name of a host in the inventory and in every report.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use crate::text::stored_as_text;

/// Name of a host: 1 to 63 characters of `[A-Za-z0-9_.-]`, the first of which is no `-`, and not
/// dots alone: directories have these names. A copy shares the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(Arc<str>);

/// A text that is no host id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "\"{0}\" is no host id: 1 to 63 letters, digits, \"_\", \".\" and \"-\", no \"-\" at the \
     start, not dots alone"
)]
pub struct HostIdError(String);

const LENGTH_MAX: usize = 63;

impl HostId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for HostId {
    type Err = HostIdError;

    fn from_str(text: &str) -> Result<Self, HostIdError> {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        let is_id = (1..=LENGTH_MAX).contains(&text.len())
            && !text.starts_with('-')
            && text.bytes().all(is_allowed)
            && text.bytes().any(|byte| byte != b'.');
        if is_id {
            Ok(Self(text.into()))
        } else {
            // The text may come from another host.
            Err(HostIdError(
                text.chars()
                    .take(LENGTH_MAX + 1)
                    .flat_map(char::escape_default)
                    .collect(),
            ))
        }
    }
}

stored_as_text!(HostId, { "type": "string", "pattern": "^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,62}$" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_that_are_safe_in_file_names_and_command_lines() {
        let longest = "x".repeat(63);
        for id in ["nas", "pc07", "a.b-c_D9", "7", ".x", longest.as_str()] {
            assert_eq!(
                id.parse::<HostId>().map(|id| id.to_string()),
                Ok(id.to_owned())
            );
        }

        let longer = "x".repeat(64);
        for wrong in [
            "",
            "-oProxyCommand",
            "a b",
            "a/b",
            "a\n",
            "é",
            "a:b",
            ".",
            "..",
            longer.as_str(),
        ] {
            assert!(wrong.parse::<HostId>().is_err(), "{wrong}");
        }

        let error = "a\x1b[2J"
            .parse::<HostId>()
            .map_err(|error| error.to_string());
        assert!(
            error.is_err_and(|text| !text.contains('\x1b')),
            "control characters are escaped"
        );
    }
}
