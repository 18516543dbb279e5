//! Style of a report at the place where it is shown.

use linerate_model::finding::Severity;
use linerate_model::printable::printable_start;

use crate::charset::Glyphs;
use crate::wrap::LINE_CHARS;

/// Style of a report at the place where it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Characters it may use.
    pub glyphs: Glyphs,
    /// Escape sequences may be sent: standard output is a terminal, and `NO_COLOR` is not
    /// set.
    pub is_coloured: bool,
    /// Longest line of wrapped text.
    pub columns: usize,
}

impl Style {
    /// Style for every terminal and file.
    pub const PLAIN: Self = Self {
        glyphs: Glyphs::Ascii,
        is_coloured: false,
        columns: LINE_CHARS,
    };

    /// All characters and no escape sequences.
    pub const UNSTYLED: Self = Self {
        glyphs: Glyphs::Blocks,
        ..Self::PLAIN
    };

    /// One line of untrusted text: no line ends, no characters that act on a terminal, none it
    /// cannot show, and no more than `TEXT_CHARS_MAX` of them.
    pub fn line(self, text: &str) -> String {
        self.characters(&shortened(text))
    }

    /// Text in characters the terminal can show.
    pub fn characters(self, text: &str) -> String {
        match self.glyphs {
            Glyphs::Blocks => text.to_owned(),
            Glyphs::Ascii => text.chars().fold(String::new(), |mut out, c| {
                spelled(&mut out, c);
                out
            }),
        }
    }

    /// Bold text, where the terminal can show it.
    pub fn bold(self, text: &str) -> String {
        self.sequence("1", text)
    }

    /// Text in the colour of a severity: red, yellow, or none.
    pub fn graded(self, severity: Severity, text: &str) -> String {
        match severity {
            Severity::High | Severity::Blocker => self.sequence("31", text),
            Severity::Medium => self.sequence("33", text),
            Severity::Low | Severity::Info => text.to_owned(),
        }
    }

    fn sequence(self, code: &str, text: &str) -> String {
        // SGR of ECMA-48: 1 is bold, 31 red, 33 yellow, and 0 ends them.
        if self.is_coloured {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Most characters of one text in a report; sentences of the lab are shorter, text from a peer may
/// have any length.
const TEXT_CHARS_MAX: usize = 500;

/// One line of at most `TEXT_CHARS_MAX` characters without any that act on what shows them.
pub fn shortened(text: &str) -> String {
    printable_start(&text.replace('\n', " "), TEXT_CHARS_MAX)
}

/// Our own signs in ASCII. Letters of others stay: their owner can read them.
const SPELLED: [(char, &str); 13] = [
    ('≥', ">="),
    ('≤', "<="),
    ('→', "->"),
    ('⇄', "<->"),
    ('×', "x"),
    ('·', "*"),
    ('−', "-"),
    ('–', "-"),
    ('…', "..."),
    ('µ', "u"),
    ('μ', "u"),
    ('²', "2"),
    ('±', "+/-"),
];

fn spelled(out: &mut String, c: char) {
    match SPELLED.iter().find(|(sign, _)| *sign == c) {
        Some((_, ascii)) => out.push_str(ascii),
        None => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_stays_one_line_of_bounded_length() {
        let blocks = Style {
            glyphs: Glyphs::Blocks,
            is_coloured: true,
            ..Style::PLAIN
        };
        assert_eq!(
            blocks.line("nginx\u{1b}[31m\r\nx ≥ é"),
            "nginx\u{fffd}[31m\u{fffd} x ≥ é"
        );
        assert_eq!(Style::PLAIN.line("p99 ≥ 5 s → é"), "p99 >= 5 s -> é");
        assert_eq!(
            blocks.line(&"a".repeat(1_000_000)).chars().count(),
            TEXT_CHARS_MAX + 1
        );
    }

    #[test]
    fn escape_sequences_are_for_terminals_only() {
        assert_eq!(Style::PLAIN.bold("x"), "x");
    }
}
