//! Datagrams on a schedule, and transactions.

use linerate_model::path::{
    Datagrams, Dialect, EndpointPhase, PathDirection, PhaseKind, PhaseResult, Transactions,
};
use linerate_model::units::{ns_to_s, rate_bps};

use super::delays::round_trips;
use super::loss::loss_by_place;
use super::missing::Absent;
use super::{ConcludeInput, Context};
use crate::plan::headers_bytes;

/// Datagrams by direction, in the order in which they were sent.
pub(super) fn datagrams(context: &Context<'_>, absent: &mut Absent) -> Vec<Datagrams> {
    let is_paced = |kind| {
        matches!(
            kind,
            PhaseKind::Datagrams | PhaseKind::Pps | PhaseKind::Pace
        )
    };
    let phases = context
        .input
        .phases
        .iter()
        .filter(|phase| is_paced(phase.spec.kind));

    let directions = |phase: &PhaseResult| match phase.spec.direction {
        Some(direction) => vec![direction],
        None => vec![PathDirection::Down, PathDirection::Up],
    };
    let all = phases.flat_map(|phase| {
        directions(phase)
            .into_iter()
            .map(move |direction| (phase, direction))
    });
    all.filter_map(|(phase, direction)| of_direction(context, phase, direction, absent))
        .collect()
}

fn of_direction(
    context: &Context<'_>,
    phase: &PhaseResult,
    direction: PathDirection,
    absent: &mut Absent,
) -> Option<Datagrams> {
    let kind = phase.spec.kind;
    let mut lacks = |reason: &str| {
        absent.add(kind.name(), format!("{}: {reason}", direction.name()));
    };
    let Some(remote) = &phase.remote else {
        lacks("the server did not report its counts");
        return None;
    };
    let (sender, receiver) = match direction {
        PathDirection::Down => (remote, &phase.local),
        PathDirection::Up => (&phase.local, remote),
    };
    let loss = match loss_by_place(sender, receiver) {
        Ok(loss) => loss,
        Err(reason) => {
            lacks(&reason.to_string());
            return None;
        }
    };
    if loss.sent == 0 {
        lacks("no datagram was sent");
        return None;
    }

    let headers = headers_bytes(context.input.target.family == "ipv6");
    let packet_bytes = u64::from(phase.spec.datagram_bytes + headers);
    let bps = |packets: u64, end: &EndpointPhase| {
        rate_bps(
            packets.saturating_mul(packet_bytes),
            ns_to_s(end.elapsed_ns),
        )
    };

    // Receivers of iperf3 count late datagrams and duplicates together.
    let has_order = context.input.target.dialect == Dialect::Native;
    let received = loss.received.max(1);
    let share = |part: u64| part as f64 / received as f64;
    Some(Datagrams {
        kind,
        direction,
        loss,
        sent_bps: bps(sender.datagrams_sent, sender),
        received_bps: bps(receiver.datagrams_received, receiver),
        received_per_s: per_s(receiver.datagrams_received, receiver.elapsed_ns),
        reordered_share: share(receiver.reordered),
        reordering_extent: has_order.then_some(receiver.reordering_extent),
        duplicate_share: has_order.then(|| share(receiver.duplicates)),
        longest_loss_burst: has_order.then_some(receiver.longest_loss_burst),
        jitter_ns: receiver.jitter_ns,
        lateness: sender.lateness,
        gaps: receiver.gaps,
        longest_train: receiver.longest_train,
    })
}

fn per_s(count: u64, elapsed_ns: u64) -> Option<f64> {
    (elapsed_ns > 0).then(|| count as f64 / ns_to_s(elapsed_ns))
}

/// Requests and responses of `rr` and `crr`.
pub(super) fn transactions(input: &ConcludeInput) -> Vec<Transactions> {
    let is_transaction = |kind| matches!(kind, PhaseKind::Rr | PhaseKind::Crr);
    let phases = input
        .phases
        .iter()
        .filter(|phase| is_transaction(phase.spec.kind));
    phases.filter_map(of_transactions).collect()
}

fn of_transactions(phase: &PhaseResult) -> Option<Transactions> {
    let latency = round_trips(&phase.transactions);
    let seconds = ns_to_s(phase.local.elapsed_ns);
    let completed = phase.local.transactions.unwrap_or(latency.n);
    let each = |end: &EndpointPhase| end.cpu_ns.checked_div(completed).filter(|_| end.cpu_ns > 0);

    (latency.n > 0 && seconds > 0.0).then(|| {
        let per_s = completed as f64 / seconds;
        Transactions {
            client_cpu_ns: each(&phase.local),
            server_cpu_ns: phase.remote.as_ref().and_then(each),
            kind: phase.spec.kind,
            flows: phase.spec.streams_max,
            per_s,
            latency,
        }
    })
}
