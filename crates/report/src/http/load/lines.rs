//! Lines of a report in the making.

use std::fmt::Write;

use crate::document::style::Style;
use crate::document::wrap::{LINE_CHARS, wrapped};

/// Text in the making, always within the width and without anything that acts on a terminal.
pub(super) struct Lines {
    /// So far.
    pub(super) text: String,
    /// How it may look.
    pub(super) style: Style,
}

impl Lines {
    /// A paragraph.
    pub(super) fn line(&mut self, indent: usize, text: &str) {
        for line in wrapped(&self.style.line(text), LINE_CHARS - indent) {
            let _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// A name, and its text beside it.
    pub(super) fn named(&mut self, name: &str, text: &str) {
        let parts = wrapped(&self.style.line(text), LINE_CHARS - NAME_CHARS);
        for (number, part) in parts.iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            let _ = writeln!(self.text, "{name:<NAME_CHARS$}{part}");
        }
    }
}

const NAME_CHARS: usize = 13;
