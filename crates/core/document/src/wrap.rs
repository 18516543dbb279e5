//! Lines of a length people can read.

/// Longest line where nothing else is known of what shows it.
pub(crate) const LINE_CHARS: usize = 80;

/// Text in lines of at most `width` characters, broken between words; a longer word is cut. At
/// least one line.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    if text.chars().count() <= width {
        // As it is: the blanks inside may be there to align it.
        return vec![text.to_owned()];
    }

    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;

    for word in text.split_whitespace() {
        for piece in pieces(word, width) {
            let needed = piece.chars().count();
            if length > 0 && length + 1 + needed > width {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }

            if length > 0 {
                line.push(' ');
                length += 1;
            }

            line.push_str(&piece);
            length += needed;
        }
    }

    lines.push(line);
    lines
}

/// A word in parts of at most `width` characters.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    // By characters: a byte in the middle of one is no place to cut.
    letters
        .chunks(width)
        .map(|chunk| chunk.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_where_they_can() {
        assert_eq!(wrapped("", 9), [""]);
        assert_eq!(wrapped("a  b", 9), ["a  b"]);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("x aaaaaaaaa y", 4), ["x", "aaaa", "aaaa", "a y"]);
    }
}
