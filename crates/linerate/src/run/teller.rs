//! What is said while it runs: on stderr, one line that is rewritten on a terminal, lines otherwise.

use std::io::{self, IsTerminal, Write};

/// Speaks to whoever waits.
#[derive(Debug)]
pub(crate) struct Teller {
    voice: Voice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Silent,
    Lines,
    /// The last line is rewritten.
    Terminal,
}

/// Back to the beginning of the line, which is erased to its end (ECMA-48, EL).
const REWRITE: &str = "\r\x1b[K";

impl Teller {
    pub(crate) fn new(is_quiet: bool) -> Self {
        let voice = match (is_quiet, io::stderr().is_terminal()) {
            (true, _) => Voice::Silent,
            (false, true) => Voice::Terminal,
            (false, false) => Voice::Lines,
        };
        Self { voice }
    }

    /// A line that stays.
    pub(crate) fn say(&self, text: &str) {
        match self.voice {
            Voice::Silent => {}
            Voice::Lines => write(&format!("{text}\n")),
            Voice::Terminal => write(&format!("{REWRITE}{text}\n")),
        }
    }

    /// A line that the next one replaces.
    pub(crate) fn pass(&self, text: &str) {
        match self.voice {
            Voice::Terminal => write(&format!("{REWRITE}{text}")),
            Voice::Silent | Voice::Lines => self.say(text),
        }
    }

    /// Nothing more will be said.
    pub(crate) fn finish(&self) {
        if self.voice == Voice::Terminal {
            write(REWRITE);
        }
    }
}

fn write(text: &str) {
    // Nobody may be listening; the result is worth as much.
    let _ = io::stderr().write_all(text.as_bytes());
}
