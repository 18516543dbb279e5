//! The rows behind the last separator.

use linerate_model::event::Endpoint;
use linerate_model::summary::{CpuUsage, FileSummary};
use linerate_model::units::{UnitFormat, format_amount};
use linerate_model::{Flow, StreamRole, StreamSummary, Summary, Transport};

use super::row::Subject;
use super::{SEPARATOR, Test};
use crate::report::totals::{Totals, percent, streams_of};

impl Test {
    /// The rows of all streams and directions.
    pub(super) fn summary(&self, summary: &Summary, verbose: bool) -> Vec<String> {
        let mut lines = vec![SEPARATOR.to_owned()];
        if verbose {
            lines.push("Test Complete. Summary Results:".into());
        }

        // One header for all rows: a row without the number leaves its column blank.
        let has_retransmits = summary
            .streams
            .iter()
            .any(|s| s.tcp.is_some_and(|tcp| tcp.retransmits.is_some()));
        lines.push(self.columns.summary_header(has_retransmits));
        for flow in [Flow::Forward, Flow::Reverse] {
            lines.extend(self.direction(summary, flow, verbose));
        }
        lines
    }

    /// The block of one direction: its streams, their sum, and for the curious what it cost.
    fn direction(&self, summary: &Summary, flow: Flow, verbose: bool) -> Vec<String> {
        let spec = &self.header.spec;
        let mut lines = Vec::new();

        for stream in streams_of(summary, flow) {
            let totals = Totals::of_stream(stream, spec);
            lines.extend(self.views(Subject::Stream(stream.id), &totals, Some(stream), verbose));
        }

        let Some(sum) = Totals::of_flow(summary, flow, spec) else {
            return lines;
        };
        // The sum of one stream would repeat it.
        if spec.streams > 1 {
            lines.extend(self.views(Subject::Sum, &sum, None, verbose));
        }

        if verbose {
            lines.extend(self.cpu_lines(summary, sum.role));
            lines.extend(self.congestion_lines(summary, flow));
        }

        lines
    }

    /// Sender row and receiver row. A server knows only its own, because it reports before the
    /// results are exchanged.
    fn views(
        &self,
        subject: Subject,
        totals: &Totals,
        stream: Option<&StreamSummary>,
        verbose: bool,
    ) -> Vec<String> {
        let knows = |role| self.header.endpoint == Endpoint::Client || totals.role == role;
        let missing = |role: &str| verbose.then(|| subject.not_available(role));

        let sender = if knows(StreamRole::Sender) {
            let view = &totals.sender;
            let retransmits = totals.retransmits;
            Some(
                self.columns
                    .summary_sender(subject, totals.role, view, retransmits),
            )
        } else {
            missing("sender")
        };
        let receiver = if knows(StreamRole::Receiver) {
            let view = &totals.receiver;
            Some(self.columns.summary_receiver(subject, totals.role, view))
        } else {
            missing("receiver")
        };

        let between = stream.map_or_else(Vec::new, |stream| self.between(stream, totals));
        sender.into_iter().chain(between).chain(receiver).collect()
    }

    /// The line between the two rows of a stream.
    fn between(&self, stream: &StreamSummary, totals: &Totals) -> Vec<String> {
        let late = totals.receiver.udp.out_of_order;
        let late = (late > 0).then(|| {
            self.columns
                .out_of_order(totals.role, totals.sender.seconds(), late)
        });
        let file = stream
            .file
            .as_ref()
            .map(|file| file_line(file, totals.local().bytes));

        late.into_iter().chain(file).collect()
    }

    /// CPU use is shown with the direction this end sends in; with two directions once from each
    /// side.
    fn cpu_lines(&self, summary: &Summary, role: StreamRole) -> Vec<String> {
        let (StreamRole::Sender, Some(local)) = (role, summary.cpu_local) else {
            return Vec::new();
        };
        // Zeros where the other end sent no results.
        let remote = summary.cpu_remote.unwrap_or_default();
        let mut lines = vec![cpu_line("sender", local, "receiver", remote)];

        if self.is_bidirectional() {
            lines.push(cpu_line("receiver", local, "sender", remote));
        }

        lines
    }

    fn congestion_lines(&self, summary: &Summary, flow: Flow) -> Vec<String> {
        if self.header.spec.transport != Transport::Tcp {
            return Vec::new();
        }

        let (sender, receiver) = congestion(summary, flow, self.is_bidirectional());
        let sender = sender.map(|name| format!("snd_tcp_congestion {name}"));
        let receiver = receiver.map(|name| format!("rcv_tcp_congestion {name}"));
        sender.into_iter().chain(receiver).collect()
    }
}

/// Congestion control at the sending and at the receiving end of one direction. With two directions
/// each end is both.
pub(crate) fn congestion(
    summary: &Summary,
    flow: Flow,
    bidirectional: bool,
) -> (Option<&str>, Option<&str>) {
    let sender = summary.sender_congestion.as_deref();
    let receiver = summary.receiver_congestion.as_deref();

    if bidirectional && flow == Flow::Reverse {
        (receiver, sender)
    } else {
        (sender, receiver)
    }
}

fn file_line(file: &FileSummary, bytes: u64) -> String {
    let moved = format_amount(bytes as f64, UnitFormat::BYTES);
    let size = format_amount(file.size_bytes as f64, UnitFormat::BYTES);
    let share = file_percent(bytes, file.size_bytes);
    format!("        Sent {moved} / {size} ({share}%) of {}", file.name)
}

/// Whole percent of a file that was moved.
pub(crate) fn file_percent(bytes: u64, size_bytes: u64) -> i64 {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    percent(signed(bytes), signed(size_bytes)) as i64
}

fn cpu_line(local_role: &str, local: CpuUsage, remote_role: &str, remote: CpuUsage) -> String {
    let show = |cpu: CpuUsage| {
        format!(
            "{:.1}% ({:.1}%u/{:.1}%s)",
            cpu.total_percent, cpu.user_percent, cpu.system_percent
        )
    };
    format!(
        "CPU Utilization: local/{local_role} {}, remote/{remote_role} {}",
        show(local),
        show(remote)
    )
}
