//! Who talks to whom.

use std::fmt;

use crate::program::{Program, original, ours};

/// The roles in which our program must prove itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Our client, the original's server.
    OursToOriginal,
    /// The original's client, our server.
    OriginalToOurs,
    /// Both ours.
    OursToOurs,
}

impl Pairing {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OursToOriginal, Self::OriginalToOurs, Self::OursToOurs];

    /// The program that plays the client.
    pub fn client(self) -> &'static Program {
        match self {
            Self::OriginalToOurs => original(),
            Self::OursToOriginal | Self::OursToOurs => ours(),
        }
    }

    /// The program that plays the server.
    pub fn server(self) -> &'static Program {
        match self {
            Self::OursToOriginal => original(),
            Self::OriginalToOurs | Self::OursToOurs => ours(),
        }
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OursToOriginal => "ours to original",
            Self::OriginalToOurs => "original to ours",
            Self::OursToOurs => "ours to ours",
        })
    }
}
