//! Ranges in names and addresses: `pc[01-20]`, `10.0.0.[101-120]`, `r[1-2]n[1,3,5-7]`.

use thiserror::Error;

use super::HOSTS_MAX;

/// Most bytes of a pattern.
const PATTERN_MAX_BYTES: usize = 1024;
/// Most digits of a number.
const DIGITS_MAX: usize = 9;

/// Why a pattern cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RangeError {
    /// The pattern is too long.
    #[error("a pattern of more than {PATTERN_MAX_BYTES} bytes")]
    Length,
    /// A bracket has no other one.
    #[error("{0:?}: unbalanced bracket")]
    Bracket(String),
    /// Not `FIRST-LAST` or a number.
    #[error("{0:?} is no range; examples: [01-20], [1,3,5-7]")]
    Range(String),
    /// Too many names.
    #[error("more than {HOSTS_MAX} names")]
    Count,
}

/// All names of a pattern, in order. The width of a first number with leading zeros is that of all.
///
/// # Errors
/// When a range is malformed or gives more than [`HOSTS_MAX`] names.
pub fn expand(pattern: &str) -> Result<Vec<String>, RangeError> {
    if pattern.len() > PATTERN_MAX_BYTES {
        return Err(RangeError::Length);
    }

    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, tail)) = rest.split_once('[') {
        let unmatched = || RangeError::Bracket(pattern.to_owned());
        let (inner, after) = tail.split_once(']').ok_or_else(unmatched)?;
        // A closing bracket before the opening one has no partner.
        if before.contains(']') {
            return Err(unmatched());
        }

        // The brackets of an IPv6 address are a part of it.
        let values = if inner.contains(':') {
            vec![format!("[{inner}]")]
        } else {
            values(inner)?
        };
        // The product is checked before it is built.
        if names.len().saturating_mul(values.len()) > HOSTS_MAX {
            return Err(RangeError::Count);
        }

        let joined = names.iter().flat_map(|name| {
            values
                .iter()
                .map(move |value| format!("{name}{before}{value}"))
        });
        names = joined.collect();
        rest = after;
    }

    if rest.contains(']') {
        return Err(RangeError::Bracket(pattern.to_owned()));
    }

    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// The names of several patterns, separated by commas outside of brackets.
///
/// # Errors
/// As [`expand`]; an empty pattern is none.
pub fn expand_list(list: &str) -> Result<Vec<String>, RangeError> {
    let mut is_inside = false;
    let patterns = list.split(|c| {
        is_inside = (is_inside || c == '[') && c != ']';
        c == ',' && !is_inside
    });
    let mut names = Vec::new();

    for pattern in patterns.map(str::trim) {
        if pattern.is_empty() {
            return Err(RangeError::Range(
                list.chars().take(PATTERN_MAX_BYTES).collect(),
            ));
        }

        names.extend(expand(pattern)?);
        if names.len() > HOSTS_MAX {
            return Err(RangeError::Count);
        }
    }

    Ok(names)
}

/// The numbers within a pair of brackets.
fn values(inner: &str) -> Result<Vec<String>, RangeError> {
    let mut values = Vec::new();
    for item in inner.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (from, to) =
            bounds(first, last).ok_or_else(|| RangeError::Range(format!("[{inner}]")))?;
        let count = (to - from) as usize + 1;
        if values.len() + count > HOSTS_MAX {
            return Err(RangeError::Count);
        }

        let width = if first.starts_with('0') {
            first.len()
        } else {
            1
        };
        values.extend((from..=to).map(|number| format!("{number:0width$}")));
    }

    Ok(values)
}

/// Both numbers, if they are in order and their widths fit.
fn bounds(first: &str, last: &str) -> Option<(u32, u32)> {
    let number = |text: &str| {
        let is_number = (1..=DIGITS_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok()).flatten()
    };
    let (from, to) = (number(first)?, number(last)?);
    let is_padded = |text: &str| text.len() > 1 && text.starts_with('0');
    let fits = !(is_padded(first) || is_padded(last)) || first.len() == last.len();

    (from <= to && fits).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pattern: &str) -> String {
        expand(pattern).expect(pattern).join(" ")
    }

    #[test]
    fn ranges_keep_their_width_and_multiply() {
        assert_eq!(joined("pc[08-11]"), "pc08 pc09 pc10 pc11");
        assert_eq!(joined("pc[8-11]"), "pc8 pc9 pc10 pc11");
        assert_eq!(
            joined("10.0.0.[101-103]"),
            "10.0.0.101 10.0.0.102 10.0.0.103"
        );
        assert_eq!(
            joined("r[1-2]n[1,3-4]x"),
            "r1n1x r1n3x r1n4x r2n1x r2n3x r2n4x"
        );
        assert_eq!(joined("nas"), "nas");
        assert_eq!(joined("[fd00::1]:5201"), "[fd00::1]:5201");
        assert_eq!(
            expand_list("h[1-2,5], nas").expect("a list").join(" "),
            "h1 h2 h5 nas"
        );
    }

    #[test]
    fn malformed_and_endless_ranges_are_refused() {
        for wrong in [
            "a[",
            "a]",
            "a[1",
            "a]b[1-2]",
            "a[]",
            "a[2-1]",
            "a[1-]",
            "a[x-y]",
            "a[01-100]",
            "a[1-02]",
            "a[-1]",
        ] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }

        assert_eq!(expand("a[1-10001]"), Err(RangeError::Count));
        assert_eq!(expand("a[1-1000][1-1000]"), Err(RangeError::Count));
        assert_eq!(
            expand("a[0-4294967295]"),
            Err(RangeError::Range("[0-4294967295]".to_owned()))
        );
        assert_eq!(expand_list("a,,b").map_err(|_| ()), Err(()));
        assert!(expand(&"a".repeat(PATTERN_MAX_BYTES + 1)).is_err());
    }
}
