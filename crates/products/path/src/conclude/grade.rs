//! Grade of a path by what load adds to the delay of others.

use linerate_model::path::{Grade, PhaseKind, ProbeKind};

/// Increase in ms below which a path has a letter (scale of the DSLReports speed test); `F` beyond.
const LETTERS: [(i64, &str); 5] = [(5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D")];

/// Grade by the load that adds most to the median round trip, each with what it adds in ns. `None`
/// without a load, and where the increase of one is not known: it may be the largest.
pub(super) fn grade(loads: &[(PhaseKind, Option<i64>)], probe: ProbeKind) -> Option<Grade> {
    let known: Option<Vec<(PhaseKind, i64)>> = loads
        .iter()
        .map(|(kind, added_ns)| Some((*kind, (*added_ns)?)))
        .collect();
    // The mean of down and up hid the worse one: +91 and +410 ms were a D.
    let (load, added_ns) = known?.into_iter().max_by_key(|(_, added_ns)| *added_ns)?;
    Some(Grade::new(letter(added_ns), load, added_ns, probe))
}

fn letter(added_ns: i64) -> &'static str {
    const NS_PER_MS: i64 = 1_000_000;
    LETTERS
        .iter()
        .find(|(below_ms, _)| added_ns < below_ms * NS_PER_MS)
        .map_or("F", |(_, letter)| letter)
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
                grade(&[(PhaseKind::Up, Some(added_ns))], ProbeKind::Udp).map(|grade| grade.letter),
                Some(letter.to_owned()),
                "{added_ns}"
            );
        }
    }

    #[test]
    fn worst_load_decides_and_none_may_be_unknown() {
        use PhaseKind::{Both, Down, Up};

        let table = [
            (
                vec![(Down, Some(91_000_000)), (Up, Some(410_000_000))],
                Some(("F", Up, 410_000_000)),
            ),
            (
                vec![
                    (Down, Some(4_000_000)),
                    (Up, Some(2_000_000)),
                    (Both, Some(203_000_000)),
                ],
                Some(("D", Both, 203_000_000)),
            ),
            (vec![(Down, Some(91_000_000)), (Up, None)], None),
            (vec![], None),
        ];
        for (loads, expected) in table {
            let expected = expected.map(|(letter, load, added_ns)| {
                Grade::new(letter, load, added_ns, ProbeKind::Icmp)
            });
            assert_eq!(grade(&loads, ProbeKind::Icmp), expected, "{loads:?}");
        }
    }
}
