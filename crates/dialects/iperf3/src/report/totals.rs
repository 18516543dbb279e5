//! Counters of both ends for a stream or a whole direction: the numbers behind every summary row.

use std::time::Duration;

use linerate_model::interval::UdpInterval;
use linerate_model::sink::Tee;
use linerate_model::summary::UdpTotals;
use linerate_model::units::{ns_to_s, rate_bps};
use linerate_model::{
    EndpointTotals, EventSink, Flow, SinkError, StreamRole, StreamSummary, Summary, TestSpec,
};
use serde_json::Value;

/// Sender's and receiver's view of one stream, or of all streams of one direction.
pub(super) struct Totals {
    /// Role of this end.
    pub role: StreamRole,
    /// Counters of the sending end; zeros over this end's duration when it did not report.
    pub sender: View,
    /// Counters of the receiving end, likewise.
    pub receiver: View,
    /// Segments the sending end retransmitted, when it knows.
    pub retransmits: Option<u64>,
}

/// One end's view.
#[derive(Clone, Copy, Default)]
pub(super) struct View {
    pub bytes: u64,
    pub duration_ns: u64,
    pub udp: UdpView,
}

/// UDP counters of the measured part.
#[derive(Clone, Copy)]
pub(super) struct UdpView {
    pub packets: i64,
    /// `None` when the warm-up's share is not known.
    pub lost: Option<i64>,
    pub out_of_order: u64,
    pub jitter_s: f64,
}

impl Totals {
    pub(super) fn of_stream(stream: &StreamSummary, spec: &TestSpec) -> Self {
        let local_ns = stream.local().map_or(0, |half| half.duration_ns);
        Self {
            role: stream.role,
            sender: View::of_half(stream.sender.as_ref(), local_ns, spec.omit),
            receiver: View::of_half(stream.receiver.as_ref(), local_ns, spec.omit),
            retransmits: stream.tcp.and_then(|tcp| tcp.retransmits),
        }
    }

    /// Adds up the streams of one direction; `None` when there are none.
    pub(super) fn of_flow(summary: &Summary, flow: Flow, spec: &TestSpec) -> Option<Self> {
        let streams: Vec<Self> = streams_of(summary, flow)
            .map(|s| Self::of_stream(s, spec))
            .collect();
        let first = streams.first()?;
        Some(Self {
            role: first.role,
            sender: View::sum(streams.iter().map(|s| s.sender)),
            receiver: View::sum(streams.iter().map(|s| s.receiver)),
            retransmits: add_if_all_known(
                streams.iter().map(|s| s.retransmits),
                u64::saturating_add,
            ),
        })
    }

    /// The view of this end.
    pub(super) fn local(&self) -> &View {
        match self.role {
            StreamRole::Sender => &self.sender,
            StreamRole::Receiver => &self.receiver,
        }
    }

    /// Datagrams sent, or what the receiver could see of them when the sender did not report.
    pub(super) fn packets(&self) -> i64 {
        match self.sender.udp.packets {
            0 => self.receiver.udp.packets,
            sent => sent,
        }
    }
}

impl View {
    fn of_half(half: Option<&EndpointTotals>, local_ns: u64, omit: Duration) -> Self {
        match half {
            Some(half) => Self {
                bytes: half.bytes,
                duration_ns: half.duration_ns,
                udp: half
                    .udp
                    .map_or_else(UdpView::default, |udp| UdpView::measured(&udp, omit)),
            },
            // The original prints zeros over its own time for an end that did not report.
            None => Self {
                duration_ns: local_ns,
                ..Self::default()
            },
        }
    }

    /// Amounts add up, jitter is the mean, and the sum lasts as long as its longest part. Numbers
    /// of a peer may be anything, so the sums stop at the largest number.
    fn sum(views: impl Iterator<Item = Self>) -> Self {
        let views: Vec<Self> = views.collect();
        Self {
            bytes: views.iter().map(|v| v.bytes).fold(0, u64::saturating_add),
            duration_ns: views.iter().map(|v| v.duration_ns).max().unwrap_or(0),
            udp: UdpView {
                packets: views
                    .iter()
                    .map(|v| v.udp.packets)
                    .fold(0, i64::saturating_add),
                lost: add_if_all_known(views.iter().map(|v| v.udp.lost), i64::saturating_add),
                out_of_order: views
                    .iter()
                    .map(|v| v.udp.out_of_order)
                    .fold(0, u64::saturating_add),
                // The original divides the sum of jitters by the number of streams.
                jitter_s: views.iter().map(|v| v.udp.jitter_s).sum::<f64>()
                    / views.len().max(1) as f64,
            },
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        ns_to_s(self.duration_ns)
    }

    pub(super) fn bits_per_second(&self) -> f64 {
        rate_bps(self.bytes, self.seconds())
    }
}

impl UdpView {
    /// Takes the warm-up off. A peer that does not report the warm-up's share of the losses leaves
    /// them unknown, and its total as it is.
    fn measured(half: &UdpTotals, omit: Duration) -> Self {
        // Without a warm-up there is nothing to subtract.
        let omitted_lost = half.omitted_lost.or(omit.is_zero().then_some(0));
        Self {
            packets: signed(half.packets) - signed(half.omitted_packets.unwrap_or(0)),
            lost: omitted_lost.map(|omitted| signed(half.lost) - signed(omitted)),
            out_of_order: half.out_of_order,
            jitter_s: half.jitter_s,
        }
    }

    /// Lost datagrams in percent of all the receiver could know of.
    pub(super) fn lost_percent(&self) -> Option<f64> {
        self.lost.map(|lost| percent(lost, self.packets))
    }
}

impl Default for UdpView {
    fn default() -> Self {
        Self {
            packets: 0,
            lost: Some(0),
            out_of_order: 0,
            jitter_s: 0.0,
        }
    }
}

/// Adds numbers up; one that is not known leaves the sum unknown.
fn add_if_all_known<T: Default>(
    mut numbers: impl Iterator<Item = Option<T>>,
    add: fn(T, T) -> T,
) -> Option<T> {
    numbers.try_fold(T::default(), |sum, figure| Some(add(sum, figure?)))
}

/// The streams of one direction.
pub(super) fn streams_of(summary: &Summary, flow: Flow) -> impl Iterator<Item = &StreamSummary> {
    summary.streams.iter().filter(move |s| s.flow == flow)
}

/// Lost datagrams of an interval in percent.
pub(super) fn interval_lost_percent(udp: &UdpInterval) -> f64 {
    percent(udp.lost, signed(udp.packets))
}

/// `part` in percent of `whole`, 0 of nothing.
pub(super) fn percent(part: i64, whole: i64) -> f64 {
    if whole > 0 {
        100.0 * part as f64 / whole as f64
    } else {
        0.0
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The report of one test.
pub trait TestReport: EventSink {
    /// Adds to the report; before the last event.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError>;
}

impl<T: TestReport + ?Sized> TestReport for &mut T {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        (**self).append(appendix)
    }
}

/// Additions are for the second sink alone.
impl<A: EventSink, B: TestReport> TestReport for Tee<A, B> {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        self.1.append(appendix)
    }
}

/// An addition to a report.
pub struct Appendix {
    /// Its name in structured reports.
    pub name: &'static str,
    /// The addition for people; lines without an end.
    pub text: String,
    /// The same for programs: one JSON value.
    pub json: String,
}

impl Appendix {
    /// Output that is no JSON is reported as text.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or_else(|_| self.text.as_str().into())
    }
}
