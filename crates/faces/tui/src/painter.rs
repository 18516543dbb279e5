//! Writes screens as control sequences (ECMA-48), cell by cell where they differ from the screen
//! before.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};

/// The screen that a terminal shows.
#[derive(Debug)]
pub struct Painter<W> {
    output: W,
    shown: Option<Buffer>,
}

impl<W: Write> Painter<W> {
    /// A terminal whose screen is unknown.
    pub fn new(output: W) -> Self {
        Self {
            output,
            shown: None,
        }
    }

    /// Where it writes.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }

    /// The terminal no longer shows the screen before.
    pub fn forget(&mut self) {
        self.shown = None;
    }

    /// Shows a screen.
    ///
    /// # Errors
    /// The writer's.
    pub fn paint(&mut self, screen: Buffer) -> io::Result<()> {
        let mut text = String::new();
        let before = match self.shown.take() {
            Some(shown) if shown.area == screen.area => shown,
            // What a terminal shows after a change of its size is not known.
            _ => {
                text.push_str("\x1b[0m\x1b[2J");
                Buffer::empty(screen.area)
            }
        };

        let mut cursor = None;
        let mut style = None;

        for (x, y, cell) in before.diff(&screen) {
            if cursor != Some((x, y)) {
                let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
            }

            let new = (cell.fg, cell.modifier);
            if style != Some(new) {
                text.push_str(&attributes(cell));
                style = Some(new);
            }

            text.push_str(cell.symbol());
            // Wide characters move the cursor by two; the next cell then names its position.
            cursor = cell.symbol().is_ascii().then_some((x + 1, y));
        }

        // Attributes are reset, so other output of the terminal has none of them.
        if !text.is_empty() {
            text.push_str("\x1b[0m");
            self.output.write_all(text.as_bytes())?;
            self.output.flush()?;
        }

        self.shown = Some(screen);
        Ok(())
    }
}

/// SGR of the terminal's 16 colours.
fn attributes(cell: &Cell) -> String {
    let mut text = String::from("\x1b[0");
    for (modifier, code) in [(Modifier::BOLD, ";1"), (Modifier::UNDERLINED, ";4")] {
        if cell.modifier.contains(modifier) {
            text.push_str(code);
        }
    }

    text.push_str(match cell.fg {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Cyan => ";36",
        _ => "",
    });
    text.push('m');
    text
}

#[cfg(test)]
mod tests {
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    use super::*;

    fn painted(painter: &mut Painter<Vec<u8>>, text: &str) -> String {
        let mut screen = Buffer::empty(Rect::new(0, 0, 5, 2));
        screen.set_string(0, 0, text, Style::new().fg(Color::Green));
        painter.paint(screen).expect("memory");
        String::from_utf8(std::mem::take(painter.output())).expect("UTF-8")
    }

    #[test]
    fn only_what_differs_is_written() {
        let mut painter = Painter::new(Vec::new());
        assert_eq!(
            painted(&mut painter, "abc"),
            "\x1b[0m\x1b[2J\x1b[1;1H\x1b[0;32mabc\x1b[0m"
        );
        assert_eq!(painted(&mut painter, "abc"), "");
        assert_eq!(painted(&mut painter, "axc"), "\x1b[1;2H\x1b[0;32mx\x1b[0m");
        painter.forget();
        assert!(painted(&mut painter, "axc").contains("\x1b[2J"));
    }
}
