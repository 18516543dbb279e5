//! Ranges in names and addresses: `pc[01-20]`, `10.0.0.[101-120]`, `r[1-2]n[1,3,5-7]`.

use super::HOSTS_MAX;

/// Most bytes of a pattern.
const PATTERN_MAX_BYTES: usize = 1024;
/// Most digits of a number.
const DIGITS_MAX: usize = 9;

/// All names of a pattern, in order. The width of a first number with leading zeros is that of all.
///
/// # Errors
/// When a range is malformed or gives more than [`HOSTS_MAX`] names.
pub fn expand(pattern: &str) -> Result<Vec<String>, String> {
    if pattern.len() > PATTERN_MAX_BYTES {
        return Err(format!("a pattern of more than {PATTERN_MAX_BYTES} bytes"));
    }

    let unbalanced = || format!("{pattern:?}: unbalanced bracket");
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, tail)) = rest.split_once('[') {
        let (inner, after) = tail.split_once(']').ok_or_else(unbalanced)?;
        // A closing bracket before the opening one has no partner.
        if before.contains(']') {
            return Err(unbalanced());
        }

        // The brackets of an IPv6 address are a part of it.
        let values = if inner.contains(':') {
            vec![format!("[{inner}]")]
        } else {
            values(inner)?
        };
        // The product is checked before it is built.
        check_count(names.len().saturating_mul(values.len()))?;

        let mut joined = Vec::new();
        for name in &names {
            for value in &values {
                joined.push(format!("{name}{before}{value}"));
            }
        }
        names = joined;
        rest = after;
    }

    if rest.contains(']') {
        return Err(unbalanced());
    }

    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

fn check_count(names: usize) -> Result<(), String> {
    match names {
        0..=HOSTS_MAX => Ok(()),
        _ => Err(format!("more than {HOSTS_MAX} names")),
    }
}

fn no_range(text: &str) -> String {
    format!("{text:?} is no range; examples: [01-20], [1,3,5-7]")
}

/// The names of several patterns, separated by commas outside of brackets.
///
/// # Errors
/// As [`expand`]; an empty pattern is none.
pub fn expand_list(list: &str) -> Result<Vec<String>, String> {
    let mut is_inside = false;
    let patterns = list.split(|c| {
        is_inside = (is_inside || c == '[') && c != ']';
        c == ',' && !is_inside
    });

    let mut names = Vec::new();
    for pattern in patterns.map(str::trim) {
        if pattern.is_empty() {
            let begin: String = list.chars().take(PATTERN_MAX_BYTES).collect();
            return Err(no_range(&begin));
        }

        names.extend(expand(pattern)?);
        check_count(names.len())?;
    }

    Ok(names)
}

/// The numbers within a pair of brackets.
fn values(inner: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for item in inner.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let Some((from, to)) = bounds(first, last) else {
            return Err(no_range(&format!("[{inner}]")));
        };
        check_count(values.len() + (to - from) as usize + 1)?;

        let width = if first.starts_with('0') {
            first.len()
        } else {
            1
        };
        for number in from..=to {
            values.push(format!("{number:0width$}"));
        }
    }

    Ok(values)
}

/// Both numbers, if they are in order and their widths fit.
fn bounds(first: &str, last: &str) -> Option<(u32, u32)> {
    for text in [first, last] {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || text.len() > DIGITS_MAX {
            return None;
        }
    }

    let is_padded = |text: &str| text.len() > 1 && text.starts_with('0');
    let fits = !(is_padded(first) || is_padded(last)) || first.len() == last.len();
    let from = first.parse().ok()?;
    let to = last.parse().ok()?;
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

        let many = Err("more than 10000 names".to_owned());
        assert_eq!(expand("a[1-10001]"), many);
        assert_eq!(expand("a[1-1000][1-1000]"), many);
        let wide = expand("a[0-4294967295]").expect_err("too many digits");
        assert!(wide.starts_with("\"[0-4294967295]\" is no range"), "{wide}");
        assert_eq!(expand_list("a,,b").map_err(|_| ()), Err(()));
        assert!(expand(&"a".repeat(PATTERN_MAX_BYTES + 1)).is_err());
    }
}
