//! Text of others on a terminal.

/// Text from a file or a kernel may hold control characters, which must not reach a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c })
        .collect()
}
