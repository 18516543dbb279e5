//! A trial plays back the events it was made of.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use linerate_model::event::{ControlConnected, ServerOutput, TestHeader};
use linerate_model::measure::MeasureName;
use linerate_model::metrics::{Distribution, ReadCounts, StreamMetrics};
use linerate_model::record::{Detail, RunState, SeriesOf, Trial, Way};
use linerate_model::summary::{TcpSummary, UdpTotals};
use linerate_model::{
    CpuUsage, Direction, EndpointTotals, Event, EventSink, Failure, FailureKind, Flow,
    IntervalReport, Stream, StreamId, StreamInterval, StreamRole, StreamSummary, Summary,
    TcpInterval, TestSpec, Transport, UdpInterval,
};
use linerate_store::{Builder, playback};
use proptest::prelude::*;

const S: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
struct Scenario {
    transport: Transport,
    direction: Direction,
    streams: u32,
    omit_s: u64,
    seconds: u64,
    /// Deviation of each reading from the grid in ns.
    late_ns: Vec<u64>,
    bytes: Vec<u64>,
    has_metrics: bool,
    failure: Option<FailureKind>,
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let shape = (0..2_u8, 0..3_u8, 1..4_u32, 0..3_u64, 1..12_u64);
    let values = (
        prop::collection::vec(0..1_000_000_u64, 1..20),
        prop::collection::vec(0..(1_u64 << 40), 1..20),
    );
    (
        shape,
        values,
        any::<bool>(),
        prop::option::of(any::<bool>()),
    )
        .prop_map(|(shape, values, has_metrics, failure)| Scenario {
            transport: if shape.0 == 0 {
                Transport::Tcp
            } else {
                Transport::Udp
            },
            direction: [
                Direction::Forward,
                Direction::Reverse,
                Direction::Bidirectional,
            ][usize::from(shape.1)],
            streams: shape.2,
            omit_s: shape.3,
            seconds: shape.4,
            late_ns: values.0,
            bytes: values.1,
            has_metrics,
            failure: failure.map(|own| {
                if own {
                    FailureKind::Error
                } else {
                    FailureKind::Interrupted
                }
            }),
        })
}

impl Scenario {
    fn events(&self) -> Vec<Event> {
        let address: SocketAddr = "192.0.2.1:5201".parse().expect("address");
        let connected = ControlConnected {
            local: address,
            remote: address,
            mss_bytes: Some(1448),
            chosen_block_len_bytes: None,
        };

        let spec = TestSpec {
            transport: self.transport,
            direction: self.direction,
            streams: self.streams,
            omit: Duration::from_secs(self.omit_s),
            ..TestSpec::default()
        };

        let header = TestHeader {
            peer_host: "host".into(),
            control_mss_bytes: Some(1448),
            spec,
            ..TestHeader::default()
        };

        let mut events = vec![
            Event::ControlConnected(connected),
            Event::TestAccepted(Box::new(header)),
        ];
        events.extend(self.streams().map(|(id, flow)| {
            Event::StreamOpened(Stream::new(id, role(flow), flow, address, address))
        }));
        events.push(Event::TestStarted {
            at_monotonic_ns: None,
        });
        events.extend((0..self.omit_s).map(|k| self.interval(k, true, false)));

        if self.omit_s > 0 {
            events.push(Event::OmitEnded);
        }

        events.extend((0..self.seconds).map(|k| self.interval(k, false, k + 1 == self.seconds)));
        events.push(Event::Warning("one stream was slow".into()));
        events.push(Event::Summary(Box::new(self.summary())));
        events.push(Event::PeerOutput(ServerOutput::Text(
            "report of the server".into(),
        )));
        events.push(match &self.failure {
            None => Event::Finished,
            Some(kind) => {
                let mut failure = Failure::new(kind.clone(), "the test ended");
                failure.code = Some(1);
                Event::Failed(failure)
            }
        });

        events
    }

    fn streams(&self) -> impl Iterator<Item = (StreamId, Flow)> {
        let flows: &[Flow] = match self.direction {
            Direction::Forward => &[Flow::Forward],
            Direction::Reverse => &[Flow::Reverse],
            Direction::Bidirectional => &[Flow::Forward, Flow::Reverse],
        };
        flows
            .iter()
            .flat_map(|flow| (0..self.streams).map(|_| *flow))
            .zip(0..)
            .map(|(flow, id)| (StreamId(id), flow))
    }

    fn interval(&self, k: u64, omitted: bool, last: bool) -> Event {
        let at = |k: u64| {
            if k == 0 {
                0
            } else {
                k * S + self.late_ns[k as usize % self.late_ns.len()]
            }
        };
        let streams = self.streams().map(|(id, flow)| {
            let bytes = self.bytes[(k as usize + id.0 as usize) % self.bytes.len()];
            let is_tcp_sender = self.transport == Transport::Tcp && flow == Flow::Forward;

            StreamInterval {
                id,
                role: role(flow),
                flow,
                start_ns: at(k),
                end_ns: at(k + 1),
                bytes,
                tcp: is_tcp_sender.then(|| TcpInterval {
                    retransmits: k,
                    snd_cwnd_bytes: bytes / 2,
                    rtt_us: 300,
                    min_rtt_us: (k > 0).then_some(200),
                    ..TcpInterval::default()
                }),
                udp: (self.transport == Transport::Udp)
                    .then(|| UdpInterval::new(bytes / 1448, k as i64 - 2, k, 0.000_012_3)),
                metrics: self.has_metrics.then(|| {
                    let mut metrics = StreamMetrics::default();
                    let reads = ReadCounts {
                        calls: k,
                        bins: [1, 2, 3, 4, 5, 6, 7, k],
                        ..ReadCounts::default()
                    };
                    metrics.reads = Some(reads);

                    let distribution = Distribution {
                        count: k,
                        mean: 0.5,
                        min: 0.25,
                        max: 0.75,
                        deviation: 0.1,
                    };
                    metrics.one_way = Some(distribution);

                    Box::new(metrics)
                }),
            }
        });
        let mut report = IntervalReport::new(streams.collect());
        report.omitted = omitted;
        report.last = last;

        Event::Interval(report)
    }

    fn summary(&self) -> Summary {
        let udp = (self.transport == Transport::Udp).then(|| UdpTotals::new(1000, 10, 0, 0.0));
        let end = Some(EndpointTotals::new(125_000_000, self.seconds * S, udp));
        let streams = self.streams().map(|(id, flow)| StreamSummary {
            id,
            role: role(flow),
            flow,
            sender: end,
            receiver: end,
            tcp: (udp.is_none()).then(|| TcpSummary {
                retransmits: Some(3),
                min_rtt_us: Some(100),
                ..TcpSummary::default()
            }),
            ..StreamSummary::default()
        });

        let cpu = Some(CpuUsage {
            total_percent: 50.0,
            user_percent: 0.0,
            system_percent: 0.0,
        });

        Summary {
            streams: streams.collect(),
            cpu_local: cpu,
            cpu_remote: cpu,
            ..Summary::default()
        }
    }
}

fn role(flow: Flow) -> StreamRole {
    if flow == Flow::Forward {
        StreamRole::Sender
    } else {
        StreamRole::Receiver
    }
}

fn schema() -> &'static jsonschema::Validator {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        jsonschema::validator_for(&schemars::schema_for!(Trial).to_value()).expect("a schema")
    })
}

fn trial_of(events: &[Event], builder: Builder) -> Trial {
    let mut builder = builder;
    events
        .iter()
        .for_each(|event| builder.event(event).expect("a builder takes every event"));
    builder.finish()
}

fn measure(trial: &Trial, name: MeasureName, way: Way) -> Option<f64> {
    trial
        .measures
        .iter()
        .find(|measure| (measure.name, measure.way) == (name, way))
        .map(|measure| measure.value)
}

fn ten_seconds(streams: u32) -> Scenario {
    Scenario {
        transport: Transport::Tcp,
        direction: Direction::Forward,
        streams,
        omit_s: 0,
        seconds: 10,
        late_ns: vec![0],
        bytes: vec![1000, 5000, 2000],
        has_metrics: false,
        failure: None,
    }
}

proptest! {
    #[test]
    fn a_trial_and_its_text_play_back_the_events_of_the_test(scenario in scenarios()) {
        let events = scenario.events();
        let trial = trial_of(&events, Builder::default());
        prop_assert_eq!(&playback(&trial), &events);
        let text = serde_json::to_string(&trial).expect("serialised");
        let value = serde_json::from_str(&text).expect("JSON");
        let faults: Vec<String> = schema().iter_errors(&value).map(|fault| fault.to_string()).collect();
        prop_assert_eq!(faults, Vec::<String>::new());
        let read: Trial = serde_json::from_str(&text).expect("what was written");
        prop_assert_eq!(read, trial);
    }
}

#[test]
fn measures_are_those_of_all_streams() {
    let trial = trial_of(&ten_seconds(2).events(), Builder::default());
    assert_eq!(
        (trial.state, trial.elapsed_ns),
        (RunState::Complete, 10 * S)
    );
    assert_eq!(
        measure(&trial, MeasureName::ReceivedBps, Way::Forward),
        Some(2e8)
    );
    assert_eq!(
        measure(&trial, MeasureName::Retransmits, Way::Forward),
        Some(6.0)
    );
    assert_eq!(
        measure(&trial, MeasureName::RttMinNs, Way::Forward),
        Some(100_000.0)
    );
    assert_eq!(
        measure(&trial, MeasureName::FairnessJain, Way::Forward),
        Some(1.0)
    );
    assert_eq!(
        measure(&trial, MeasureName::CpuClientCores, Way::Sum),
        Some(0.5)
    );
    assert_eq!(
        measure(&trial, MeasureName::ReceivedBps, Way::Reverse),
        None
    );
    assert_eq!(measure(&trial, MeasureName::LostShare, Way::Forward), None);
}

#[test]
fn a_test_without_a_connection_has_a_reason_and_no_values() {
    let failure = Failure::error(103, "unable to connect to server");
    let planned = TestHeader {
        peer_host: "192.0.2.9".into(),
        ..TestHeader::default()
    };

    let trial = trial_of(&[Event::Failed(failure.clone())], Builder::new(planned));
    assert_eq!(
        (trial.state, trial.reason.as_deref()),
        (RunState::Failed, Some("unable to connect to server"))
    );
    assert!(trial.measures.is_empty() && trial.series.is_empty());

    let Some(Detail::Test(detail)) = &trial.detail else {
        panic!("a test")
    };
    assert_eq!(
        (detail.header.peer_host.as_str(), &detail.summary),
        ("192.0.2.9", &None)
    );
    assert_eq!(playback(&trial), [Event::Failed(failure)]);
}

#[test]
fn a_test_that_broke_off_is_partial_and_one_the_user_ended_is_interrupted() {
    let server = Scenario {
        failure: Some(FailureKind::PeerClosed),
        ..ten_seconds(1)
    };
    assert_eq!(
        trial_of(&server.events(), Builder::default()).state,
        RunState::Partial
    );
    let user = Scenario {
        failure: Some(FailureKind::Interrupted),
        ..ten_seconds(1)
    };
    assert_eq!(
        trial_of(&user.events(), Builder::default()).state,
        RunState::Interrupted
    );

    let events = server.events();
    let killed = trial_of(&events[..events.len() - 1], Builder::default());
    assert_eq!((killed.state, killed.reason), (RunState::Partial, None));
}

#[test]
fn merged_neighbours_keep_their_sum_and_their_extremes() {
    let long = Scenario {
        seconds: 5000,
        omit_s: 3,
        ..ten_seconds(1)
    };
    let trial = trial_of(&long.events(), Builder::default().points_max(2000));
    let series = |name: &str| {
        trial
            .series
            .iter()
            .find(|series| series.name == name)
            .expect(name)
    };
    let values = |name: &str| {
        series(name)
            .values
            .iter()
            .flatten()
            .copied()
            .collect::<Vec<f64>>()
    };
    let bytes = values("bytes");
    assert!(
        bytes.len() < 500 && series("bytes").is_thinned,
        "{}",
        bytes.len()
    );

    let sum = long.events().into_iter().filter_map(|event| match event {
        Event::Interval(report) => Some(report.streams[0].bytes as f64),
        _ => None,
    });
    assert_eq!(bytes.iter().sum::<f64>(), sum.sum::<f64>());
    let highest = values("max.bytes").into_iter().fold(0.0, f64::max);
    let lowest = values("min.bytes")
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    assert_eq!((highest, lowest), (5000.0, 1000.0));
    assert_eq!(series("max.bytes").of, SeriesOf::Stream(0));

    let intervals = playback(&trial)
        .into_iter()
        .filter(|event| matches!(event, Event::Interval(_)))
        .count();
    assert_eq!(intervals, bytes.len());
}

#[test]
fn a_flood_of_events_is_dropped_and_counted_and_the_end_is_kept() {
    let mut events = ten_seconds(1).events();
    let end = events.len() - 1;
    events.splice(
        end..end,
        (0..10_000).map(|k| Event::Warning(format!("warning {k}"))),
    );

    let trial = trial_of(&events, Builder::default());
    let played = playback(&trial);
    assert!(played.len() < 5000, "{}", played.len());
    assert_eq!(
        (trial.state, played.last()),
        (RunState::Complete, Some(&Event::Finished))
    );
}

#[test]
fn a_permit_key_is_in_no_record() {
    let mut header = TestHeader::default();
    header.spec.workload.permit_key = Some("opens-the-server".to_owned());
    let events = [Event::TestAccepted(Box::new(header.clone()))];
    let trial = trial_of(&events, Builder::new(header));
    let text = serde_json::to_string(&trial).expect("plain data");
    assert!(!text.contains("opens-the-server"), "{text}");
}
