//! Tables of texts: a row is a line, ` | ` separates its columns, and `#` begins a comment.

pub(crate) type Columns = std::str::Split<'static, &'static str>;

/// What `read` makes of the columns of each row; `None` for a row that lacks a column.
pub(crate) fn rows<T>(text: &'static str, read: fn(Columns) -> Option<T>) -> Vec<T> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| read(row.split(" | "))).collect()
}
