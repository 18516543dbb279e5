//! Short reports: what does not fit a small terminal is left to the long report.

use crate::blocks::Block;
use crate::style::Style;
use crate::wrap::LINE_CHARS;

/// Column of the texts of a short report; its longest label is `Requests`.
pub const SHORT_COLUMN: usize = 9;

/// How much a reader needs a part of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The answer, which is never dropped.
    Answer,
    /// What to do.
    Step,
    /// What else was found.
    Finding,
    /// More of what is shown already.
    Detail,
}

/// The parts that fit `lines_max` lines of at least 80 characters, in their order. Of those that a
/// reader needs least the last one is dropped first.
pub fn fitted(mut parts: Vec<(Need, Block)>, lines_max: usize, style: Style) -> Vec<Block> {
    let style = Style {
        columns: style.columns.max(LINE_CHARS),
        ..style
    };
    let mut lines: usize = parts.iter().map(|(_, block)| block.lines(style)).sum();

    while lines > lines_max {
        let needs = parts.iter().enumerate().map(|(at, (need, _))| (*need, at));
        let Some((_, at)) = needs.max().filter(|(need, _)| *need > Need::Answer) else {
            break;
        };
        lines -= parts.remove(at).1.lines(style);
    }

    parts.into_iter().map(|(_, block)| block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_what_is_needed_least_is_dropped_first() {
        let line = |need, text: &str| (need, Block::entry("", 0, text));
        let parts = || {
            vec![
                line(Need::Answer, "limit"),
                line(Need::Detail, "metrics"),
                line(Need::Step, "command"),
                line(Need::Detail, "more"),
                line(Need::Answer, "details"),
            ]
        };
        let shown = |lines_max| {
            let blocks = fitted(parts(), lines_max, Style::PLAIN).into_iter();
            let mut text = String::new();
            blocks.for_each(|block| block.text(&mut text, Style::PLAIN));
            text.lines().collect::<Vec<_>>().join(" ")
        };

        assert_eq!(shown(5), "limit metrics command more details");
        assert_eq!(shown(4), "limit metrics command details");
        assert_eq!(shown(2), "limit details");
        assert_eq!(shown(1), "limit details");
    }
}
