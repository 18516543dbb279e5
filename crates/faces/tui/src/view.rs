//! Presentation of a screen.

use linerate_document::Glyphs;

/// Presentation of a screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Characters per line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
    /// Time since the view began in ns.
    pub now_ns: u64,
    /// Characters that the terminal can draw with.
    pub glyphs: Glyphs,
    /// States have colours; they are words, too.
    pub is_coloured: bool,
    /// The state is no longer the newest one.
    pub is_paused: bool,
    /// The keys are shown.
    pub is_help: bool,
}
