//! Depth of a report.

/// Depth of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// All of it.
    Long,
    /// All of it, as a page.
    Page,
}

impl Depth {
    /// Most hosts of a table of all cells.
    pub(super) const fn cells_hosts_max(self) -> usize {
        match self {
            Self::Long => 24,
            Self::Page => 64,
        }
    }
}
