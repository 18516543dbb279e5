//! Chooses who moves the data of a connection or flow.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_iperf2::wire::Version;
use linerate_iperf2::wire::datagram::NumberWidth;
use linerate_model::workload::Shape;
use linerate_model::{EndCondition, TestSpec};
use linerate_sys::OsError;

use super::bounce::{BounceClient, BounceServer};
use super::burst_sender::ShapedSender;
use super::datagrams::{HeadReader, HeadWriter, SharedFlowTotals};
use super::frame_rows::FrameRows;
use super::framed_datagrams::FramedDatagrams;
use super::read_observer::ReadWatcher;
use super::received_bursts::BurstQueue;
use crate::data::budget::{Budget, Unit};
use crate::data::run::PumpBuilder;
use crate::data::worker::{
    DatagramReceiver, DatagramSender, Datagrams, RepeatedBlock, Sink, Source, StreamReceiver,
    StreamSender, may_pause,
};
use crate::data::{files, payload};
use crate::measure::stream_stats::StreamStats;

/// Where the bytes of a sender come from.
#[derive(Clone, Default)]
pub(super) enum Origin {
    #[default]
    Pattern,
    File(PathBuf),
    StandardInput,
}

impl Origin {
    fn open(&self, block_len: usize) -> Result<Source, OsError> {
        match self {
            Self::Pattern => {
                let len = block_len.max(1);
                let memory = payload::shared_block(len, RepeatedBlock::room_for_shifts(len))?;
                Ok(Source::Block(RepeatedBlock::new(memory, len)))
            }
            Self::File(path) => files::source(path, block_len),
            Self::StandardInput => files::source("/dev/stdin".as_ref(), block_len),
        }
    }
}

/// The amount of one stream, of which this number of bytes is sent already.
fn budget(end: EndCondition, unit: Unit, sent: u64) -> Option<Arc<Budget>> {
    let EndCondition::Bytes(bytes) = end else {
        return None;
    };
    let budget = Budget::new(unit, bytes.saturating_sub(sent));
    budget.arm();
    Some(Arc::new(budget))
}

/// A sender on a byte stream; `sent` bytes of its amount have left already.
pub(super) fn stream_sender(
    spec: &TestSpec,
    origin: Origin,
    stats: &Arc<StreamStats>,
    sent: u64,
) -> PumpBuilder {
    let spec = spec.clone();
    let stats = Arc::clone(stats);
    Box::new(move |inputs| {
        let workload = &spec.workload;
        // With heads in the data the header comes on top of the amount.
        let frames = workload.trip_times
            || matches!(workload.shape, Shape::Isochronous(_) | Shape::Bursts { .. });
        let budget = budget(spec.end, Unit::ExactBytes, if frames { 0 } else { sent });

        if let Shape::BounceBack(bounce) = &workload.shape {
            return Ok(Box::new(BounceClient::new(inputs, &spec, bounce, stats)?));
        }

        let is_plain = !frames && workload.shape == Shape::Continuous && !workload.write_times;
        if !is_plain {
            return Ok(Box::new(ShapedSender::new(inputs, &spec, stats, budget)?));
        }

        let source = origin.open(spec.block_len_bytes as usize)?;
        let mut spec = spec.clone();
        // Reports name the length of a write and count writes, so a rate does not change that
        // length.
        spec.block_len_explicit |= spec.pacing.rate_bps.is_some();
        Ok(Box::new(StreamSender::new(
            inputs.fd,
            inputs.counters,
            source,
            &spec,
            inputs.start_ns,
            budget,
        )))
    })
}

/// A receiver on a byte stream; `block_len` is that of this end; with `is_framed` bursts have
/// headers.
pub(super) fn stream_receiver(
    spec: &TestSpec,
    block_len: u32,
    stats: &Arc<StreamStats>,
    is_framed: bool,
    queue: Option<Arc<BurstQueue>>,
) -> PumpBuilder {
    let spec = spec.clone();
    let stats = Arc::clone(stats);
    Box::new(move |inputs| {
        let sink = if spec.skip_rx_copy && !is_framed {
            Sink::Discard
        } else {
            Sink::Memory
        };
        let sees_data = matches!(sink, Sink::Memory);

        let mut receiver = StreamReceiver::new(
            inputs.fd,
            inputs.counters,
            sink,
            block_len,
            may_pause(&spec),
            None,
        );
        receiver.awaits_end = true;

        // Wherever bursts are reported the sizes of reads are, too.
        if spec.workload.exact_reads || is_framed {
            receiver.read_len = receiver.read_len.min(block_len.max(1) as usize);
        }

        if sees_data {
            receiver.observer = Some(Box::new(ReadWatcher::new(
                stats, &spec, block_len, is_framed, queue,
            )));
        }

        Ok(Box::new(receiver))
    })
}

/// The server's end of a bounce-back test.
pub(super) fn bounce_server(
    stats: &Arc<StreamStats>,
    quick_ack: bool,
    received: Vec<u8>,
) -> PumpBuilder {
    let stats = Arc::clone(stats);
    Box::new(move |inputs| {
        let made = BounceServer::new(inputs, stats, quick_ack, &received);
        Ok(Box::new(
            made.map_err(|source| OsError::new("bounce", "", source))?,
        ))
    })
}

/// A sender of datagrams like `template`, `sent` of which have left already; with
/// `ignores_unreachable` an unreachable port does not end it.
pub(super) fn datagram_sender(
    spec: &TestSpec,
    stats: &Arc<StreamStats>,
    template: Vec<u8>,
    version: Version,
    sent: u64,
    ignores_unreachable: bool,
) -> PumpBuilder {
    let mut spec = spec.clone();
    let stats = Arc::clone(stats);
    let len = template.len() as u64;

    if let Some(per_s) = spec.workload.datagrams_per_s {
        spec.pacing.rate_bps =
            Some(per_s.saturating_mul(len).saturating_mul(8)).filter(|rate| *rate > 0);
    }

    Box::new(move |inputs| {
        let budget = budget(spec.end, Unit::Bytes, sent.saturating_mul(len));
        if let Shape::Isochronous(frames) = &spec.workload.shape {
            let mut sender =
                FramedDatagrams::new(inputs, frames, template, version, stats, budget)?;
            sender.ignores_unreachable = ignores_unreachable;
            return Ok(Box::new(sender));
        }

        let datagrams = Datagrams {
            block: &template,
            peer_coalesces: false,
            sequence: Box::new(HeadWriter::new()),
        };
        let fd = inputs.fd;
        let counters = inputs.counters;
        let start_ns = inputs.start_ns;
        let mut sender = DatagramSender::new(fd, counters, datagrams, &spec, start_ns, budget)?;
        sender.sent = sent;
        sender.ignores_unreachable = ignores_unreachable;

        Ok(Box::new(sender))
    })
}

/// A receiver of datagrams, some of which have arrived already; its verdict becomes that of the
/// flow.
pub(super) fn datagram_receiver(
    stats: &Arc<StreamStats>,
    width: NumberWidth,
    frames_of: Option<Version>,
    early: Vec<(Vec<u8>, u64)>,
    queue: Option<Arc<BurstQueue>>,
    spec: &TestSpec,
) -> (PumpBuilder, SharedFlowTotals) {
    let may_pause = may_pause(spec);
    let (mut reader, flow_totals) = HeadReader::new(width, frames_of, Arc::clone(stats));
    reader.rows = queue.map(FrameRows::new);

    let build_pump: PumpBuilder = Box::new(move |inputs| {
        let receiver = DatagramReceiver::new(inputs.fd, inputs.counters, Box::new(reader), None);
        Ok(Box::new(receiver.pausing(may_pause).after(&early)))
    });
    (build_pump, flow_totals)
}

/// A file that cannot be read is better known before anybody connects.
pub(super) fn check(origin: &Origin) -> std::io::Result<()> {
    match origin {
        Origin::File(path) => File::open(path).map(drop),
        Origin::Pattern | Origin::StandardInput => Ok(()),
    }
}
