//! Where datagrams of one direction were lost.

use std::collections::BTreeMap;

use linerate_model::path::{EcnTreatment, EndpointPhase, LossByPlace, Marks, PathDirection};

/// Why a count of the other end is no figure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("implausible: {found} against {limit}")]
pub struct Implausible {
    /// Reported value, with its unit.
    pub found: String,
    /// Upper bound of the value, with its unit.
    pub limit: String,
}

/// Datagrams of one direction by the place where they were lost. The parts add up to what is
/// missing.
///
/// The sending program handed to its kernel the datagrams that it sent and those that its kernel
/// refused. Drops of queueing discipline and NIC are counted for all traffic of their host: they
/// are upper bounds, taken in the order of their certainty out of what is missing; the network is
/// the rest.
///
/// # Errors
/// More distinct datagrams arrived than were sent.
pub fn loss_by_place(
    sender: &EndpointPhase,
    receiver: &EndpointPhase,
) -> Result<LossByPlace, Implausible> {
    let sent = sender.datagrams_sent.saturating_add(sender.send_errors);
    let received = receiver.datagrams_received;
    let Some(missing) = sent.checked_sub(received) else {
        return Err(Implausible {
            found: format!("{received} datagrams received"),
            limit: format!("{sent} sent"),
        });
    };
    let mut rest = missing;
    let mut take = |drops: u64| {
        let part = drops.min(rest);
        rest -= part;
        part
    };
    // Counters of the test's own sockets come before those that a whole host shares. Without the
    // drops of its queue, what the sending host lost is not known.
    let refused = sender.qdisc_drops.map(|_| take(sender.send_errors));
    let socket = receiver.socket_drops.map(&mut take);
    let qdisc = sender.qdisc_drops.map(&mut take);
    let nic = receiver.host_drops.map(&mut take);

    // A shared counter is exact where it did not move, that of a socket where it is not above what
    // is missing: then it holds drops of other traffic.
    let is_sender_exact = sender.qdisc_drops == Some(0);
    let is_nic_exact = receiver.host_drops == Some(0);
    let is_socket_exact = socket.is_some() && socket == receiver.socket_drops;
    let places = [
        ("sender", is_sender_exact),
        (
            "network",
            is_sender_exact && is_nic_exact && is_socket_exact,
        ),
        ("nic", is_nic_exact),
        ("socket", is_socket_exact),
    ];
    let exact = places.iter().filter(|(_, is_exact)| *is_exact);

    let loss = LossByPlace {
        sent,
        received,
        sender: refused.zip(qdisc).map(|(refused, qdisc)| refused + qdisc),
        network: rest,
        nic,
        socket,
        exact: exact.map(|(name, _)| (*name).to_owned()).collect(),
    };

    Ok(loss)
}

/// `network or receiving host`: the places whose losses [`LossByPlace::network`] has.
pub(crate) fn network_and_uncounted(loss: &LossByPlace) -> String {
    let sender = loss.sender.is_none().then_some("sending host");
    let receiver = match (loss.nic, loss.socket) {
        (None, None) => Some("receiving host"),
        (None, Some(_)) => Some("receiving host before the socket"),
        (Some(_), None) => Some("receive socket"),
        (Some(_), Some(_)) => None,
    };
    let places = [sender, Some("network"), receiver];
    places
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" or ")
}

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
    use proptest::prelude::*;

    use super::*;

    fn ends(
        sent: u64,
        errors: u64,
        qdisc: Option<u64>,
        received: u64,
        socket: Option<u64>,
        host: Option<u64>,
    ) -> [EndpointPhase; 2] {
        let sender = EndpointPhase {
            datagrams_sent: sent,
            send_errors: errors,
            qdisc_drops: qdisc,
            ..EndpointPhase::default()
        };
        let receiver = EndpointPhase {
            datagrams_received: received,
            socket_drops: socket,
            host_drops: host,
            ..EndpointPhase::default()
        };
        [sender, receiver]
    }

    #[test]
    fn places_are_taken_in_the_order_of_their_certainty() {
        let parts = |ends: [EndpointPhase; 2]| {
            let loss = loss_by_place(&ends[0], &ends[1]).expect("plausible");
            (
                [loss.sender, Some(loss.network), loss.nic, loss.socket],
                loss.exact.join(" "),
                network_and_uncounted(&loss),
            )
        };
        // All in the network; all counters known and at rest.
        let quiet = parts(ends(1000, 0, Some(0), 980, Some(0), Some(0)));
        assert_eq!(
            quiet,
            (
                [0, 20, 0, 0].map(Some),
                "sender network nic socket".to_owned(),
                "network".to_owned()
            )
        );

        // 5 refused, 30 in the socket, at most 10 in the queue, at most 7 in the NIC, and the rest
        // of 60.
        assert_eq!(
            parts(ends(995, 5, Some(10), 940, Some(30), Some(7))),
            (
                [15, 8, 7, 30].map(Some),
                "socket".to_owned(),
                "network".to_owned()
            )
        );
        // Shared counters count foreign traffic too: what is missing caps them.
        assert_eq!(
            parts(ends(1000, 0, Some(500), 990, Some(4), Some(500))),
            (
                [6, 0, 0, 4].map(Some),
                "socket".to_owned(),
                "network".to_owned()
            )
        );

        // A server of iperf3 counts at no place.
        assert_eq!(
            parts(ends(1000, 0, Some(0), 990, None, None)),
            (
                [Some(0), Some(10), None, None],
                "sender".to_owned(),
                "network or receiving host".to_owned()
            )
        );
        assert_eq!(
            parts(ends(995, 5, None, 985, Some(3), None)),
            (
                [None, Some(12), None, Some(3)],
                "socket".to_owned(),
                "sending host or network or receiving host before the socket".to_owned()
            )
        );
    }

    #[test]
    fn more_received_than_sent_is_implausible() {
        let [sender, receiver] = ends(1000, 0, None, 1001, None, None);
        let reason = loss_by_place(&sender, &receiver).map_err(|e| e.to_string());
        assert_eq!(
            reason,
            Err("implausible: 1001 datagrams received against 1000 sent".to_owned())
        );
    }

    proptest! {
        #[test]
        fn parts_add_up_to_what_is_missing(
            (sent, errors, received) in (any::<u64>(), any::<u64>(), any::<u64>()),
            (qdisc, socket, host) in (any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<u64>>()),
        ) {
            let [sender, receiver] = ends(sent, errors, qdisc, received, socket, host);
            match loss_by_place(&sender, &receiver) {
                Ok(loss) => {
                    let counted = [loss.sender, loss.nic, loss.socket];
                    let parts = loss.network + counted.into_iter().flatten().sum::<u64>();
                    prop_assert_eq!(parts + loss.received, loss.sent);
                }
                Err(_) => prop_assert!(received > sent.saturating_add(errors)),
            }
        }
    }
}

#[cfg(test)]
mod marks_tests {
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
