//! Kinds of output of ethtool and the words with which they begin.

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
    ("Settings for ", Kind::Link),
    ("Features for ", Kind::Features),
    ("Offload parameters for ", Kind::Features),
    ("Ring parameters for ", Kind::Ring),
    ("Channel parameters for ", Kind::Channels),
    ("Pause parameters for ", Kind::Pause),
    ("Coalesce parameters for ", Kind::Coalesce),
    ("EEE settings for ", Kind::Eee),
    ("Private flags for ", Kind::Other),
    ("Time stamping parameters for ", Kind::Other),
    ("RX flow hash indirection table for ", Kind::Other),
];
