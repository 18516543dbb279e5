//! Phases that ran without a result: they have no values, and a test with one of them is not
//! complete.

use linerate_model::path::{EndpointPhase, PathDirection, PhaseKind, PhaseResult};

use super::series::arrived_bytes;

/// Advice for streams that a server refuses.
const REFUSED_HINT: &str = "its log has the reason. After wrong tokens from this address wait a \
                            minute; if streams leave by another address than the control \
                            connection, it needs --allow-split-address";

/// Reason for which a phase that ran has no values: no stream was opened, or no byte, datagram or
/// response arrived. `None` for one that has some.
pub fn unmeasured(phase: &PhaseResult) -> Option<String> {
    let lacks = |what: &str, otherwise: String| match phase.refused {
        0 => otherwise,
        _ => format!("the server refused the {what}: {REFUSED_HINT}"),
    };
    match phase.spec.kind {
        PhaseKind::Down | PhaseKind::Up | PhaseKind::Both if has_moved(phase) => None,
        PhaseKind::Down | PhaseKind::Up | PhaseKind::Both => {
            Some(lacks("streams", without_bytes(phase)))
        }

        PhaseKind::Rr | PhaseKind::Crr | PhaseKind::Cps => {
            let is_answered = phase
                .transactions
                .iter()
                .any(|sample| sample.received_ns.is_some());
            (!is_answered).then(|| lacks("connections", "no request was answered".to_owned()))
        }

        PhaseKind::Idle | PhaseKind::Stamp => {
            let connections = [&phase.foreign.tcp, &phase.foreign.tls, &phase.foreign.echo];
            let mut probes = phase.udp.iter().chain(connections.into_iter().flatten());
            let is_answered = probes.any(|sample| sample.received_ns.is_some());
            (!is_answered).then(|| lacks("connections", "no probe was answered".to_owned()))
        }

        PhaseKind::Size => {
            let is_known = !phase.size.is_empty() || !phase.tos.is_empty();
            (!is_known).then(|| "no packet was answered".to_owned())
        }

        PhaseKind::Hops => {
            let ends = [Some(&phase.local), phase.remote.as_ref()];
            let is_silent = ends.into_iter().flatten().all(|end| end.hops.is_empty());
            is_silent.then(|| "no hop answered".to_owned())
        }

        PhaseKind::Datagrams | PhaseKind::Pps | PhaseKind::Pace | PhaseKind::Capacity => {
            without_datagrams(phase)
        }
    }
}

/// A part of the phase lacks: the server refused streams, or a direction of its load moved nothing.
pub fn is_partial(phase: &PhaseResult) -> bool {
    phase.refused > 0 || has_silent_direction(phase)
}

/// A direction of the load moved nothing.
pub(super) fn has_silent_direction(phase: &PhaseResult) -> bool {
    phase
        .spec
        .kind
        .load_directions()
        .iter()
        .any(|direction| arrived_bytes(phase, *direction) == 0)
}

/// A byte arrived in a direction of the load.
fn has_moved(phase: &PhaseResult) -> bool {
    phase
        .spec
        .kind
        .load_directions()
        .iter()
        .any(|direction| arrived_bytes(phase, *direction) > 0)
}

fn without_bytes(phase: &PhaseResult) -> String {
    let of_stream = phase
        .absent
        .iter()
        .find(|(figure, _)| figure.starts_with("stream "));
    match (phase.local.streams.len(), of_stream) {
        (0, Some((_, reason))) => format!("no stream was opened: {reason}"),
        (0, None) => "no stream was opened".to_owned(),
        (1, _) => "no byte arrived, though the stream was open".to_owned(),
        (streams, _) => format!("no byte arrived, though {streams} streams were open"),
    }
}

/// Where an end sent no counts, the reason is another one.
fn without_datagrams(phase: &PhaseResult) -> Option<String> {
    let arrived = |end: &EndpointPhase| end.datagrams_received > 0;
    let remote = phase.remote.as_ref();
    let has_arrived = match phase.spec.direction {
        Some(PathDirection::Down) => arrived(&phase.local),
        Some(PathDirection::Up) => remote.is_none_or(arrived),
        None => arrived(&phase.local) || remote.is_none_or(arrived),
    };

    let direction = phase
        .spec
        .direction
        .map_or_else(String::new, |way| format!("{}: ", way.name()));
    (!has_arrived).then(|| format!("{direction}no datagram arrived"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_model::path::{
        LoadSample, PhaseSpec, PhaseTransport, ProbeSample, SizeResult, SizeSignal, StreamTotals,
        absent,
    };

    use super::*;

    fn phase(kind: PhaseKind, direction: Option<PathDirection>) -> PhaseResult {
        PhaseResult::of(PhaseSpec {
            kind,
            direction,
            transport: PhaseTransport::Tcp,
            streams_max: 1,
            probe_flows: 0,
            duration_max: Duration::from_secs(1),
            rate_bps: None,
            connections_per_s: None,
            datagram_bytes: 0,
            bytes_max: None,
            congestion: None,
            dscp: 0,
            raw: false,
            hops: false,
            transaction: None,
        })
    }

    fn samples(down_bytes: u64, up_bytes: u64) -> Vec<LoadSample> {
        vec![LoadSample {
            at_ns: 1,
            down_bytes,
            up_bytes,
            streams: 1,
        }]
    }

    fn probe(received_ns: Option<u64>) -> ProbeSample {
        ProbeSample {
            sent_ns: 1,
            peer_received_ns: None,
            peer_sent_ns: None,
            received_ns,
        }
    }

    #[test]
    fn load_without_a_byte_at_its_receiver_is_unmeasured() {
        use PhaseKind::{Both, Down, Up};

        let rows = [
            (Down, (5, 0), None, false),
            (Down, (0, 5), None, true),
            (Up, (0, 5), None, false),
            // What this end's kernel holds has not arrived at the server.
            (Up, (0, 5), Some((0, 0)), true),
            (Both, (5, 0), Some((0, 0)), false),
            (Both, (0, 5), Some((0, 0)), true),
        ];
        for (kind, (down, up), remote, is_unmeasured) in rows {
            let mut phase = phase(kind, None);
            phase.local.load = samples(down, up);
            phase.remote = remote.map(|(down, up)| EndpointPhase {
                load: samples(down, up),
                ..EndpointPhase::default()
            });
            assert_eq!(
                unmeasured(&phase).is_some(),
                is_unmeasured,
                "{kind:?} {down} {up} {remote:?}"
            );
            assert_eq!(
                is_partial(&phase),
                is_unmeasured || kind == Both,
                "{kind:?} {down} {up} {remote:?}"
            );
        }
    }

    #[test]
    fn reason_tells_refused_streams_from_silent_ones() {
        let mut down = phase(PhaseKind::Down, None);
        let absent = [("udp", absent::UDP_BLOCKED), ("stream 0", "timed out")];
        down.absent = absent
            .map(|(figure, reason)| (figure.to_owned(), reason.to_owned()))
            .to_vec();
        assert_eq!(
            unmeasured(&down).as_deref(),
            Some("no stream was opened: timed out")
        );
        down.refused = 1;

        let refused = unmeasured(&down).expect("a reason");
        assert!(
            refused.starts_with("the server refused the streams: "),
            "{refused}"
        );
        assert!(
            refused.contains("wait a minute") && refused.contains("--allow-split-address"),
            "{refused}"
        );

        let mut silent = phase(PhaseKind::Up, None);
        silent.local.streams = vec![StreamTotals::default(); 2];
        let reason = "no byte arrived, though 2 streams were open";
        assert_eq!(unmeasured(&silent).as_deref(), Some(reason));
    }

    #[test]
    fn transactions_and_probes_without_an_answer_are_unmeasured() {
        for kind in [PhaseKind::Rr, PhaseKind::Crr, PhaseKind::Cps] {
            let mut found = phase(kind, None);
            found.transactions = vec![probe(None); 3];
            assert!(
                unmeasured(&found).is_some_and(|reason| reason.contains("was answered")),
                "{kind:?}"
            );
            found.refused = 3;
            assert!(
                unmeasured(&found).is_some_and(|reason| reason.contains("refused the connections")),
                "{kind:?}"
            );
            found.transactions.push(probe(Some(9)));
            assert_eq!(unmeasured(&found), None, "{kind:?}");
        }

        let mut idle = phase(PhaseKind::Idle, None);
        idle.udp = vec![probe(None); 3];
        assert!(unmeasured(&idle).is_some());
        idle.foreign.tcp = vec![probe(Some(9))];
        assert_eq!(unmeasured(&idle), None);
    }

    #[test]
    fn datagrams_and_sizes_of_which_none_arrived_are_unmeasured() {
        let counted = |received| EndpointPhase {
            datagrams_received: received,
            ..EndpointPhase::default()
        };
        let mut up = phase(PhaseKind::Pace, Some(PathDirection::Up));
        up.local = counted(5);
        assert_eq!(unmeasured(&up), None, "the server reported no counts");
        up.remote = Some(counted(0));
        assert_eq!(unmeasured(&up).as_deref(), Some("up: no datagram arrived"));
        up.remote = Some(counted(1));
        assert_eq!(unmeasured(&up), None);

        let mut size = phase(PhaseKind::Size, None);
        assert!(unmeasured(&size).is_some());
        size.size = vec![(
            PathDirection::Up,
            SizeResult {
                mtu: 1500,
                reported_by: None,
                how: SizeSignal::Unlimited,
            },
        )];
        assert_eq!(unmeasured(&size), None);
    }
}
