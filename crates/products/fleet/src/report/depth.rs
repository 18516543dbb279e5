//! Depth of a report.

/// Depth of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The parts that most readers need.
    Short,
    /// All of it.
    Long,
    /// All of it, as a page.
    Page,
}
