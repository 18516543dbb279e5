//! Where datagrams of one direction were lost.

use linerate_model::path::{EndpointPhase, LossByPlace};

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
    let mut take = |drops: Option<u64>| {
        let part = drops.unwrap_or_default().min(rest);
        rest -= part;
        // A counter above what is missing holds drops of other traffic: its part is a bound.
        (part, drops == Some(part))
    };
    // Counters of the test's own sockets come before those that a whole host shares.
    let (refused, _) = take(Some(sender.send_errors));
    let (socket, is_socket_exact) = take(receiver.socket_drops);
    let (qdisc, _) = take(sender.qdisc_drops);
    let (nic, _) = take(receiver.host_drops);

    // A shared counter is exact where it did not move.
    let is_sender_exact = sender.qdisc_drops == Some(0);
    let is_nic_exact = receiver.host_drops == Some(0);
    let is_network_exact = is_sender_exact && is_nic_exact && is_socket_exact;
    let places = [
        ("sender", is_sender_exact),
        ("network", is_network_exact),
        ("nic", is_nic_exact),
        ("socket", is_socket_exact),
    ];

    let loss = LossByPlace {
        sent,
        received,
        sender: refused + qdisc,
        network: rest,
        nic,
        socket,
        exact: places
            .iter()
            .filter(|(_, is_exact)| *is_exact)
            .map(|(name, _)| (*name).to_owned())
            .collect(),
    };

    Ok(loss)
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
                [loss.sender, loss.network, loss.nic, loss.socket],
                loss.exact.join(" "),
            )
        };
        // All in the network; all counters known and at rest.
        let quiet = parts(ends(1000, 0, Some(0), 980, Some(0), Some(0)));
        assert_eq!(
            quiet,
            ([0, 20, 0, 0], "sender network nic socket".to_owned())
        );

        // 5 refused, 30 in the socket, at most 10 in the queue, at most 7 in the NIC, and the rest
        // of 60.
        assert_eq!(
            parts(ends(995, 5, Some(10), 940, Some(30), Some(7))),
            ([15, 8, 7, 30], "socket".to_owned())
        );
        // Shared counters count foreign traffic too: what is missing caps them.
        assert_eq!(
            parts(ends(1000, 0, Some(500), 990, Some(4), Some(500))),
            ([6, 0, 0, 4], "socket".to_owned())
        );

        // Unknown counters: nothing is exact.
        assert_eq!(
            parts(ends(1000, 0, None, 990, None, None)),
            ([0, 10, 0, 0], String::new())
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
                    let parts = loss.sender + loss.network + loss.nic + loss.socket;
                    prop_assert_eq!(parts + loss.received, loss.sent);
                }
                Err(_) => prop_assert!(received > sent.saturating_add(errors)),
            }
        }
    }
}
