//! Progress on standard error: lines, or on a terminal text that the next text replaces.

use std::io::{self, IsTerminal, Write};

use linerate_model::printable::printable_lines;
use linerate_sys::process::terminal_columns;

use crate::{Glyphs, Style};

/// Writes progress.
#[derive(Debug)]
pub struct Progress {
    verbosity: Verbosity,
    /// Lines of the text that is replaced next.
    drawn_lines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbosity {
    Silent,
    Lines,
    Terminal,
}

impl Progress {
    /// To standard error; with `is_quiet` nothing is written.
    pub fn new(is_quiet: bool) -> Self {
        let verbosity = match (is_quiet, io::stderr().is_terminal()) {
            (true, _) => Verbosity::Silent,
            (false, true) => Verbosity::Terminal,
            (false, false) => Verbosity::Lines,
        };
        Self {
            verbosity,
            drawn_lines: 0,
        }
    }

    /// Text can be replaced.
    pub fn is_terminal(&self) -> bool {
        self.verbosity == Verbosity::Terminal
    }

    /// Nothing is written.
    pub fn is_silent(&self) -> bool {
        self.verbosity == Verbosity::Silent
    }

    /// Writes a line that stays.
    pub fn line(&mut self, text: &str) {
        if self.verbosity != Verbosity::Silent {
            // The line takes the place of the text, and stays.
            self.clear();
            write(&format!("{}\n", printable_lines(text)));
        }
    }

    /// Writes text that the next text replaces; a line elsewhere.
    pub fn update(&mut self, text: &str) {
        if !self.is_terminal() {
            return self.line(text);
        }

        let text = printable_lines(text.trim_end());
        self.clear();
        write(&text);
        self.drawn_lines = text.lines().count();
    }

    /// Erases the text that would be replaced.
    pub fn clear(&mut self) {
        // Carriage return, lines up and erase below (ECMA-48, CUU and ED).
        match std::mem::take(&mut self.drawn_lines) {
            0 => {}
            1 => write("\r\x1b[J"),
            lines => write(&format!("\r\x1b[{}A\x1b[J", lines - 1)),
        }
    }
}

fn write(text: &str) {
    // The result is worth as much when standard error is closed.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Longer lines are hard to read on any terminal.
const LONGEST_LINE_CHARS: usize = 120;

/// Style that the standard output can show.
pub fn style() -> Style {
    let columns = terminal_columns(io::stdout()).unwrap_or(Style::PLAIN.columns);
    Style {
        glyphs: glyphs(),
        is_coloured: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        columns: columns.min(LONGEST_LINE_CHARS),
    }
}

/// Blocks where the locale is UTF-8 (locale(7): the first of these that is set decides).
pub fn glyphs() -> Glyphs {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(set)
        .unwrap_or_default();
    let is_utf8 = locale
        .to_ascii_lowercase()
        .replace('-', "")
        .contains("utf8");
    if is_utf8 {
        Glyphs::Blocks
    } else {
        Glyphs::Ascii
    }
}
