//! Grade of a path by what load adds to the delay of others.

use linerate_model::path::{Grade, ProbeKind};

/// Increase in ms below which a path has a letter (scale of the DSLReports speed test); `F` beyond.
const LETTERS: [(i64, &str); 5] = [(5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D")];

/// Grade by the increase of the median round trip in each direction that was loaded, in ns: their mean decides. `None`
/// without a direction.
#[must_use]
pub fn grade(added_ns: &[i64], probe: ProbeKind) -> Option<Grade> {
    let directions = i128::try_from(added_ns.len()).ok().filter(|n| *n > 0)?;
    let sum: i128 = added_ns.iter().map(|ns| i128::from(*ns)).sum();
    let added_ns = i64::try_from(sum / directions).ok()?;
    Some(Grade::new(letter(added_ns), added_ns, probe))
}

fn letter(added_ns: i64) -> &'static str {
    const NS_PER_MS: i64 = 1_000_000;
    LETTERS.iter().find(|(below_ms, _)| added_ns < below_ms * NS_PER_MS).map_or("F", |(_, letter)| letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_begin_at_their_borders() {
        let table = [
            (-3_000_000, "A+"),
            (4_999_999, "A+"),
            (5_000_000, "A"),
            (29_999_999, "A"),
            (30_000_000, "B"),
            (59_999_999, "B"),
            (60_000_000, "C"),
            (199_999_999, "C"),
            (200_000_000, "D"),
            (399_999_999, "D"),
            (400_000_000, "F"),
        ];
        for (added_ns, letter) in table {
            assert_eq!(
                grade(&[added_ns], ProbeKind::Udp).map(|grade| grade.letter),
                Some(letter.to_owned()),
                "{added_ns}"
            );
        }
    }

    #[test]
    fn the_mean_of_both_directions_decides() {
        let found = grade(&[99_600_000, 95_600_000], ProbeKind::Icmp);
        assert_eq!(found, Some(Grade::new("C", 97_600_000, ProbeKind::Icmp)));
        assert_eq!(grade(&[], ProbeKind::Udp), None);
    }
}
