//! Settings that a test leaves open to this end, and conditions under which they matter.

use linerate_model::spec::{ReceiveWait, SendPath};
use linerate_model::{StreamRole, TestSpec, Transport};
use linerate_sys::sockopt;

use super::open_stream::OpenStream;
use super::settings::RunSettings;
use super::strategy_trials::{Adjustable, BLOCKS, BLOCKS_WHERE_PACED, USUAL_BLOCKS};
use crate::data::worker::{WorkerPool, is_adjustable, receive_waits, usual_call_bytes};

/// The kernel sends what a full window left in a socket when the peer has read, on the CPU of the
/// peer where that is this machine. What is not there yet the sender sends on its own CPU. 512 KiB
/// are 40 µs at 100 Gbit/s: time to wake it.
pub(super) const UNSENT_LIMIT_BYTES: u32 = 512 << 10;

/// A receiver of few streams that spins competes with the sender for the socket it writes to. With
/// one, pauses were faster in every measurement, with two as fast.
const SPIN_STREAMS_MIN: usize = 4;

/// Settings that a test leaves open to this end.
pub(super) fn adjustable(
    settings: &RunSettings,
    streams: &[OpenStream],
    pool: &WorkerPool,
) -> Adjustable {
    let RunSettings {
        spec, measures_cpu, ..
    } = settings;
    let receiving = streams
        .iter()
        .filter(|open| open.stream.role == StreamRole::Receiver)
        .count();
    let may_spin = receiving >= SPIN_STREAMS_MIN && !measures_cpu;

    Adjustable {
        blocks: match is_adjustable(spec) && receiving < streams.len() {
            true if has_pacing_timers(streams) => BLOCKS_WHERE_PACED,
            true => BLOCKS,
            false => USUAL_BLOCKS,
        },
        receive_waits: if receiving > 0 {
            receive_waits(spec, may_spin)
        } else {
            &[ReceiveWait::Event]
        },
        receivers: pool.receivers(),
        receivers_max: pool.receivers_max(),
        unsent_limit: is_adjustable(spec)
            && spec.socket.window_bytes.is_none()
            && limitable(streams).next().is_some(),
    }
}

/// The largest segment. No datagram is as long.
const LARGE_BLOCK_MIN_BYTES: u32 = 64 << 10;

/// True if each write fills segments.
pub(super) fn receives_large_blocks(spec: &TestSpec) -> bool {
    spec.block_len_bytes >= LARGE_BLOCK_MIN_BYTES
}

/// True if senders without a rate write small blocks, or pages that are not copied.
pub(super) fn makes_short_calls(spec: &TestSpec) -> bool {
    let is_short = spec.send_path == SendPath::SendFile
        || usual_call_bytes(spec) < LARGE_BLOCK_MIN_BYTES as usize;
    is_short && spec.transport == Transport::Tcp && spec.pacing.rate_bps.is_none()
}

/// True if the kernel paces a sender by timers, as it does for BBR.
pub(super) fn has_pacing_timers(streams: &[OpenStream]) -> bool {
    streams
        .iter()
        .any(|open| open.stream.role == StreamRole::Sender && is_paced_by_bbr(open))
}

fn is_paced_by_bbr(open: &OpenStream) -> bool {
    sockopt::congestion(&open.fd).is_ok_and(|algorithm| algorithm.starts_with("bbr"))
}

/// Senders whose sockets may be limited. A dialect that makes its pumps sets the options of their
/// sockets too. BBR paces: what waits in a socket leaves by timers, each an interrupt, and with
/// less than a call of this end waiting there are three times as many.
fn limitable(streams: &[OpenStream]) -> impl Iterator<Item = &OpenStream> {
    let is_sender =
        |open: &&OpenStream| open.stream.role == StreamRole::Sender && !open.has_own_pump;
    streams
        .iter()
        .filter(is_sender)
        .filter(|open| !is_paced_by_bbr(open))
}

/// Lets the sockets of senders hold little that is not sent yet, or what the host allows.
pub(super) fn limit_unsent(streams: &[OpenStream], is_limited: bool) {
    const HOST_DEFAULT: u32 = 0;

    let bytes = if is_limited {
        UNSENT_LIMIT_BYTES
    } else {
        HOST_DEFAULT
    };
    for open in limitable(streams) {
        // Without it the data takes the same way in longer queues.
        let _ = sockopt::TCP_NOTSENT_LOWAT.set(&open.fd, bytes);
    }
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
