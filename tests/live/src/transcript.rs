//! Text reports with everything taken out that differs from run to run.

/// Takes the numbers out of a report and leaves its layout.
///
/// A number after blanks is a padded column: blanks and digits together become `#`, one per
/// character, so that the width of the column stays visible. Any other number becomes `N`. Units
/// follow the size of a number and become `U`.
pub fn normalise(text: &str) -> String {
    text.lines()
        .map(normalise_line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn normalise_line(line: &str) -> String {
    if let Some((label, _)) = line.split_once("Cookie: ") {
        return format!("{label}Cookie: N");
    }
    if line.starts_with("iperf 3.") {
        return "iperf VERSION".to_owned();
    }

    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let end = number
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(number.len());
        let (digits, after) = number.split_at(end);
        let text = before.trim_end_matches(' ');
        let width = before.len() - text.len();

        // Percentages and ratios have no fixed width in any report.
        if width == 0 || after.starts_with(['%', '/']) {
            out.push_str(before);
            out.push('N');
        } else {
            out.push_str(text);
            out.push_str(&"#".repeat(width + digits.len()));
        }

        rest = match without_unit(after) {
            Some(after) => {
                out.push_str(" U");
                after
            }
            None => after,
        };
    }

    out.push_str(rest);
    out
}

fn without_unit(after: &str) -> Option<&str> {
    const UNITS: [&str; 10] = [
        " KBytes", " MBytes", " GBytes", " TBytes", " Bytes", " Kbits", " Mbits", " Gbits",
        " Tbits", " bits",
    ];
    UNITS.iter().find_map(|unit| after.strip_prefix(unit))
}

/// The rows in which two texts differ, or `None` when there are none.
pub fn difference(original: &str, ours: &str) -> Option<String> {
    let (original, ours): (Vec<_>, Vec<_>) = (original.lines().collect(), ours.lines().collect());
    let show = |row: usize| match (original.get(row), ours.get(row)) {
        (left, right) if left == right => None,
        (left, right) => Some(format!(
            "line {row}\n  original {left:?}\n  ours     {right:?}"
        )),
    };
    let rows: Vec<_> = (0..original.len().max(ours.len()))
        .filter_map(show)
        .collect();

    (!rows.is_empty()).then(|| rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{difference, normalise};

    #[test]
    fn equal_layouts_with_different_numbers_are_equal() {
        let left = "[  5]   0.00-1.00   sec   119 MBytes  1.00 Gbits/sec    0    767 KBytes       ";
        let right =
            "[ 17]   0.00-2.00   sec  12.1 GBytes   998 Mbits/sec  112   1.12 MBytes       ";
        assert_eq!(normalise(left), normalise(right));
    }

    #[test]
    fn a_shifted_column_is_a_difference() {
        let left = "[  5]   0.00-1.00   sec   119 MBytes  1.00 Gbits/sec    0             sender";
        let right = "[  5]   0.00-1.00   sec   119 MBytes  1.00 Gbits/sec    0            sender";
        assert!(difference(&normalise(left), &normalise(right)).is_some());
    }

    #[test]
    fn counters_without_padding_may_have_any_width() {
        let left = "1.19 MBytes  9.96 Mbits/sec  0.226 ms  0/38 (0%)  receiver";
        let right = "1.19 MBytes  9.96 Mbits/sec  0.097 ms  12/1038 (1.2%)  receiver";
        assert_eq!(normalise(left), normalise(right));
    }

    #[test]
    fn a_missing_line_is_a_difference() {
        assert!(difference("a\nb", "a").is_some());
        assert_eq!(difference("a\nb", "a\nb"), None);
    }
}
