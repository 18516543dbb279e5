//! The way the data goes, and how well it went.

use std::os::fd::AsFd;

use linerate_model::data_path::{DataPath, Method, PerCall};
use linerate_model::spec::{SendPath, SequenceCheck};
use linerate_model::{StreamRole, TestSpec, Transport};
use linerate_sys::lending;

use super::OpenStream;
use crate::observations::Histogram;
use crate::worker::{datagrams_per_call, usual_call_bytes};

/// How the data of these streams moves, one path per role.
pub(super) fn paths(spec: &TestSpec, streams: &[OpenStream]) -> impl Iterator<Item = DataPath> {
    [StreamRole::Sender, StreamRole::Receiver]
        .into_iter()
        .filter_map(|role| {
            let first = streams.iter().find(|s| s.stream.role == role)?;
            Some(match (spec.transport, role) {
                (Transport::Udp, StreamRole::Sender) => datagrams_out(spec, first.peer_coalesces),
                (Transport::Udp, StreamRole::Receiver) => datagrams_in(spec.udp.check),
                (_, StreamRole::Sender) => bytes_out(spec),
                (_, StreamRole::Receiver) => bytes_in(spec.skip_rx_copy),
            })
        })
}

fn bytes_out(spec: &TestSpec) -> DataPath {
    let (method, how) = match spec.send_path {
        SendPath::Auto | SendPath::Copy => (Method::Copy, "copied from memory"),
        SendPath::SendFile => (Method::SendFile, "pages of a file (sendfile)"),
        SendPath::ZeroCopy => (Method::ZeroCopy, "memory lent to the kernel (MSG_ZEROCOPY)"),
    };
    let (block, call) = (spec.block_len_bytes as usize, usual_call_bytes(spec));
    let size = match call / block.max(1) {
        _ if call % block.max(1) != 0 => format!("{call} bytes per call, for a smooth rate"),
        1 => format!("one block of {block} bytes per call"),
        blocks => format!("{blocks} blocks of {block} bytes per call"),
    };
    let note = if spec.coalesce && spec.block_len_explicit {
        "; small writes are gathered"
    } else {
        ""
    };
    DataPath {
        role: StreamRole::Sender,
        method,
        per_call: Some(PerCall::Bytes(call)),
        description: format!("Send path: {how}, {size}{note}"),
    }
}

fn bytes_in(is_discarded: bool) -> DataPath {
    let (method, how) = if is_discarded {
        (Method::Discard, "discarded in the kernel (MSG_TRUNC)")
    } else {
        (Method::Copy, "copied to memory, as an application does")
    };
    received(method, how)
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
    DataPath {
        role: StreamRole::Sender,
        method,
        per_call: Some(PerCall::Datagrams(most)),
        description: format!("Send path: {how}"),
    }
}

fn datagrams_in(check: SequenceCheck) -> DataPath {
    match check {
        SequenceCheck::EveryDatagram => received(
            Method::JoinedDatagrams,
            "datagrams joined by the kernel (UDP_GRO), every number is checked",
        ),
        SequenceCheck::FirstOfBurst => received(
            Method::JoinedDatagramsFirstChecked,
            "datagrams joined by the kernel (UDP_GRO), only the first number of a burst is checked; \
             order inside bursts is not",
        ),
    }
}

fn received(method: Method, how: &str) -> DataPath {
    DataPath {
        role: StreamRole::Receiver,
        method,
        per_call: None,
        description: format!("Receive path: {how}"),
    }
}

/// What is worth saying once the data has stopped.
pub(super) fn remarks(streams: &[OpenStream]) -> impl Iterator<Item = String> {
    [pacing(streams), copies(streams)].into_iter().flatten()
}

/// How well the rate was kept: a portion that leaves late makes a gap and then a burst.
fn pacing(streams: &[OpenStream]) -> Option<String> {
    let lateness = Histogram::default();
    streams
        .iter()
        .filter_map(|s| s.counters.observations.lateness.as_ref())
        .for_each(|one| lateness.add(one));
    let [median_us, most_us] = [0.5, 0.99].map(|share| lateness.quantile_ns(share).map(|ns| ns as f64 / 1e3));
    Some(format!(
        "Pacing: {} portions left at most {:.0} us (median) and {:.0} us (99 %) after they were due",
        lateness.count(),
        median_us?,
        most_us?
    ))
}

fn copies(streams: &[OpenStream]) -> Option<String> {
    // What came back after the last call; the workers are through.
    for stream in streams.iter().filter(|s| s.stream.role == StreamRole::Sender) {
        while let Ok(returned) = lending::take_returned(stream.fd.as_fd()) {
            stream
                .counters
                .observations
                .note_returned(returned.calls, returned.copied);
        }
    }
    let shares: Vec<f64> = streams
        .iter()
        .filter_map(|s| s.counters.observations.copied_share())
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    (!shares.is_empty()).then(|| {
        format!(
            "Zero copy: the kernel copied {:.0} % of the lent memory after all",
            mean * 100.0
        )
    })
}
