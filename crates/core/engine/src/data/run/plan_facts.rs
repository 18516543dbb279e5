//! Facts of a test for its [plan](crate::data::plan), and the settings that it leaves to trials.

use linerate_model::spec::{ReceiveWait, SendPath};
use linerate_model::{StreamRole, TestSpec, Transport};
use linerate_sys::{cpu, sockopt};

use super::incoming_cpus;
use super::open_stream::OpenStream;
use super::settings::RunSettings;
use super::strategy_trials::{Adjustable, BLOCKS, BLOCKS_WHERE_PACED, USUAL_BLOCKS};
use crate::data::plan::{PlanFacts, ThreadPlan};
use crate::data::worker::{is_adjustable, receive_waits, usual_call_bytes};

/// The kernel sends what a full window left in a socket when the peer has read, on the CPU of the
/// peer where that is this machine. What is not there yet the sender sends on its own CPU. 512 KiB
/// are 40 µs at 100 Gbit/s: time to wake it.
pub(super) const UNSENT_LIMIT_BYTES: u32 = 512 << 10;

/// The largest segment. No datagram is as long.
const LARGE_BLOCK_MIN_BYTES: u32 = 64 << 10;

/// CPUs that workers may use; none where the kernel does not report them.
pub(super) fn usable_cpus(pin_to: Option<u32>) -> Vec<u32> {
    let of_process =
        || cpu::affinity().map_or_else(|_| Vec::new(), |usable| usable.cpus().collect());
    let usable = pin_to.map_or_else(of_process, |cpu| vec![cpu as usize]);
    usable
        .into_iter()
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect()
}

/// Facts of a test whose workers may use these CPUs.
pub(super) fn facts(settings: &RunSettings, streams: &[OpenStream], cpus: &[u32]) -> PlanFacts {
    let spec = &settings.spec;
    let of_role = |role| {
        streams
            .iter()
            .filter(|open| open.stream.role == role)
            .count()
    };
    let arrives_on = incoming_cpus::of_role(streams, StreamRole::Receiver);

    PlanFacts {
        cpus: cpus.len(),
        sent: of_role(StreamRole::Sender),
        received: of_role(StreamRole::Receiver),
        has_rate: spec.pacing.rate_bps.is_some(),
        has_pacing_timers: has_pacing_timers(streams),
        makes_short_calls: makes_short_calls(spec),
        receives_large_blocks: spec.block_len_bytes >= LARGE_BLOCK_MIN_BYTES,
        arrives_on_only_cpu: cpus.len() == 1 && arrives_on == cpus,
        measures_cpu: settings.measures_cpu,
    }
}

/// Settings that a test leaves open to trials.
pub(super) fn adjustable(
    spec: &TestSpec,
    streams: &[OpenStream],
    facts: &PlanFacts,
    plan: &ThreadPlan,
) -> Adjustable {
    Adjustable {
        blocks: match is_adjustable(spec) && facts.sent > 0 {
            true if has_pacing_timers(streams) => BLOCKS_WHERE_PACED,
            true => BLOCKS,
            false => USUAL_BLOCKS,
        },
        receive_waits: if facts.received > 0 {
            receive_waits(spec, plan.may_spin)
        } else {
            &[ReceiveWait::Event]
        },
    }
}

/// True if senders without a rate write small blocks, or pages that are not copied.
fn makes_short_calls(spec: &TestSpec) -> bool {
    let is_short = spec.send_path == SendPath::SendFile
        || usual_call_bytes(spec) < LARGE_BLOCK_MIN_BYTES as usize;
    is_short && spec.transport == Transport::Tcp && spec.pacing.rate_bps.is_none()
}

/// True if the kernel paces a sender by timers, as it does for BBR.
fn has_pacing_timers(streams: &[OpenStream]) -> bool {
    streams
        .iter()
        .any(|open| open.stream.role == StreamRole::Sender && is_paced_by_bbr(open))
}

fn is_paced_by_bbr(open: &OpenStream) -> bool {
    sockopt::congestion(&open.fd).is_ok_and(|algorithm| algorithm.starts_with("bbr"))
}

/// Lets the sockets of senders hold little that is not sent yet, where the test leaves that open.
/// True if there is such a socket. A dialect that makes its pumps sets the options of their sockets
/// too. BBR paces: what waits in a socket leaves by timers, each an interrupt, and with less than a
/// call of this end waiting there are three times as many.
pub(super) fn limit_unsent(spec: &TestSpec, streams: &[OpenStream]) -> bool {
    if !is_adjustable(spec) || spec.socket.window_bytes.is_some() {
        return false;
    }

    let senders = streams.iter().filter(|open| {
        open.stream.role == StreamRole::Sender && !open.has_own_pump && !is_paced_by_bbr(open)
    });
    // Where the kernel refuses, the data takes the same way in longer queues.
    let limited = senders.filter(|open| {
        sockopt::TCP_NOTSENT_LOWAT
            .set(&open.fd, UNSENT_LIMIT_BYTES)
            .is_ok()
    });
    limited.count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_fixed_blocks_and_of_pages_are_short() {
        let default = |change: fn(&mut TestSpec)| {
            let mut spec = TestSpec::default();
            change(&mut spec);
            spec
        };
        let is_short = |change| makes_short_calls(&default(change));

        let explicit = |length, change| {
            let spec = &mut default(change);
            (spec.block_len_bytes, spec.block_len_explicit) = (length, true);
            makes_short_calls(spec)
        };
        assert!(explicit(32, |_| {}) && explicit(32 << 10, |_| {}));
        assert!(is_short(|spec| spec.send_path = SendPath::SendFile));

        assert!(!is_short(|_| {}), "several blocks per call");
        assert!(!explicit(64 << 10, |_| {}));
        assert!(!explicit(32, |spec| spec.coalesce = true));
        assert!(!explicit(32, |spec| spec.transport = Transport::Udp));
        assert!(
            !explicit(32, |spec| spec.pacing.rate_bps = Some(1_000_000)),
            "senders sleep"
        );
    }
}
