//! Treatment of DSCP and ECN by a path.

use std::collections::BTreeMap;

use linerate_model::path::{EcnTreatment, Marks, PathDirection};

/// Bits of the ECN field in a TOS byte (RFC 3168 section 5).
const ECN: u8 = 0b11;

/// Congestion experienced.
const CE: u8 = 0b11;

/// Marks by the TOS bytes of datagrams: direction, as sent, as received. For each DSCP the value
/// that most datagrams arrived with. A router may set CE on a capable packet, which is no change.
/// `None` of nothing.
pub(super) fn marks(tos: &[(PathDirection, u8, u8)]) -> Option<Marks> {
    let mut arrived: BTreeMap<(PathDirection, u8), BTreeMap<u8, u64>> = BTreeMap::new();
    let mut treatments: BTreeMap<PathDirection, Vec<EcnTreatment>> = BTreeMap::new();

    for (direction, sent, received) in tos {
        *arrived
            // The DSCP is the upper six bits of the byte (RFC 2474 section 3).
            .entry((*direction, sent >> 2))
            .or_default()
            .entry(received >> 2)
            .or_default() += 1;
        // A packet that is not ECN-capable has no mark to lose.
        if sent & ECN != 0 {
            treatments
                .entry(*direction)
                .or_default()
                .push(treatment(sent & ECN, received & ECN));
        }
    }

    let most = |counts: &BTreeMap<u8, u64>| {
        counts
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(dscp, _)| *dscp)
    };
    let dscp = arrived
        .iter()
        .filter_map(|((direction, sent), counts)| Some((*direction, *sent, most(counts)?)));
    let ecn = treatments
        .iter()
        .map(|(direction, found)| (*direction, worst(found)));

    (!tos.is_empty()).then(|| Marks {
        dscp: dscp.collect(),
        ecn: ecn.collect(),
    })
}

fn treatment(sent: u8, received: u8) -> EcnTreatment {
    match received {
        0 => EcnTreatment::Cleared,
        CE => EcnTreatment::Kept,
        same if same == sent => EcnTreatment::Kept,
        _ => EcnTreatment::Changed,
    }
}

fn worst(found: &[EcnTreatment]) -> EcnTreatment {
    let is = |treatment| found.contains(&treatment);
    match () {
        () if is(EcnTreatment::Cleared) => EcnTreatment::Cleared,
        () if is(EcnTreatment::Changed) => EcnTreatment::Changed,
        () => EcnTreatment::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: PathDirection = PathDirection::Up;
    const DOWN: PathDirection = PathDirection::Down;

    #[test]
    fn each_dscp_has_what_arrived_for_most() {
        // EF (46) is rewritten to 0 on the way up and kept on the way down; best effort is kept.
        let tos = [
            (UP, 184, 0),
            (UP, 184, 0),
            (UP, 184, 184),
            (UP, 0, 0),
            (DOWN, 184, 184),
        ];
        let found = marks(&tos).expect("marks");
        assert_eq!(found.dscp, [(DOWN, 46, 46), (UP, 0, 0), (UP, 46, 0)]);
        assert_eq!(found.ecn, []);
        assert_eq!(marks(&[]), None);
    }

    #[test]
    fn ecn_is_kept_cleared_or_changed() {
        let table = [
            (
                vec![(0b10, 0b10), (0b01, 0b01), (0b11, 0b11)],
                EcnTreatment::Kept,
            ),
            (vec![(0b10, 0b11), (0b01, 0b01)], EcnTreatment::Kept),
            (vec![(0b10, 0b00), (0b01, 0b01)], EcnTreatment::Cleared),
            (vec![(0b10, 0b01)], EcnTreatment::Changed),
            (vec![(0b11, 0b10)], EcnTreatment::Changed),
        ];
        for (pairs, expected) in table {
            let tos: Vec<_> = pairs
                .iter()
                .map(|(sent, received)| (UP, *sent, *received))
                .collect();
            assert_eq!(
                marks(&tos).expect("marks").ecn,
                [(UP, expected)],
                "{pairs:?}"
            );
        }
    }
}
