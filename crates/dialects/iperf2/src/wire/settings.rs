//! Between the header on the wire and the specification of a test.

use std::time::Duration;

use linerate_model::spec::{ClientSpec, Pacing, Payload, SocketTuning};
use linerate_model::workload::{BounceBack, Isochronous, Pairing, Shape, Start, Workload};
use linerate_model::{Direction, EndCondition, TestSpec, Transport};
use thiserror::Error;

use crate::wire::amount::Amount;
use crate::wire::bounceback::BounceHead;
use crate::wire::header::{FrameSettings, Header, Mode, Rate};
use crate::wire::stamp::Timestamp;
use crate::wire::version::Version;

/// Default block length of TCP streams.
pub const TCP_BLOCK_LEN_BYTES: u32 = 128 * 1024;
/// Default datagram length: what fits an Ethernet frame over IPv4.
pub const UDP_BLOCK_LEN_BYTES: u32 = 1470;
/// Longest block a client can make a server use.
pub const BLOCK_LEN_MAX_BYTES: u32 = 4 << 20;
/// Largest UDP payload over IPv4.
pub const DATAGRAM_LEN_MAX_BYTES: u32 = 65_507;
/// Default rate of a UDP stream.
pub const UDP_RATE_BPS: u64 = 1 << 20;

/// A test that the header cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UnsupportedTest {
    /// The word for the amount has 31 bits.
    #[error("a server cannot be asked to send {0} bytes, at most 2147483647")]
    Amount(u64),
}

/// The header of a client's test. `start` is the time of the first write, sent where something
/// depends on it.
///
/// # Errors
/// When the server would have to send more than the header can express.
pub fn client_header(
    spec: &ClientSpec,
    version: Version,
    start: Timestamp,
) -> Result<Header, UnsupportedTest> {
    let test = &spec.test;
    let workload = &test.workload;
    let mode = mode(test);
    let isochronous = matches!(workload.shape, Shape::Isochronous(_));
    let bursts = matches!(workload.shape, Shape::Bursts { .. });
    let server_sends = mode.server_sends();
    let start_is_scheduled = matches!(workload.start, Start::At(_));

    let mut header = Header {
        mode,
        streams: test.streams,
        block_len_bytes: test.block_len_explicit.then_some(test.block_len_bytes),
        tos: test.socket.tos,
        rate: rate(test),
        unsent_limit_bytes: workload.unsent_limit_bytes.filter(|_| server_sends),
        quick_ack: workload.quick_ack && server_sends,
        detect_peer: workload.detect_peer && test.transport == Transport::Tcp,
        // In both directions on one socket no socket is left for the report.
        without_final_report: test.transport == Transport::Udp
            && (workload.without_final_report || mode == Mode::FullDuplex),
        trip_times: workload.trip_times,
        isochronous,
        bursts,
        start_is_scheduled,
        // The field is in bytes per second, as SO_MAX_PACING_RATE.
        fq_rate_bytes_per_s: test.pacing.fq_rate_bps.map(|bits| bits / 8),
        frames: frames(&workload.shape).filter(|_| bursts || server_sends),
        congestion: test.socket.congestion.clone(),
        permit_key: workload.permit_key.clone().map(String::into_bytes),
        ..Header::new(
            version,
            workload.back_port.unwrap_or(spec.local.port),
            amount(test.end, mode)?,
        )
    };
    header.start = needs_start(&header, test.transport).then_some(start);
    Ok(header)
}

/// The test requested of a server on one connection (`is_tcp`) or flow, within its limits.
pub fn server_spec(header: &Header, transport: Transport) -> TestSpec {
    let len_max = if transport == Transport::Udp {
        DATAGRAM_LEN_MAX_BYTES
    } else {
        BLOCK_LEN_MAX_BYTES
    };
    let default_len = if transport == Transport::Udp {
        UDP_BLOCK_LEN_BYTES
    } else {
        TCP_BLOCK_LEN_BYTES
    };

    // Bursts and frames share a field; a flag distinguishes them.
    let shape = match header.frames {
        Some(frames) if header.bursts => bursts(&frames),
        Some(frames) => isochronous(&frames),
        // A server that only receives does not get the frame settings.
        None if header.isochronous => isochronous(&DEFAULT_FRAMES),
        None => Shape::Continuous,
    };
    let (rate_bps, datagrams_per_s) = match header.rate {
        Some(Rate::BitsPerSecond(rate)) => (Some(rate), None),
        Some(Rate::DatagramsPerSecond(rate)) => (None, Some(rate)),
        None => (None, None),
    };
    TestSpec {
        transport,
        direction: match header.mode {
            Mode::Forward => Direction::Forward,
            Mode::Reverse => Direction::Reverse,
            Mode::FullDuplex | Mode::Dual | Mode::TradeOff => Direction::Bidirectional,
        },
        end: header.end(),
        block_len_bytes: header
            .block_len_bytes
            .unwrap_or(default_len)
            // The length is the size of an allocation, so the peer's value is bounded.
            .clamp(1, len_max),
        block_len_explicit: header.block_len_bytes.is_some(),
        socket: SocketTuning {
            tos: header.tos,
            congestion: header.congestion.clone(),
            ..SocketTuning::default()
        },
        payload: Payload::Repeating,
        workload: Workload {
            pairing: pairing(header.mode),
            shape,
            trip_times: header.trip_times,
            quick_ack: header.quick_ack,
            unsent_limit_bytes: header.unsent_limit_bytes,
            without_final_report: header.without_final_report,
            start: scheduled_start(header),
            back_port: header.mode.connects_back().then_some(header.port),
            datagrams_per_s,
            ..Workload::default()
        },
        pacing: Pacing {
            rate_bps,
            fq_rate_bps: header
                .fq_rate_bytes_per_s
                .map(|bytes| bytes.saturating_mul(8)),
            ..Pacing::default()
        },
        ..TestSpec::default()
    }
}

/// Headers tell when they were written, too; only some tell a time that was planned.
fn scheduled_start(header: &Header) -> Start {
    match header.start.filter(|_| header.start_is_scheduled) {
        Some(time) => Start::At(Duration::from_nanos(time.unix_ns())),
        None => Start::Now,
    }
}

/// The head of every request of a bounce-back test.
pub fn bounce_head(bounce: &BounceBack, test: &TestSpec) -> BounceHead {
    BounceHead {
        request_bytes: bounce.request_bytes,
        reply_bytes: bounce.reply_bytes,
        quick_ack: bounce.quick_ack,
        trip_times: test.workload.trip_times,
        tos: (test.socket.tos != 0).then_some(test.socket.tos),
        hold: bounce.hold,
        ..BounceHead::default()
    }
}

/// The bounce-back test a request belongs to, as far as a server can tell.
pub fn bounce_spec(head: &BounceHead) -> TestSpec {
    let bounce = BounceBack {
        request_bytes: head.request_bytes,
        reply_bytes: head.reply_bytes,
        burst: 1,
        period: Duration::ZERO,
        hold: head.hold,
        quick_ack: head.quick_ack,
        load: None,
    };

    TestSpec {
        end: EndCondition::Unlimited,
        block_len_bytes: head.request_bytes,
        payload: Payload::Repeating,
        socket: SocketTuning {
            // A reply must not wait for the acknowledgement of the one before (Nagle).
            no_delay: true,
            tos: head.tos.unwrap_or(0),
            ..SocketTuning::default()
        },
        workload: Workload {
            shape: Shape::BounceBack(bounce),
            trip_times: head.trip_times,
            quick_ack: head.quick_ack,
            ..Workload::default()
        },
        ..TestSpec::default()
    }
}

/// Who sends, on which connections.
pub fn mode(test: &TestSpec) -> Mode {
    match (test.direction, test.workload.pairing) {
        (Direction::Forward, _) => Mode::Forward,
        (Direction::Reverse, _) => Mode::Reverse,
        (Direction::Bidirectional, Pairing::ConnectBack) => Mode::Dual,
        (Direction::Bidirectional, Pairing::ConnectBackAfterwards) => Mode::TradeOff,
        (Direction::Bidirectional, Pairing::Shared | Pairing::Separate) => Mode::FullDuplex,
    }
}

fn pairing(mode: Mode) -> Pairing {
    match mode {
        Mode::Forward | Mode::Reverse => Pairing::Separate,
        Mode::FullDuplex => Pairing::Shared,
        Mode::Dual => Pairing::ConnectBack,
        Mode::TradeOff => Pairing::ConnectBackAfterwards,
    }
}

/// Where only the client sends the server needs no exact amount.
fn amount(end: EndCondition, mode: Mode) -> Result<Amount, UnsupportedTest> {
    match (Amount::of_end(end), end) {
        (Some(amount), _) => Ok(amount),
        (None, _) if mode == Mode::Forward => Ok(Amount::Bytes(Amount::BYTES_MAX)),
        (None, EndCondition::Bytes(bytes)) => Err(UnsupportedTest::Amount(bytes)),
        (None, _) => Ok(Amount::Open),
    }
}

/// An isochronous sender needs none: its rate lies in its frames. Datagrams name the default all
/// the same.
fn rate(test: &TestSpec) -> Option<Rate> {
    let default = (test.transport == Transport::Udp).then_some(Rate::BitsPerSecond(UDP_RATE_BPS));
    let datagrams = test.workload.datagrams_per_s.map(Rate::DatagramsPerSecond);
    datagrams
        .or(test.pacing.rate_bps.map(Rate::BitsPerSecond))
        .or(default)
}

/// Which headers tell when the first byte is written, as captured.
fn needs_start(header: &Header, transport: Transport) -> bool {
    let by_tcp = header.isochronous || header.fq_rate_bytes_per_s.is_some();
    // Only the wide header has room for a name, and a time goes with it.
    let by_name = header.congestion.is_some() && header.version.has_wide_header();
    header.trip_times
        || header.start_is_scheduled
        || (transport == Transport::Tcp && (by_tcp || by_name))
}

fn frames(shape: &Shape) -> Option<FrameSettings> {
    match shape {
        Shape::Isochronous(frames) => Some(FrameSettings {
            per_s: frames.frames_per_s,
            mean: frames.mean_bps,
            variance: frames.deviation_bps,
            gap_s: frames.gap.as_secs_f64(),
        }),
        // A period of 0 has no frequency.
        Shape::Bursts { size_bytes, period } if !period.is_zero() => Some(FrameSettings {
            per_s: period.as_secs_f64().recip(),
            mean: f64::from(*size_bytes),
            ..FrameSettings::default()
        }),
        _ => None,
    }
}

fn isochronous(frames: &FrameSettings) -> Shape {
    Shape::Isochronous(Isochronous {
        frames_per_s: frames.per_s.min(FRAMES_PER_S_MAX),
        mean_bps: frames.mean,
        deviation_bps: frames.variance,
        // Numbers of a peer may be negative or not finite.
        gap: Duration::try_from_secs_f64(frames.gap_s).unwrap_or_default(),
    })
}

/// A size that was cut off on the wire reads as 0; then it is the size that the originals use.
fn bursts(frames: &FrameSettings) -> Shape {
    let size_bytes = if frames.mean >= 1.0 {
        frames.mean as u32
    } else {
        BURST_LEN_BYTES
    };
    Shape::Bursts {
        size_bytes: size_bytes.min(crate::wire::burst::BURST_LEN_MAX),
        period: Duration::try_from_secs_f64(frames.per_s.min(FRAMES_PER_S_MAX).recip())
            .unwrap_or(Duration::from_secs(1)),
    }
}

/// Defaults of the originals.
const DEFAULT_FRAMES: FrameSettings = FrameSettings {
    per_s: 60.0,
    mean: 20e6,
    variance: 0.0,
    gap_s: 0.0,
};
/// More frames per second than any timer can keep apart.
const FRAMES_PER_S_MAX: f64 = 1e6;
/// Default size of a burst.
const BURST_LEN_BYTES: u32 = 1 << 20;
