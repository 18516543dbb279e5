//! Lines of a screen, from the top, with the keys on the last one.

use linerate_document::Glyphs;
use linerate_model::printable::printable;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::view::View;

/// Role of a piece of text; colours only repeat what the words say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Title,
    Head,
    Good,
    Warning,
    Bad,
    Curve,
}

/// A screen in the making.
pub(crate) struct Page {
    pub view: View,
    lines: Vec<Line<'static>>,
}

/// Blanks between two pieces of a line.
const GAP: usize = 2;

impl Page {
    pub(crate) fn new(view: View) -> Self {
        Self {
            view,
            lines: Vec::new(),
        }
    }

    pub(crate) fn width(&self) -> usize {
        usize::from(self.view.columns)
    }

    /// Lines that are left above the keys.
    pub(crate) fn rows_left(&self) -> usize {
        usize::from(self.view.rows).saturating_sub(self.lines.len() + 1)
    }

    /// Text of any origin.
    pub(crate) fn piece(&self, tone: Tone, text: impl AsRef<str>) -> Span<'static> {
        Span::styled(self.plain(text.as_ref()), self.style(tone))
    }

    pub(crate) fn word(&self, text: impl AsRef<str>) -> Span<'static> {
        self.piece(Tone::Plain, text)
    }

    /// One line of characters that the terminal has.
    fn plain(&self, text: &str) -> String {
        let is_ascii = self.view.glyphs == Glyphs::Ascii;
        let line = printable(&text.replace('\n', " "));
        line.chars()
            .map(|c| if is_ascii && !c.is_ascii() { '?' } else { c })
            .collect()
    }

    fn style(&self, tone: Tone) -> Style {
        let modifier = match tone {
            Tone::Title | Tone::Bad => Modifier::BOLD,
            Tone::Head => Modifier::UNDERLINED,
            _ => Modifier::empty(),
        };
        let style = Style::new().add_modifier(modifier);
        if !self.view.is_coloured {
            return style;
        }

        match tone {
            Tone::Good => style.fg(Color::Green),
            Tone::Warning => style.fg(Color::Yellow),
            Tone::Bad => style.fg(Color::Red),
            Tone::Curve => style.fg(Color::Cyan),
            Tone::Plain | Tone::Title | Tone::Head => style,
        }
    }

    /// Adds a line, cut at the right.
    pub(crate) fn line(&mut self, pieces: Vec<Span<'static>>) {
        self.lines.push(Line::from(pieces));
    }

    /// Adds pieces with gaps; a piece that no longer fits begins a line. A small terminal gets the
    /// first line or two.
    pub(crate) fn flow(&mut self, pieces: Vec<Span<'static>>) {
        let lines_before = self.lines.len();
        self.flow_all(pieces);

        if self.is_small() {
            let lines_max = if lines_before == 0 { 2 } else { 1 };
            self.lines.truncate(lines_before + lines_max);
        }
    }

    /// Rows are scarce.
    pub(crate) fn is_small(&self) -> bool {
        self.view.rows <= 12
    }

    fn flow_all(&mut self, pieces: Vec<Span<'static>>) {
        let width = self.width();
        let mut line: Vec<Span<'static>> = Vec::new();
        let mut used = 0;

        for piece in pieces.into_iter().filter(|piece| !piece.content.is_empty()) {
            let needed = piece.width();
            // A piece that is wider than the line stands alone and is cut.
            if used > 0 && used + GAP + needed > width {
                self.line(std::mem::take(&mut line));
                used = 0;
            }

            if used > 0 {
                line.push(Span::raw(" ".repeat(GAP)));
                used += GAP;
            }

            used += needed;
            line.push(piece);
        }

        if !line.is_empty() {
            self.line(line);
        }
    }

    pub(crate) fn blank(&mut self) {
        self.lines.push(Line::default());
    }

    /// Draws everything, with the keys below.
    pub(crate) fn render(mut self, buffer: &mut Buffer) {
        let rows = usize::from(self.view.rows);
        self.lines.truncate(rows.saturating_sub(1));
        let keys = self.keys();
        let columns = self.view.columns;

        for (y, line) in (0..).zip(&self.lines) {
            buffer.set_line(0, y, line, columns);
        }

        if let Some(last) = self.view.rows.checked_sub(1) {
            buffer.set_line(0, last, &keys, columns);
        }
    }

    fn keys(&self) -> Line<'static> {
        let pause = if self.view.is_paused {
            "p continue"
        } else {
            "p pause"
        };
        let help = if self.view.is_help {
            "? back"
        } else {
            "? help"
        };
        let mut pieces = vec![Span::raw(format!("q quit  {pause}  {help}"))];

        if self.view.is_paused {
            pieces.push(Span::raw("  "));
            pieces.push(self.piece(Tone::Warning, "PAUSED"));
        }

        Line::from(pieces)
    }
}
