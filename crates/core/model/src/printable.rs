//! Text of others (of a peer, a file, a device, the environment) where a person reads it: on a
//! terminal, in a log, on a page.

use std::fmt::Write;

/// One line: every character that acts on what shows it is U+FFFD (the replacement character), line
/// ends and tabs too.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if acts(c) { REPLACEMENT } else { c })
        .collect()
}

/// The same for text of several lines, which keeps its line ends and tabs.
pub fn printable_lines(text: &str) -> String {
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !acts(c);
    text.chars()
        .map(|c| if is_kept(c) { c } else { REPLACEMENT })
        .collect()
}

/// One line of at most `chars_max` characters. Longer text ends with `…`.
pub fn printable_start(text: &str, chars_max: usize) -> String {
    // Text of a peer has any length: what is not shown is not copied.
    let end = text
        .char_indices()
        .nth(chars_max)
        .map_or(text.len(), |(end, _)| end);
    let (start, rest) = text.split_at(end);
    let mut shown = printable(start);

    if !rest.is_empty() {
        shown.push('…');
    }

    shown
}

/// JSON text with the same values, in which escapes take the place of the characters that act: JSON
/// itself demands that for the first 32 only. They occur in strings alone, except for line ends and
/// tabs between values.
pub fn printable_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // JSON escapes these two in strings: here they are the layout of the document.
        if !acts(c) || matches!(c, '\n' | '\t') {
            out.push(c);
            continue;
        }

        // RFC 8259 section 7: a character beyond U+FFFF is a pair of surrogates.
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }

    out
}

/// True if a character acts on what shows it instead of being seen: control characters (C0, DEL,
/// C1), with which text drives a terminal, and the characters of direction and format (Unicode,
/// category Cf), with which it passes for other text.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

const REPLACEMENT: char = '\u{fffd}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_on_what_shows_them_are_replaced() {
        let acting = [
            0x00..=0x1f,
            0x7f..=0x9f,
            0x61c..=0x61c,
            0x200b..=0x200f,
            0x2028..=0x202e,
            0x2066..=0x2069,
            0xfeff..=0xfeff,
            0xe0000..=0xe007f,
        ];
        for c in acting.into_iter().flatten().filter_map(char::from_u32) {
            assert_eq!(printable(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }

        for text in ["eth0", "µ ≥ é → 日本語", "\u{fffd}"] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn text_of_several_lines_keeps_its_line_ends() {
        assert_eq!(
            printable_lines("a\r\n\tb\u{1b}[2J"),
            "a\u{fffd}\n\tb\u{fffd}[2J"
        );
    }

    #[test]
    fn json_keeps_its_values() {
        let json = "{\n\t\"a\": \"x\u{9b}\u{202e}\u{e0041}é\"\n}";
        let escaped = "{\n\t\"a\": \"x\\u009b\\u202e\\udb40\\udc41é\"\n}";
        assert_eq!(printable_json(json), escaped);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(printable_start("a\u{1b}cd", 3), "a\u{fffd}c…");
        assert_eq!(printable_start("abc", 3), "abc");
    }
}
