//! What real peers do that a protocol does not ask for.

/// One peculiarity, and what is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirk {
    /// Releases and role.
    pub peers: &'static str,
    /// What they do.
    pub behaviour: &'static str,
    /// What we do about it.
    pub handling: &'static str,
    /// Module that does it.
    pub module: &'static str,
}
