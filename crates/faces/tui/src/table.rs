//! A table whose columns depend on the width.

use ratatui_core::text::Span;

use crate::page::{Page, Tone};

/// A column: heading, width, whether its cells end at the right, and the order in which columns are
/// taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub head: &'static str,
    pub width: usize,
    pub is_right: bool,
    /// Columns with small numbers are taken first.
    pub order: usize,
}

impl Column {
    /// A column whose cells end at the right.
    pub(crate) const fn right(head: &'static str, width: usize, order: usize) -> Self {
        Self {
            is_right: true,
            ..Self::left(head, width, order)
        }
    }

    /// A column whose cells begin at the left.
    pub(crate) const fn left(head: &'static str, width: usize, order: usize) -> Self {
        Self {
            head,
            width,
            is_right: false,
            order,
        }
    }
}

/// Narrowest line of points behind the columns.
const CURVE_MIN: usize = 8;

/// Positions of the columns that fit.
pub(crate) fn fitting(columns: &[Column], width: usize) -> Vec<usize> {
    let mut by_order: Vec<usize> = (0..columns.len()).collect();
    by_order.sort_by_key(|at| columns[*at].order);
    // The last column has no blank behind it.
    let mut left = width + 1;
    let mut taken: Vec<usize> = by_order
        .into_iter()
        // A column that does not fit ends the choice, so columns appear in their order of
        // importance.
        .map_while(|at| {
            left = left.checked_sub(columns[at].width + 1)?;
            Some(at)
        })
        .collect();
    // Chosen by importance, shown in the order of the table.
    taken.sort_unstable();

    taken
}

/// A row of the table: its cells in the order of the columns, and what the rest of the line holds.
pub(crate) type Row = (Vec<(Tone, String)>, Box<dyn Fn(usize) -> String>);

/// Adds the heading and as many rows as there is room for; the last line counts the others.
pub(crate) fn draw(page: &mut Page, columns: &[Column], rows: Vec<Row>, others: &str) {
    let taken = fitting(columns, page.width());
    let heads = columns
        .iter()
        .map(|column| (Tone::Head, column.head.to_owned()))
        .collect::<Vec<_>>();
    // The heading takes a line.
    let room = page.rows_left().saturating_sub(1);
    let all = rows.len();
    let shown = if all > room {
        room.saturating_sub(1)
    } else {
        all
    };

    let line = cells(page, columns, &taken, &heads);
    page.line(line);

    for (row, curve) in rows.into_iter().take(shown) {
        let mut line = cells(page, columns, &taken, &row);
        let used: usize = line.iter().map(Span::width).sum();
        let left = page.width().saturating_sub(used + 1);
        if left >= CURVE_MIN {
            line.push(Span::raw(" "));
            line.push(page.piece(Tone::Curve, curve(left)));
        }

        page.line(line);
    }

    if shown < all {
        let more = page.word(format!("and {} more {others}", all - shown));
        page.line(vec![more]);
    }
}

fn cells(
    page: &Page,
    columns: &[Column],
    taken: &[usize],
    row: &[(Tone, String)],
) -> Vec<Span<'static>> {
    let mut line = Vec::new();
    for at in taken {
        let (Some(column), Some((tone, text))) = (columns.get(*at), row.get(*at)) else {
            continue;
        };
        if !line.is_empty() {
            line.push(Span::raw(" "));
        }

        let text: String = text.chars().take(column.width).collect();
        let blanks = Span::raw(" ".repeat(column.width.saturating_sub(text.chars().count())));
        let text = page.piece(*tone, text);
        line.extend(if column.is_right {
            [blanks, text]
        } else {
            [text, blanks]
        });
    }

    line
}
