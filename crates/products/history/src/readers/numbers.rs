//! Numbers that programs write into their JSON although it has none for them.

use std::borrow::Cow;

/// Texts that C writes for a number that is not finite, the longest first.
const NOT_FINITE: [&str; 9] = [
    "-nan(ind)",
    "nan(ind)",
    "-infinity",
    "infinity",
    "-nan",
    "nan",
    "-inf",
    "inf",
    "1.#QNAN",
];

/// The text with `null` in the place of each member whose value is no number
/// (`"lost_percent": -nan`).
pub(super) fn without_nan(text: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut copied = 0;

    for (at, mark) in text.match_indices("\":") {
        let Some((start, end)) = nan_behind(text, at + mark.len()) else {
            continue;
        };
        repaired.push_str(&text[copied..start]);
        repaired.push_str("null");
        copied = end;
    }

    if copied == 0 {
        return Cow::Borrowed(text);
    }

    repaired.push_str(&text[copied..]);
    Cow::Owned(repaired)
}

/// Begin and end of such a value behind a colon.
fn nan_behind(text: &str, colon: usize) -> Option<(usize, usize)> {
    let value = text.get(colon..)?.trim_start_matches([' ', '\t']);
    let start = text.len() - value.len();

    let is_at_start = |word: &&str| {
        value
            .get(..word.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
    };
    let word = NOT_FINITE.into_iter().find(is_at_start)?;
    let next = value[word.len()..].chars().next();
    let is_whole = next.is_none_or(|next| matches!(next, ',' | '}') || next.is_whitespace());

    is_whole.then_some((start, start + word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_no_number_is_null_and_all_else_is_kept() {
        let rows = [
            (r#"{"a": -nan, "b":nan}"#, r#"{"a": null, "b":null}"#),
            ("{\"a\":\t-nan(ind)\n}", "{\"a\":\tnull\n}"),
            (r#"{"a":-Infinity,"b":1}"#, r#"{"a":null,"b":1}"#),
            (
                r#"{"a": "nan", "nan": 1, "b": nano}"#,
                r#"{"a": "nan", "nan": 1, "b": nano}"#,
            ),
            ("1,2,-nan,3", "1,2,-nan,3"),
        ];
        for (text, expected) in rows {
            assert_eq!(without_nan(text), expected);
        }
    }
}
