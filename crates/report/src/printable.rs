//! Text of others on a terminal or in a page.

/// Text from a file, a peer or a kernel may hold control characters, which must not reach a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hostile(c) && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Text with escapes in place of control characters, except for those in `kept`.
pub(crate) fn without_controls(text: &str, kept: &[char]) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if c.is_control() && !kept.contains(&c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character acts on what shows it: control characters, and those that turn the direction of what follows or
/// are not seen at all, with which text can pass for another.
pub(crate) fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_replaced() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\u{9b}\r\né"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\u{fffd}\né");
    }
}
