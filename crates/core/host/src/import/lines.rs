//! What the readers of output have in common: lines, words and numbers.

pub(super) use super::sections::Block;
use crate::prelude::*;

/// `key: value`, both without blanks around them.
pub(super) fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    Some((key.trim(), value.trim()))
}

/// The word behind another one.
pub(super) fn after<'a>(words: &[&'a str], wanted: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == wanted)?;
    words.get(at + 1).copied()
}

/// Blanks at the beginning of a line; a tab counts as eight.
pub(super) fn indent(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| c.is_whitespace());
    blanks.map(|c| if c == '\t' { 8 } else { 1 }).sum()
}

/// The leading number: `1000Mb/s` is 1000.
pub(super) fn leading_number(word: &str) -> Option<f64> {
    let end = word
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(word.len());
    word.get(..end)?
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// `on` and `off`.
pub(super) fn switch(word: &str) -> Option<bool> {
    match word.split_whitespace().next()? {
        "on" | "yes" | "enabled" => Some(true),
        "off" | "no" | "disabled" => Some(false),
        _ => None,
    }
}

/// `1Gbit`, `980Mbit`, `32Kbit`, `64000bit` of tc, in bit/s.
pub(super) fn tc_rate_bps(word: &str) -> Option<f64> {
    let number = leading_number(word)?;
    let unit = word
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        .to_ascii_lowercase();
    let factor = match unit.as_str() {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        "tbit" => 1e12,
        "bps" => 8.0,
        "kbps" => 8e3,
        "mbps" => 8e6,
        _ => return None,
    };

    Some(number * factor)
}

/// Reads the lines of one kind of output.
pub(super) trait LineReader {
    /// Reads a line; true if it was understood.
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool;

    /// Records what is known at the end of the block.
    fn finish(&mut self, _: &mut Snapshot) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_rates() {
        assert_eq!(tc_rate_bps("980Mbit"), Some(980e6));
        assert_eq!(leading_number("1000Mb/s"), Some(1000.0));
        assert_eq!(leading_number("Unknown!"), None);
        assert_eq!(indent("\t x"), 9);
    }
}
