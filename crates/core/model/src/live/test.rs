//! A test that runs here as its client.

use super::{LiveLine, LiveState};
use crate::event::{Event, TestHeader};
use crate::interval::{IntervalReport, StreamInterval};
use crate::spec::{Direction, EndCondition, Transport};
use crate::stream::{Flow, StreamId, StreamRole};
use crate::units::{ns_to_s, rate_bps};

/// Streams whose lines are kept; the lines of all streams together are kept always.
const STREAMS_MAX: usize = 256;

/// A test and its streams.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveTest {
    /// Its progress.
    pub phase: LivePhase,
    /// Agreed parameters; `None` before.
    pub agreed: Option<(Transport, Direction, EndCondition)>,
    /// The server as the user named it.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// When the measured part began, in ns since the view began; `None` before.
    pub started_ns: Option<u64>,
    /// The streams in their order.
    pub streams: Vec<LiveStream>,
    /// Streams of the test, also those without a line of their own.
    pub streams_all: usize,
    /// Payload from client to server in bit/s per interval.
    pub forward: LiveLine,
    /// Payload from server to client in bit/s per interval.
    pub reverse: LiveLine,
    /// Payload bytes of the measured part, both directions.
    pub bytes: u64,
    /// Time of the measured part in ns.
    pub measured_ns: u64,
    /// Retransmitted segments, when they are known.
    pub retransmits: Option<u64>,
    /// Lost datagrams, when they are known.
    pub lost: Option<i64>,
    /// Datagrams that were expected, when they are known.
    pub expected: Option<u64>,
    /// Remarks for the user.
    pub warnings: Vec<String>,
}

/// Progress of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LivePhase {
    /// The server has not answered yet.
    #[default]
    Connecting,
    /// Streams are being opened.
    Opening,
    /// Data flows that is not counted.
    WarmUp,
    /// Data flows.
    Running,
    /// The test is complete.
    Done,
    /// It has ended and is not complete.
    Failed(String),
}

/// One stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveStream {
    /// Its position in the test.
    pub id: StreamId,
    /// Role of this end on it.
    pub role: StreamRole,
    /// Its direction.
    pub flow: Flow,
    /// Payload in bit/s per interval.
    pub rate: LiveLine,
    /// Retransmitted segments of the last interval; senders of TCP only.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time in µs; senders of TCP only.
    pub rtt_us: Option<u32>,
    /// Congestion window in bytes; senders of TCP only.
    pub cwnd_bytes: Option<u64>,
    /// Lost datagrams of the last interval; receivers of UDP only.
    pub lost: Option<i64>,
    /// Jitter in s; receivers of UDP only.
    pub jitter_s: Option<f64>,
}

impl LiveTest {
    /// Payload in bit/s since the measured part began; `None` before the first interval.
    pub fn mean_bps(&self) -> Option<f64> {
        (self.measured_ns > 0).then(|| rate_bps(self.bytes, ns_to_s(self.measured_ns)))
    }
}

impl LiveState {
    /// Takes an event of a test that runs here.
    pub fn event(&mut self, event: &Event, at_ns: u64) {
        if !is_shown(event) {
            return;
        }

        self.version += 1;
        if self.test.as_ref().is_none_or(|test| is_over(&test.phase)) {
            self.test = Some(LiveTest::default());
        }

        if let Some(test) = &mut self.test {
            test.event(event, at_ns);
        }
    }
}

fn is_over(phase: &LivePhase) -> bool {
    matches!(phase, LivePhase::Done | LivePhase::Failed(_))
}

fn is_shown(event: &Event) -> bool {
    matches!(
        event,
        Event::ControlConnected(_)
            | Event::TestAccepted(_)
            | Event::StreamOpened(_)
            | Event::TestStarted { .. }
            | Event::Interval(_)
            | Event::OmitEnded
            | Event::Warning(_)
            | Event::Finished
            | Event::Failed(_)
    )
}

impl LiveTest {
    fn event(&mut self, event: &Event, at_ns: u64) {
        match event {
            Event::ControlConnected(_) => self.phase = LivePhase::Opening,
            Event::TestAccepted(header) => self.accept(header),
            Event::StreamOpened(stream) => {
                self.streams_all += 1;
                // Further streams count in the sums alone.
                if self.streams.len() < STREAMS_MAX {
                    let id = stream.id;
                    let role = stream.role;
                    let flow = stream.flow;
                    self.streams.push(LiveStream {
                        id,
                        role,
                        flow,
                        ..LiveStream::default()
                    });
                }
            }
            Event::TestStarted { .. } | Event::OmitEnded => {
                self.phase = LivePhase::Running;
                // Times of a test begin again with the end of its warm-up.
                self.started_ns = Some(at_ns);
            }
            Event::Interval(interval) => self.interval(interval),
            Event::Warning(text) => self.warnings.push(text.clone()),
            Event::Finished => self.phase = LivePhase::Done,
            Event::Failed(failure) => self.phase = LivePhase::Failed(failure.to_string()),
            _ => {}
        }
    }

    fn accept(&mut self, header: &TestHeader) {
        self.phase = LivePhase::Opening;
        self.host.clone_from(&header.peer_host);
        self.port = header.peer_port;
        self.agreed = Some((
            header.spec.transport,
            header.spec.direction,
            header.spec.end,
        ));
    }

    fn interval(&mut self, interval: &IntervalReport) {
        if interval.omitted {
            self.phase = LivePhase::WarmUp;
        }

        for row in &interval.streams {
            if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == row.id) {
                stream.interval(row);
            }
        }

        for (flow, line) in [
            (Flow::Forward, &mut self.forward),
            (Flow::Reverse, &mut self.reverse),
        ] {
            let rows = || interval.streams.iter().filter(|row| row.flow == flow);
            // A direction without streams has no line, which is not one of zeros.
            if rows().next().is_some() {
                line.push(rows().map(StreamInterval::bits_per_second).sum());
            }
        }

        if !interval.omitted {
            self.count(interval);
        }
    }

    fn count(&mut self, interval: &IntervalReport) {
        let rows = &interval.streams;
        let bytes: u64 = rows
            .iter()
            .map(|row| row.bytes)
            .fold(0, u64::saturating_add);
        self.bytes = self.bytes.saturating_add(bytes);
        // Rows count from the end of the warm-up: the last end is the time that was measured.
        self.measured_ns = rows
            .iter()
            .map(|row| row.end_ns)
            .max()
            .unwrap_or(self.measured_ns);

        for tcp in rows.iter().filter_map(|row| row.tcp) {
            self.retransmits = Some(
                self.retransmits
                    .unwrap_or(0)
                    .saturating_add(tcp.retransmits),
            );
        }

        // A sender does not know what was lost.
        let received = rows.iter().filter(|row| row.role == StreamRole::Receiver);
        for udp in received.filter_map(|row| row.udp) {
            self.lost = Some(self.lost.unwrap_or(0).saturating_add(udp.lost));
            self.expected = Some(self.expected.unwrap_or(0).saturating_add(udp.packets));
        }
    }
}

impl LiveStream {
    fn interval(&mut self, row: &StreamInterval) {
        self.rate.push(row.bits_per_second());
        self.retransmits = row.tcp.map(|tcp| tcp.retransmits);
        self.rtt_us = row.tcp.map(|tcp| tcp.rtt_us);
        self.cwnd_bytes = row.tcp.map(|tcp| tcp.snd_cwnd_bytes);

        let udp = row.udp.filter(|_| row.role == StreamRole::Receiver);
        self.lost = udp.map(|udp| udp.lost);
        self.jitter_s = udp.map(|udp| udp.jitter_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, FailureKind};
    use crate::interval::{TcpInterval, UdpInterval};

    fn row(id: u32, bytes: u64) -> StreamInterval {
        let tcp = Some(TcpInterval {
            retransmits: 2,
            rtt_us: 300,
            ..TcpInterval::default()
        });
        StreamInterval {
            id: StreamId(id),
            end_ns: 1_000_000_000,
            bytes,
            tcp,
            ..StreamInterval::default()
        }
    }

    fn running() -> LiveState {
        let test = LiveTest {
            streams: vec![LiveStream::default()],
            streams_all: 1,
            ..LiveTest::default()
        };
        let mut state = LiveState {
            test: Some(test),
            ..LiveState::default()
        };
        state.event(
            &Event::TestStarted {
                at_monotonic_ns: None,
            },
            7,
        );

        state
    }

    #[test]
    fn an_interval_is_a_point_of_its_stream_and_of_the_test() {
        let mut state = running();
        state.event(
            &Event::Interval(IntervalReport {
                streams: vec![row(0, 125_000_000)],
                ..IntervalReport::default()
            }),
            8,
        );
        let test = state.test.expect("a test");
        assert_eq!((test.phase, test.started_ns), (LivePhase::Running, Some(7)));
        assert_eq!(
            (test.forward.last(), test.reverse.last()),
            (Some(1e9), None)
        );
        assert_eq!(
            (test.streams[0].rate.last(), test.streams[0].rtt_us),
            (Some(1e9), Some(300))
        );
        assert_eq!((test.retransmits, test.lost), (Some(2), None));
    }

    #[test]
    fn a_warm_up_is_shown_and_not_counted() {
        let mut state = running();
        let omitted = IntervalReport {
            omitted: true,
            streams: vec![row(0, 1000)],
            ..IntervalReport::default()
        };
        state.event(&Event::Interval(omitted), 8);

        let test = state.test.expect("a test");
        assert_eq!(
            (test.phase, test.bytes, test.retransmits),
            (LivePhase::WarmUp, 0, None)
        );
        assert!(test.forward.last().is_some());
    }

    #[test]
    fn only_a_receiver_knows_losses() {
        let udp = Some(UdpInterval {
            packets: 100,
            lost: 3,
            ..UdpInterval::default()
        });
        for (role, lost) in [(StreamRole::Sender, None), (StreamRole::Receiver, Some(3))] {
            let mut state = running();
            let row = StreamInterval {
                udp,
                role,
                tcp: None,
                ..row(0, 1000)
            };
            state.event(
                &Event::Interval(IntervalReport {
                    streams: vec![row],
                    ..IntervalReport::default()
                }),
                8,
            );
            assert_eq!(state.test.expect("a test").lost, lost);
        }
    }

    #[test]
    fn the_next_test_begins_anew() {
        let mut state = running();
        let failure = Failure {
            kind: FailureKind::Error,
            message: "no route".into(),
            code: None,
        };
        state.event(&Event::Failed(failure), 9);
        assert!(
            matches!(&state.test.as_ref().expect("a test").phase, LivePhase::Failed(text) if text.contains("no route"))
        );
        state.event(
            &Event::TestStarted {
                at_monotonic_ns: None,
            },
            10,
        );
        assert_eq!(state.test.expect("a test").streams_all, 0);
    }
}
