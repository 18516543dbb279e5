//! The timeline of a test at one end: events become the facts of a run (see [`crate::runs`]).

mod direction;
mod run_facts;

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::interval::{StreamInterval, TcpInterval};
use linerate_model::summary::{EndpointTotals, StreamSummary};
use linerate_model::units::{ns_to_s, rate_bps};
use linerate_model::{
    Event, Flow, IntervalReport, Stream, StreamRole, Summary, TestSpec, Transport, measure,
};

use direction::DirectionStats;
pub use direction::TestInterval;
pub use run_facts::RunFacts;
pub(crate) use run_facts::{added_up, insert, median, shares, spread};

/// Follows the events of one test.
#[derive(Debug, Default)]
pub struct TestTimeline {
    header: Option<TestHeader>,
    streams: Vec<Stream>,
    forward: DirectionStats,
    reverse: DirectionStats,
    summary: Option<Summary>,
    failed: bool,
}

impl TestTimeline {
    /// Takes the next event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::TestAccepted(header) => self.header = Some((**header).clone()),
            Event::StreamOpened(stream) => self.streams.push(stream.clone()),
            Event::Interval(report) if !report.omitted => self.interval(report),
            Event::Summary(summary) => self.summary = Some((**summary).clone()),
            Event::Failed(_) => self.failed = true,
            _ => {}
        }
    }

    /// The facts of every direction of the test that this end has. `busiest_thread_share` is the
    /// part of this process's time that its busiest thread took.
    pub fn runs(&self, busiest_thread_share: Option<f64>) -> Vec<(Flow, RunFacts)> {
        let Some(header) = &self.header else {
            return Vec::new();
        };
        let flows = [Flow::Forward, Flow::Reverse].into_iter();
        let used = flows.filter(|flow| self.streams.iter().any(|stream| stream.flow == *flow));
        used.map(|flow| (flow, self.run(header, flow, busiest_thread_share)))
            .collect()
    }

    /// The intervals of a direction, as far as this end saw them.
    pub fn intervals(&self, flow: Flow) -> Vec<TestInterval> {
        self.direction(flow).intervals()
    }

    fn direction(&self, flow: Flow) -> &DirectionStats {
        match flow {
            Flow::Forward => &self.forward,
            Flow::Reverse => &self.reverse,
        }
    }

    fn interval(&mut self, report: &IntervalReport) {
        // Reports count from the end of the warm-up, samples of the host from its beginning.
        let omit_s = self
            .header
            .as_ref()
            .map_or(0.0, |header| header.spec.omit.as_secs_f64());
        for (flow, direction) in [
            (Flow::Forward, &mut self.forward),
            (Flow::Reverse, &mut self.reverse),
        ] {
            let rows: Vec<&StreamInterval> = report
                .streams
                .iter()
                .filter(|row| row.flow == flow)
                .collect();
            if let Some(sum) = report.sum(flow) {
                let start_s = ns_to_s(sum.start_ns);
                let end_s = ns_to_s(sum.end_ns);
                let seconds = ns_to_s(sum.end_ns.saturating_sub(sum.start_ns));
                let rate_bps = rate_bps(sum.bytes, seconds);
                let tcp: Vec<TcpInterval> = rows.iter().filter_map(|row| row.tcp).collect();
                direction.add_totals(&rows, &tcp, seconds, rate_bps, report.last);
                let period_s = [start_s, end_s].map(|s| omit_s + s);
                direction.add_interval(&rows, &tcp, period_s, rate_bps);
            }
        }
    }

    fn run(&self, header: &TestHeader, flow: Flow, busiest_thread_share: Option<f64>) -> RunFacts {
        let direction = self.direction(flow);
        let mut facts = RunFacts::new();
        options(&mut facts, &header.spec, flow);
        self.addresses(&mut facts, flow);
        insert(&mut facts, "interrupted", Some(self.failed));
        direction.describe(&mut facts);

        if let Some(summary) = &self.summary {
            totals(&mut facts, summary, flow, header.spec.transport, direction);
            self.cpu_times(
                &mut facts,
                header.endpoint,
                flow,
                summary,
                busiest_thread_share,
            );
        }

        facts
    }

    fn addresses(&self, facts: &mut RunFacts, flow: Flow) {
        let Some(stream) = self.streams.iter().find(|stream| stream.flow == flow) else {
            return;
        };
        // A report may not name its ends.
        if !stream.remote.ip().is_unspecified() {
            let family = if stream.remote.is_ipv4() {
                "ipv4"
            } else {
                "ipv6"
            };
            insert(facts, "family", Some(family));
        }

        let ends = [stream.local.ip(), stream.remote.ip()]
            .into_iter()
            .filter(|end| !end.is_unspecified());
        let mut ends: Vec<String> = ends.map(|end| end.to_string()).collect();
        ends.sort_unstable();

        if !ends.is_empty() {
            insert(facts, "path", Some(ends.join(" ")));
        }

        if stream.role == StreamRole::Sender {
            let congestion = stream.effective.congestion.as_deref();
            insert(facts, "congestion", congestion);
        }
    }

    /// CPU time of both ends, of one core. The time of a peer's process is that of its thread only
    /// while it has one stream.
    fn cpu_times(
        &self,
        facts: &mut RunFacts,
        endpoint: Endpoint,
        flow: Flow,
        summary: &Summary,
        busiest_thread_share: Option<f64>,
    ) {
        let sends = (endpoint == Endpoint::Client) == (flow == Flow::Forward);
        let (own, peers) = if sends {
            ("sender_thread_cpu", "receiver_thread_cpu")
        } else {
            ("receiver_thread_cpu", "sender_thread_cpu")
        };

        if let Some(cpu) = summary.cpu_local
            && let Some(share) = busiest_thread_share
        {
            facts.insert(own.into(), (measure::cpus(cpu) * share).into());
        }

        if let Some(cpu) = summary.cpu_remote.filter(|_| self.streams.len() == 1) {
            facts.insert(peers.into(), measure::cpus(cpu).min(1.0).into());
        }
    }
}

fn options(facts: &mut RunFacts, spec: &TestSpec, flow: Flow) {
    let transport = match spec.transport {
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
        Transport::Sctp => "sctp",
    };
    let label = match flow {
        Flow::Forward => "test, client to server",
        Flow::Reverse => "test, server to client",
    };

    for (name, words) in [
        ("tool", "linerate"),
        ("label", label),
        ("transport", transport),
    ] {
        insert(facts, name, Some(words));
    }

    insert(facts, "reverse", Some(flow == Flow::Reverse));
    insert(facts, "options_known", Some(true));
    insert(facts, "streams", Some(spec.streams));
    insert(facts, "block_len_bytes", Some(spec.block_len_bytes));
    insert(facts, "omit_seconds", Some(spec.omit.as_secs_f64()));
    insert(facts, "window_bytes", spec.socket.window_bytes);
    insert(facts, "fq_rate_bps", spec.pacing.fq_rate_bps);

    // The default rate of UDP is no target; an explicit rate is.
    let target = spec
        .pacing
        .rate_bps
        .filter(|rate| spec.transport != Transport::Udp || *rate != UDP_DEFAULT_BPS);
    insert(facts, "target_bps", target);
}

/// Rate of a UDP test without `-b`.
const UDP_DEFAULT_BPS: u64 = 1 << 20;

fn totals(
    facts: &mut RunFacts,
    summary: &Summary,
    flow: Flow,
    transport: Transport,
    direction: &DirectionStats,
) {
    let streams: Vec<&StreamSummary> = summary
        .streams
        .iter()
        .filter(|stream| stream.flow == flow)
        .collect();
    let sent = measure::sent(summary, flow);
    let received = measure::received(summary, flow);
    for (name, total) in [("sent", sent), ("received", received)] {
        if let Some(total) = total {
            facts.insert(format!("{name}_bytes"), total.bytes.into());
            facts.insert(format!("{name}_bps"), total.bits_per_second().into());
        }
    }

    let seconds = sent.or(received).map(|total| total.seconds());
    insert(facts, "seconds", seconds);

    if transport == Transport::Udp {
        // With the warm-up: they are compared with counters of the hosts, which include it.
        let datagrams = measure::datagrams_with_warm_up(summary, flow);
        let share = datagrams.and_then(|datagrams| datagrams.lost_share());
        insert(facts, "loss_share", share);
        insert(
            facts,
            "lost_packets",
            datagrams.map(|datagrams| datagrams.lost),
        );

        let packets = sent.and_then(|total| total.udp).map(|udp| udp.packets);
        insert(facts, "sent_packets", packets);
    } else {
        let repeated = measure::retransmits(summary, flow);
        insert(facts, "retransmits", repeated);
        retransmissions(facts, &streams, repeated.zip(sent), direction);
    }
}

fn retransmissions(
    facts: &mut RunFacts,
    streams: &[&StreamSummary],
    repeated: Option<(u64, EndpointTotals)>,
    direction: &DirectionStats,
) {
    let tcp: Vec<_> = streams.iter().filter_map(|stream| stream.tcp).collect();
    let all = tcp.len() == streams.len() && !tcp.is_empty();

    let reordered = tcp
        .iter()
        .map(|tcp| tcp.reorder_events)
        .sum::<Option<u64>>()
        .filter(|_| all);
    insert(facts, "reordered_segments", reordered);

    let twice = tcp
        .iter()
        .map(|tcp| tcp.dsack_segments)
        .sum::<Option<u64>>()
        .filter(|_| all);
    insert(facts, "dsack_segments", twice);
    let distance = tcp.iter().filter_map(|tcp| tcp.reordering_segments).max();
    insert(facts, "reordering", distance);

    let share = repeated.zip(direction.mss_bytes);
    let share = share
        .and_then(|((repeated, sent), mss)| measure::retransmit_share(repeated, sent.bytes, mss));
    insert(facts, "retransmit_share", share);

    let mean = tcp.iter().filter_map(|tcp| tcp.mean_rtt_us).max();
    insert(facts, "rtt_us", mean);

    if let Some(mean) = mean
        && let Some(least) = direction.min_rtt_us.filter(|rtt| *rtt > 0)
    {
        insert(
            facts,
            "rtt_inflation",
            Some(f64::from(mean) / f64::from(least)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::StreamId;
    use linerate_model::interval::{TcpInterval, TcpLimits};
    use linerate_model::snapshot::Value;

    use linerate_model::summary::{CpuUsage, TcpSummary};

    fn opened() -> Event {
        Event::StreamOpened(Stream::new(
            StreamId(0),
            StreamRole::Sender,
            Flow::Forward,
            "192.0.2.1:9".parse().expect("an address"),
            "192.0.2.2:5201".parse().expect("an address"),
        ))
    }

    fn second(number: u64, bytes: u64, omitted: bool) -> Event {
        let mut interval = StreamInterval {
            start_ns: number * 1_000_000_000,
            end_ns: (number + 1) * 1_000_000_000,
            bytes,
            ..StreamInterval::default()
        };

        let tcp = TcpInterval {
            mss_bytes: 1000,
            snd_wnd_bytes: Some(64_000),
            min_rtt_us: Some(100),
            limits: Some(TcpLimits {
                busy_us: 800_000,
                rwnd_limited_us: 400_000,
                sndbuf_limited_us: 0,
            }),
            ..TcpInterval::default()
        };
        interval.tcp = Some(tcp);

        let mut report = IntervalReport::new(vec![interval]);
        report.omitted = omitted;
        Event::Interval(report)
    }

    fn summary(cpu_remote_percent: f64) -> Event {
        let half = EndpointTotals::new(3_000_000, 3_000_000_000, None);
        let percent = |total_percent| {
            Some(CpuUsage {
                total_percent,
                user_percent: 0.0,
                system_percent: 0.0,
            })
        };
        let mut stream = StreamSummary {
            sender: Some(half),
            receiver: Some(half),
            ..StreamSummary::default()
        };

        let tcp = TcpSummary {
            retransmits: Some(30),
            mean_rtt_us: Some(300),
            ..TcpSummary::default()
        };
        stream.tcp = Some(tcp);

        let summary = Summary {
            streams: vec![stream],
            cpu_local: percent(80.0),
            cpu_remote: percent(cpu_remote_percent),
            ..Summary::default()
        };
        Event::Summary(Box::new(summary))
    }

    fn header() -> Event {
        let header = TestHeader {
            peer_host: "server".into(),
            ..TestHeader::default()
        };
        Event::TestAccepted(Box::new(header))
    }

    #[test]
    fn a_test_becomes_the_facts_of_a_run() {
        let mut timeline = TestTimeline::default();
        let warm_up = second(0, 9_000_000, true);
        let events = [
            header(),
            opened(),
            warm_up,
            second(0, 1_000_000, false),
            second(1, 2_000_000, false),
        ];
        for event in events.iter().chain([&summary(50.0)]) {
            timeline.note(event);
        }

        let runs = timeline.runs(Some(0.5));
        let [(Flow::Forward, facts)] = runs.as_slice() else {
            panic!("one direction: {runs:?}");
        };
        let number = |name: &str| facts.get(name).and_then(Value::number);
        assert_eq!(number("first_second_bps"), Some(8e6));
        assert_eq!(number("later_median_bps"), Some(16e6));
        assert_eq!(number("rwnd_limited_share"), Some(0.5));
        assert_eq!(number("busy_share"), Some(0.8));
        assert_eq!(number("received_bps"), Some(8e6));
        assert_eq!(number("retransmit_share"), Some(0.01));
        assert_eq!(number("rtt_inflation"), Some(3.0));
        assert_eq!(number("sender_thread_cpu"), Some(0.4));
        assert_eq!(number("receiver_thread_cpu"), Some(0.5));
        assert_eq!(facts.get("path"), Some(&"192.0.2.1 192.0.2.2".into()));
    }

    #[test]
    fn events_that_did_not_happen_yield_no_facts() {
        let mut timeline = TestTimeline::default();
        assert!(timeline.runs(None).is_empty());

        for event in [header(), opened()] {
            timeline.note(&event);
        }

        let runs = timeline.runs(None);
        let (_, facts) = &runs[0];

        for absent in [
            "received_bps",
            "busy_share",
            "first_second_bps",
            "sender_thread_cpu",
            "retransmits",
        ] {
            assert!(!facts.contains_key(absent), "{absent}");
        }
    }
}
