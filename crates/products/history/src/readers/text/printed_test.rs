//! One test as one end printed it.

mod events;

use linerate_iperf3::report::reader::failed;
use linerate_model::event::Endpoint;
use linerate_model::{Event, Failure, Flow};

use super::Taken;
use super::banner::{self, Opening, Tool};
use super::row::{RoleTag, Row, Subject};
use super::stream::TextStream;
use crate::readers::time;

/// Streams of one test.
const STREAMS_MAX: usize = 1024;

/// The rows of one test as one end printed them.
pub(in crate::readers) struct TextTest {
    pub opening: Opening,
    pub(super) streams: Vec<TextStream>,
    /// Numbers in the report, by stream.
    subjects: Vec<Subject>,
    failure: Option<Failure>,
    pub source: String,
}

impl TextTest {
    pub(super) fn new(mut opening: Opening) -> Self {
        let source = std::mem::take(&mut opening.source);
        Self {
            opening,
            streams: Vec::new(),
            subjects: Vec::new(),
            failure: None,
            source,
        }
    }

    /// Adds a stream; returns its place, `None` where there is no room.
    pub(super) fn add(&mut self, subject: Subject, stream: TextStream) -> Option<usize> {
        if self.streams.len() >= STREAMS_MAX {
            return None;
        }

        self.streams.push(stream);
        self.subjects.push(subject);
        Some(self.streams.len() - 1)
    }

    /// True if a stream is between the hosts of this test.
    pub(super) fn is_of_pair(&self, stream: &TextStream) -> bool {
        let hosts = |stream: &TextStream| Some((stream.local?.0, stream.remote?.0));
        let first = self.streams.iter().find_map(hosts);
        first.is_none() || first == hosts(stream)
    }

    pub(super) fn has_rows(&self) -> bool {
        self.failure.is_some() || self.streams.iter().any(TextStream::has_rows)
    }

    pub(super) fn has_totals(&self) -> bool {
        self.failure.is_some() || self.streams.iter().any(TextStream::has_totals)
    }

    pub(super) fn row(&mut self, place: usize, tag: Option<RoleTag>, row: Row) {
        let Some(stream) = self.streams.get_mut(place) else {
            return;
        };
        if let Some(RoleTag { sends, is_server }) = tag {
            // The forward direction is that of a client which sends and of a server which receives.
            stream.flow = Some(if sends == is_server {
                Flow::Reverse
            } else {
                Flow::Forward
            });
            let endpoint = if is_server {
                Endpoint::Server
            } else {
                Endpoint::Client
            };
            self.opening.endpoint = self.opening.endpoint.or(Some(endpoint));
        }

        self.opening.is_udp |= row.udp.is_some();
        stream.push(row);
    }

    /// Reads a line about a stream that is no row.
    pub(super) fn remark(&mut self, place: Option<usize>, rest: &str) -> bool {
        let stream = place.and_then(|place| self.streams.get_mut(place));
        if rest.starts_with("Server Report") {
            if let Some(stream) = stream {
                stream.is_server_report = true;
            }
            return true;
        }

        if let Some(count) = rest
            .strip_prefix("Sent ")
            .and_then(|text| text.strip_suffix(" datagrams"))
        {
            if let Some(stream) = stream {
                stream.sent_datagrams = count.parse().ok();
            }
            return true;
        }

        const OF_NO_USE: &str = "\
            statistics not available|final connect times|traffic to start|PDF|OWD|WARNING|\
            out-of-order|schedule errors|Latency|MSS size|Final";

        OF_NO_USE.split('|').any(|words| rest.contains(words))
    }

    /// Reads a line around the rows.
    pub(super) fn line(&mut self, line: &str) -> Taken {
        let Some(error) = banner::error(line) else {
            return self.opening.line(line);
        };

        // A server that ends after a test has not failed it.
        let endpoint = self.endpoint();
        let is_over = self
            .streams
            .iter()
            .any(|stream| stream.sender.is_some() || stream.receiver.is_some());

        if let Event::Failed(failure) = failed(error, endpoint)
            && (!is_over || endpoint == Endpoint::Client)
        {
            self.failure = Some(failure);
        }

        Taken::Yes
    }

    pub(in crate::readers) fn endpoint(&self) -> Endpoint {
        self.opening.endpoint.unwrap_or(Endpoint::Client)
    }

    pub(in crate::readers) fn tool_name(&self) -> &'static str {
        if self.opening.tool == Some(Tool::Iperf3) {
            "iperf3"
        } else {
            "iperf"
        }
    }

    pub(in crate::readers) fn started_unix_ms(
        &self,
        utc_offset_s: &dyn Fn(i64) -> i64,
    ) -> Option<u64> {
        let opened = self
            .streams
            .iter()
            .find_map(|stream| time::iso_ms(stream.opened.as_deref()?, utc_offset_s));
        self.opening.started_unix_ms.or(opened)
    }

    /// Text that a whole and a cut report of the test have in common: its connections, and the
    /// first row.
    pub(in crate::readers) fn key_text(&self) -> String {
        let ends = self
            .streams
            .iter()
            .map(|stream| format!("{:?}{:?}", stream.local, stream.remote));
        let first = self.streams.iter().find_map(|stream| stream.rows().next());
        let first = first.map(|row| format!("{} {} {}", row.end_s, row.bytes, row.rate_bps));

        // Without a line for each stream both ends print the same.
        [format!("{:?}", self.endpoint())]
            .into_iter()
            .chain(ends)
            .chain(first)
            .collect()
    }

    /// Streams with rows. The sum replaces them where no other has rows (`--sum-only`).
    fn used(&self) -> Vec<(usize, &TextStream)> {
        let with_rows = || {
            self.streams
                .iter()
                .enumerate()
                .filter(|(_, stream)| stream.has_rows())
        };
        let is_sum = |place: usize| self.subjects.get(place) == Some(&Subject::Sum);
        let streams: Vec<_> = with_rows().filter(|(place, _)| !is_sum(*place)).collect();
        if streams.is_empty() {
            with_rows().collect()
        } else {
            streams
        }
    }

    fn flow(&self, place: usize, stream: &TextStream) -> Flow {
        if let Some(flow) = stream.flow {
            return flow;
        }

        let opening = &self.opening;
        let is_marked = matches!(
            self.subjects.get(place),
            Some(Subject::Stream {
                is_marked: true,
                ..
            })
        );

        let is_iperf2 = opening.tool == Some(Tool::Iperf2);
        // A server of iperf 2 opens the connection of the other direction to the port on which its
        // client listens.
        let back = match self.endpoint() {
            Endpoint::Client => stream.local,
            Endpoint::Server => stream.remote,
        };
        let is_opened_back = is_iperf2
            && opening.server_port.is_some()
            && back.map(|(_, port)| port) == opening.server_port;
        let sends = opening
            .sends
            .filter(|_| self.endpoint() == Endpoint::Server && !is_iperf2);

        let is_reverse = opening.is_reverse
            || stream.is_reverse
            || is_marked
            || is_opened_back
            || sends == Some(true);

        if is_reverse {
            Flow::Reverse
        } else {
            Flow::Forward
        }
    }
}
