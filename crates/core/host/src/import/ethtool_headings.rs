//! Kinds of output of ethtool and the words with which they begin.

use Kind::*;

/// Subject of an output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Link,
    Features,
    Ring,
    Channels,
    Pause,
    Coalesce,
    Statistics,
    Driver,
    Eee,
    /// Understood, and used by no rule.
    Other,
}

/// First words of outputs, before the name of the device.
pub(super) const HEADINGS: [(&str, Kind); 11] = [
    ("Settings for ", Link),
    ("Features for ", Features),
    ("Offload parameters for ", Features),
    ("Ring parameters for ", Ring),
    ("Channel parameters for ", Channels),
    ("Pause parameters for ", Pause),
    ("Coalesce parameters for ", Coalesce),
    ("EEE settings for ", Eee),
    ("Private flags for ", Other),
    ("Time stamping parameters for ", Other),
    ("RX flow hash indirection table for ", Other),
];
