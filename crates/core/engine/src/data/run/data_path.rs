//! The way the data took, and how well it went.

use linerate_model::data_path::{DataPath, Method, PerCall};
use linerate_model::spec::{IoStrategy, ReceiveWait, SendPath, SequenceCheck};
use linerate_model::{StreamRole, TestSpec, Transport};
use linerate_sys::zerocopy;

use super::open_stream::OpenStream;
use crate::data::worker::{datagrams_per_call, is_adjustable, may_pause, usual_call_bytes};
use crate::measure::observations::Histogram;

/// Strategy of byte streams at the end of a test.
#[derive(Clone, Copy)]
pub(super) struct StrategyUsed {
    pub strategy: IoStrategy,
    /// Trials that led to it; `None` when nothing was left open.
    pub trials: Option<u32>,
    /// The most a sender's socket held unsent, in bytes; absent where the host's default held.
    pub unsent_limit_bytes: Option<u32>,
    /// Threads of each role; absent when they have ended.
    pub threads: Option<ThreadsUsed>,
}

/// Threads that moved the data at the end of a test.
#[derive(Clone, Copy)]
pub(super) struct ThreadsUsed {
    pub senders: usize,
    pub receivers: usize,
}

impl ThreadsUsed {
    /// One thread may send and receive in turns.
    fn note(self, role: StreamRole) -> String {
        let threads = if role == StreamRole::Sender {
            self.senders
        } else {
            self.receivers
        };
        match threads {
            0 | 1 => "; 1 thread".to_owned(),
            _ => format!("; {threads} threads"),
        }
    }
}

/// Data paths of these streams, one per role.
pub(super) fn paths(
    spec: &TestSpec,
    streams: &[OpenStream],
    used: StrategyUsed,
) -> impl Iterator<Item = DataPath> {
    [StreamRole::Sender, StreamRole::Receiver]
        .into_iter()
        .filter_map(move |role| {
            let first = streams.iter().find(|s| s.stream.role == role)?;
            let mut path = match (spec.transport, role) {
                (Transport::Udp, StreamRole::Sender) => datagrams_out(spec, first.peer_coalesces),
                (Transport::Udp, StreamRole::Receiver) => datagrams_in(spec, used),
                (_, StreamRole::Sender) => bytes_out(spec, used),
                (_, StreamRole::Receiver) => bytes_in(spec, used),
            };
            path.description += &used
                .threads
                .map(|threads| threads.note(role))
                .unwrap_or_default();
            Some(path)
        })
}

fn bytes_out(spec: &TestSpec, used: StrategyUsed) -> DataPath {
    let (method, how) = match spec.send_path {
        SendPath::SendFile => (Method::SendFile, "pages of a file (sendfile)"),
        SendPath::ZeroCopy => (Method::ZeroCopy, "zero copy (MSG_ZEROCOPY)"),
        _ => (Method::Copy, "copied from memory"),
    };
    let block = spec.block_len_bytes as usize;
    let call = if is_adjustable(spec) {
        block * usize::from(used.strategy.blocks_per_call)
    } else {
        usual_call_bytes(spec)
    };
    let size = match call / block.max(1) {
        _ if call % block.max(1) != 0 => format!("{call} bytes per call, for a smooth rate"),
        1 => format!("one block of {block} bytes per call"),
        blocks => format!("{blocks} blocks of {block} bytes per call"),
    };

    let note = match used.trials {
        Some(trials) if is_adjustable(spec) => chosen(trials),
        _ if spec.coalesce && spec.block_len_explicit => "; small writes are gathered".to_owned(),
        _ => String::new(),
    };
    let unsent = used
        .unsent_limit_bytes
        .map(|bytes| format!("; at most {bytes} bytes unsent"))
        .unwrap_or_default();
    let mut path = DataPath::new(
        StreamRole::Sender,
        method,
        format!("Send path: {how}, {size}{note}{unsent}"),
    );
    path.per_call = Some(PerCall::Bytes(call));

    path
}

/// Where a strategy came from.
fn chosen(trials: u32) -> String {
    match trials {
        0 => String::new(),
        1 => ", chosen by 1 trial during the test".to_owned(),
        _ => format!(", chosen by {trials} trials during the test"),
    }
}

fn bytes_in(spec: &TestSpec, used: StrategyUsed) -> DataPath {
    let (method, how) = if spec.skip_rx_copy {
        (Method::Discard, "discarded in the kernel (MSG_TRUNC)")
    } else {
        (Method::Copy, "copied to memory, as an application does")
    };
    received(
        method,
        &format!("{how}; {}", waiting(spec, used, "segment")),
    )
}

/// Wait of a receiver whose queue is empty.
fn waiting(spec: &TestSpec, used: StrategyUsed, unit: &str) -> String {
    let may_pause = may_pause(spec);
    let note = used
        .trials
        .filter(|_| may_pause)
        .map(chosen)
        .unwrap_or_default();

    match used.strategy.receive_wait {
        ReceiveWait::Pause(us) if may_pause => {
            format!("pauses {us} us when the queue is empty{note}")
        }
        ReceiveWait::Spin if may_pause => {
            format!("polls without sleep when the queue is empty{note}")
        }
        _ => format!("waits for each {unit}{note}"),
    }
}

fn datagrams_out(spec: &TestSpec, peer_coalesces: bool) -> DataPath {
    let most = datagrams_per_call(spec, spec.block_len_bytes as usize, peer_coalesces);
    let (method, how) = match most {
        1 => (Method::SingleDatagrams, "one datagram per call".to_owned()),
        _ => (
            Method::SegmentedDatagrams,
            format!("up to {most} datagrams per call (UDP_SEGMENT), as the rate needs it"),
        ),
    };
    let mut path = DataPath::new(StreamRole::Sender, method, format!("Send path: {how}"));
    path.per_call = Some(PerCall::Datagrams(most));

    path
}

fn datagrams_in(spec: &TestSpec, used: StrategyUsed) -> DataPath {
    let (method, how) = match spec.udp.check {
        SequenceCheck::FirstOfBurst => (
            Method::JoinedDatagramsFirstChecked,
            "only the first number of a burst is checked; order inside bursts is not",
        ),
        _ => (Method::JoinedDatagrams, "every number is checked"),
    };
    let when = waiting(spec, used, "datagram");
    received(
        method,
        &format!("datagrams joined by the kernel (UDP_GRO), {how}; {when}"),
    )
}

fn received(method: Method, how: &str) -> DataPath {
    DataPath::new(StreamRole::Receiver, method, format!("Receive path: {how}"))
}

/// Remarks for the report once the data has stopped.
pub(super) fn remarks(streams: &[OpenStream]) -> impl Iterator<Item = String> {
    [pacing(streams), copies(streams)].into_iter().flatten()
}

/// Accuracy of the rate: a portion that leaves late makes a gap and then a burst.
fn pacing(streams: &[OpenStream]) -> Option<String> {
    let lateness = Histogram::default();
    streams
        .iter()
        .filter_map(|s| s.counters.observations.lateness.as_ref())
        .for_each(|one| lateness.add(one));
    let [median_us, most_us] =
        [0.5, 0.99].map(|share| lateness.quantile_ns(share).map(|ns| ns as f64 / 1e3));

    Some(format!(
        "Pacing: {} portions left at most {:.0} us (median) and {:.0} us (99 %) after they were due",
        lateness.count(),
        median_us?,
        most_us?
    ))
}

fn copies(streams: &[OpenStream]) -> Option<String> {
    // Completions after the last call; the workers have finished.
    for stream in streams
        .iter()
        .filter(|s| s.stream.role == StreamRole::Sender)
    {
        while let Ok(returned) = zerocopy::take_completion(&stream.fd) {
            stream
                .counters
                .observations
                .note_completions(returned.calls, returned.copied);
        }
    }

    let shares: Vec<f64> = streams
        .iter()
        .filter_map(|s| s.counters.observations.copied_share())
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    (!shares.is_empty())
        .then(|| format!("Zero copy: the kernel copied {:.0} % anyway", mean * 100.0))
}
