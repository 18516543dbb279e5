//! Single lines: the columns iperf3 has used for years and scripts cut apart, trailing blanks
//! included.

use std::ops::Range;

use linerate_document::number;
use linerate_model::event::Endpoint;
use linerate_model::interval::{IntervalSum, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::units::{UnitFormat, format_amount, ns_to_s, rate_bps};
use linerate_model::{Direction, StreamId, StreamRole, TestSpec, Transport};

use crate::report::totals::{UdpView, View, interval_lost_percent};

/// Number a stream is shown with. In iperf3 it is a file descriptor; this is what that usually is.
pub(crate) fn display_id(id: StreamId) -> u64 {
    5 + 2 * u64::from(id.0)
}

/// Settings shared by all rows of a test.
pub(super) struct Columns {
    pub endpoint: Endpoint,
    pub bidirectional: bool,
    pub udp: bool,
    pub format: UnitFormat,
}

/// Who a row is about.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    Stream(StreamId),
    Sum,
}

impl Columns {
    pub(super) fn new(endpoint: Endpoint, spec: &TestSpec, format: UnitFormat) -> Self {
        Self {
            endpoint,
            bidirectional: spec.direction == Direction::Bidirectional,
            udp: spec.transport == Transport::Udp,
            format,
        }
    }

    /// Header above the intervals. `tcp_facts`: some row has TCP columns.
    pub(super) fn interval_header(&self, role: StreamRole, tcp_facts: bool) -> String {
        let columns = match (self.udp, role, self.bidirectional) {
            (true, StreamRole::Sender, false) => "         Total Datagrams",
            (true, ..) => LOSS_COLUMNS,
            (false, ..) if tcp_facts => "         Retr  Cwnd",
            (false, ..) => "",
        };
        self.header(columns)
    }

    /// Header above the summary. `retransmits`: some row knows retransmissions.
    pub(super) fn summary_header(&self, retransmits: bool) -> String {
        self.header(match (self.udp, retransmits) {
            (true, _) => LOSS_COLUMNS,
            (false, true) => "         Retr",
            (false, false) => "",
        })
    }

    fn header(&self, columns: &str) -> String {
        let role = if self.bidirectional { "[Role]" } else { "" };
        format!("[ ID]{role} Interval           Transfer     Bitrate{columns}")
    }

    /// One stream in one interval.
    pub(super) fn interval_row(&self, row: &StreamInterval, note: &str) -> String {
        let lead = self.lead(
            Subject::Stream(row.id),
            row.role,
            row.start_ns..row.end_ns,
            row.bytes,
        );
        match (&row.tcp, &row.udp) {
            // Streams of UDP have no TCP columns even if the kernel has facts.
            (_, Some(udp)) => self.udp_interval(&lead, row.role, udp, note),
            (Some(tcp), None) => tcp_interval(&lead, tcp, note),
            (None, None) => plain(&lead, note),
        }
    }

    /// All streams of one direction in one interval.
    pub(super) fn interval_sum(&self, sum: &IntervalSum, note: &str) -> String {
        let lead = self.lead(Subject::Sum, sum.role, sum.start_ns..sum.end_ns, sum.bytes);
        match (sum.retransmits, &sum.udp) {
            (_, Some(udp)) => self.udp_interval(&lead, sum.role, udp, note),
            (Some(retransmits), None) => sum_with_retransmits(&lead, retransmits, note),
            (None, None) => plain(&lead, note),
        }
    }

    /// Counters of the sender of a stream or direction over the whole test.
    pub(super) fn summary_sender(
        &self,
        subject: Subject,
        role: StreamRole,
        view: &View,
        retransmits: Option<u64>,
    ) -> String {
        let lead = self.lead(subject, role, 0..view.duration_ns, view.bytes);
        match (self.udp, retransmits, subject) {
            (true, ..) => {
                // The original prints neither losses nor jitter in the row of a sender.
                let sent = UdpView {
                    lost: Some(0),
                    jitter_s: 0.0,
                    ..view.udp
                };
                udp_summary(&lead, &sent, "sender")
            }
            (false, Some(retransmits), Subject::Stream(_)) => {
                format!("{lead}  {retransmits:>3}            sender")
            }
            (false, Some(retransmits), Subject::Sum) => {
                sum_with_retransmits(&lead, retransmits, "sender")
            }
            (false, None, _) => plain(&lead, "sender"),
        }
    }

    /// Counters of the receiver.
    pub(super) fn summary_receiver(
        &self,
        subject: Subject,
        role: StreamRole,
        view: &View,
    ) -> String {
        let lead = self.lead(subject, role, 0..view.duration_ns, view.bytes);
        if self.udp {
            udp_summary(&lead, &view.udp, "receiver")
        } else {
            plain(&lead, "receiver")
        }
    }

    /// Datagrams that came late or twice on a stream. Written as a sum even for one stream.
    pub(super) fn out_of_order(&self, role: StreamRole, seconds: f64, datagrams: u64) -> String {
        let tag = self.tag(role);
        format!(
            "[SUM]{tag} {:4.1}-{seconds:4.1} sec  {datagrams} datagrams received out-of-order",
            0.0
        )
    }

    fn udp_interval(&self, lead: &str, role: StreamRole, udp: &UdpInterval, note: &str) -> String {
        match role {
            StreamRole::Sender => {
                // The count lines up with the loss column of the other direction.
                let pad = if self.bidirectional { "          " } else { "" };
                format!("{lead} {pad} {}  {note}", udp.packets)
            }
            StreamRole::Receiver => {
                let percent = number::general(interval_lost_percent(udp), 2);
                let jitter_ms = udp.jitter_s * 1000.0;
                let lost = udp.lost;
                let total = udp.packets;
                format!("{lead}  {jitter_ms:5.3} ms  {lost}/{total} ({percent}%)  {note}")
            }
        }
    }

    /// Everything up to the bit rate.
    fn lead(&self, subject: Subject, role: StreamRole, time_ns: Range<u64>, bytes: u64) -> String {
        let subject = match subject {
            Subject::Stream(id) => format!("[{:>3}]", display_id(id)),
            Subject::Sum => "[SUM]".into(),
        };
        let tag = self.tag(role);
        let start = ns_to_s(time_ns.start);
        let end = ns_to_s(time_ns.end);
        let seconds = ns_to_s(time_ns.end.saturating_sub(time_ns.start));
        let transfer = format_amount(bytes as f64, UnitFormat::BYTES);
        // unit_snprintf takes bytes; the letter decides between bits and bytes.
        let rate = format_amount(rate_bps(bytes, seconds) / 8.0, self.format);

        format!("{subject}{tag} {start:6.2}-{end:<6.2} sec  {transfer}s  {rate}s/sec")
    }

    fn tag(&self, role: StreamRole) -> &'static str {
        match (self.bidirectional, role, self.endpoint) {
            (false, ..) => "",
            (true, StreamRole::Sender, Endpoint::Client) => "[TX-C]",
            (true, StreamRole::Receiver, Endpoint::Client) => "[RX-C]",
            (true, StreamRole::Sender, Endpoint::Server) => "[TX-S]",
            (true, StreamRole::Receiver, Endpoint::Server) => "[RX-S]",
        }
    }
}

impl Subject {
    /// The line in place of a view that the other end sends later.
    pub(super) fn not_available(self, role: &str) -> String {
        match self {
            Self::Stream(id) => {
                format!("[{:>3}] ({role} statistics not available)", display_id(id))
            }
            Self::Sum => format!("[SUM] ({role} statistics not available)"),
        }
    }
}

fn plain(lead: &str, note: &str) -> String {
    format!("{lead}                  {note}")
}

fn tcp_interval(lead: &str, tcp: &TcpInterval, note: &str) -> String {
    let window = format_amount(tcp.snd_cwnd_bytes as f64, UnitFormat::BYTES);
    format!("{lead}  {:>3}   {window}s       {note}", tcp.retransmits)
}

/// One blank more than a stream's summary row has; iperf3 3.18 moved only the latter.
fn sum_with_retransmits(lead: &str, retransmits: u64, note: &str) -> String {
    format!("{lead}  {retransmits:>3}             {note}")
}

fn udp_summary(lead: &str, udp: &UdpView, note: &str) -> String {
    let jitter_ms = udp.jitter_s * 1000.0;
    let total = udp.packets;

    match (udp.lost, udp.lost_percent()) {
        (Some(lost), Some(percent)) => {
            let percent = number::general(percent, 2);
            format!("{lead}  {jitter_ms:5.3} ms  {lost}/{total} ({percent}%)  {note}")
        }
        _ => format!("{lead}  {jitter_ms:5.3} ms  Unknown/{total}  {note}"),
    }
}

const LOSS_COLUMNS: &str = "         Jitter    Lost/Total Datagrams";
