//! Goal: the verdict and the findings of an examined path are those that its faults have. Method:
//! one row of `path.txt` per scenario, made into a report and observations of both hosts; and no
//! fact that is removed makes a rule fire.

#[allow(dead_code, reason = "this table holds no JSON")]
mod facts;
mod hosts;

use std::collections::{BTreeMap, BTreeSet};

use hosts::host;
use linerate_doctor::path::{ObservedPhase, diagnose_path};
use linerate_doctor::{EndpointObservation, Observed};
use linerate_model::finding::{Confidence, Diagnosis, Severity};
use linerate_model::interval::{TcpInterval, TcpLimits};
use linerate_model::path::{
    Delay, EndpointPhase, IdleDelays, LoadPhase, LoadSample, Marks, PathDirection, PathReport,
    PhaseKind, SizeResult, SizeSignal, StreamTotals,
};
use linerate_model::stored_name;
use serde_json::json;

const SECONDS: u64 = 8;
/// Facts of every host that is not described otherwise.
const HOST: &str = "route.peer.dev=e nic.e.net.mtu=1500 nic.e.link.speed_mbps=1000 \
                    nic.e.qdisc.root.kind=fq_codel nic.e.qdisc.root.backlog=0 \
                    cgroup.cpu.max=max_100000 +firewall.drops=0 @cpu0:user=4";
/// Values of every report.
const REPORT: &str = "idle.rtt=12 idle.tcp=12";
const PHASE: &str =
    "lost=0 spread=0.4 retransmits=0 notsent=50000 rwnd=0 cpu_here=0.04 cpu_there=0.04";
/// Members of a phase that a test of iperf3 lacks.
const NATIVE_ONLY: [&str; 8] = [
    "rtt",
    "tcp",
    "lost",
    "retransmits",
    "notsent",
    "rwnd",
    "cpu_there",
    "in_band",
];

struct Scenario {
    name: &'static str,
    words: Vec<&'static str>,
    verdict: &'static str,
    findings: BTreeSet<&'static str>,
}

fn scenarios() -> impl Iterator<Item = Scenario> {
    facts::rows(include_str!("path.txt"))
        .into_iter()
        .map(|[name, words, verdict, findings]| Scenario {
            name,
            words: words.split_whitespace().collect(),
            verdict,
            findings: findings.split_whitespace().collect(),
        })
}

/// The words with those of every scenario, by their keys.
fn complete(words: &[&str]) -> Vec<String> {
    let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    let given: BTreeSet<String> = words.iter().map(|word| key(word)).collect();
    let is_iperf3 = words.contains(&"dialect=iperf3");
    let mut all: Vec<String> = REPORT
        .split_whitespace()
        .filter(|_| !is_iperf3)
        .map(str::to_owned)
        .collect();

    for phase in ["down", "up", "both"]
        .into_iter()
        .filter(|phase| given.contains(&format!("{phase}.rate")))
    {
        let is_known = |word: &&str| !is_iperf3 || !NATIVE_ONLY.contains(&key(word).as_str());
        all.extend(
            PHASE
                .split_whitespace()
                .filter(is_known)
                .map(|word| format!("{phase}.{word}")),
        );
    }

    let hosts = ["client", "server"]
        .into_iter()
        .filter(|host| *host == "client" || words.iter().any(|word| word.starts_with(host)));
    all.extend(hosts.flat_map(|host| {
        HOST.split_whitespace()
            .map(move |word| format!("{host}:{word}"))
    }));
    all.retain(|word| !given.contains(&key(word)));
    all.extend(words.iter().map(|word| (*word).to_owned()));

    all
}

struct ScenarioWords<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> ScenarioWords<'a> {
    fn new(words: &'a [String]) -> Self {
        Self(
            words
                .iter()
                .filter(|word| !word.contains(':') || word.contains('='))
                .filter_map(|word| word.split_once('='))
                .collect(),
        )
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.parse().ok()
    }

    /// A distribution whose median this is.
    fn delay(&self, key: &str, lost: Option<f64>) -> Option<Delay> {
        let ns = (self.number(key)? * 1e6) as i64;
        let lost = (lost.unwrap_or(0.0) * 10.0) as u64;
        let delay = Delay {
            n: 1000 - lost,
            lost,
            min_ns: Some(ns / 2),
            p50_ns: Some(ns),
            ..Delay::default()
        };

        Some(delay)
    }

    /// Two texts with a colon between them.
    fn pair(&self, key: &str) -> Option<(&'a str, &'a str)> {
        self.0.get(key)?.split_once(':')
    }
}

fn report(words: &[String]) -> PathReport {
    let given = ScenarioWords::new(words);
    let dialect = given.0.get("dialect").copied().unwrap_or("native");
    let target = json!({"host": "b", "port": 5201, "address": "192.0.2.2", "family": "ipv4", "dialect": dialect, "identity": "known"});
    let whole = json!({
        "schema": "linerate.path/1", "state": "complete", "profile": "default", "elapsed_ns": 0, "bytes_sent": 0,
        "bytes_received": 0, "resumed": 0, "target": target,
    });
    let mut report: PathReport = serde_json::from_value(whole).expect("a report");
    let idle = IdleDelays {
        rtt: given.delay("idle.rtt", Some(0.0)),
        tcp: given.delay("idle.tcp", None),
        ..IdleDelays::default()
    };
    report.idle = Some(idle).filter(|idle| idle.rtt.is_some() || idle.tcp.is_some());

    let size = |key: &str| {
        let (mtu, how) = given.pair(key)?;
        let how = match how {
            "reported" => SizeSignal::Reported,
            "black_hole" => SizeSignal::BlackHole,
            _ => SizeSignal::Unlimited,
        };
        Some(SizeResult {
            mtu: mtu.parse().ok()?,
            reported_by: None,
            how,
        })
    };
    (report.size.up, report.size.down) = (size("mtu.up"), size("mtu.down"));
    let ways = [("up", PathDirection::Up), ("down", PathDirection::Down)];
    let ecn = ways.iter().filter_map(|(name, way)| {
        let treatment = given.0.get(format!("ecn.{name}").as_str())?;
        Some((
            *way,
            serde_json::from_value(json!(treatment)).expect("a treatment"),
        ))
    });

    let dscp = ways.iter().filter_map(|(name, way)| {
        let (sent, received) = given.pair(&format!("dscp.{name}"))?;
        Some((*way, sent.parse().ok()?, received.parse().ok()?))
    });
    let marks = Marks {
        dscp: dscp.collect(),
        ecn: ecn.collect(),
    };
    report.marks = Some(marks).filter(|marks| *marks != Marks::default());
    report.phases = [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both]
        .into_iter()
        .filter_map(|kind| phase(&given, kind))
        .collect();

    report
}

fn phase(given: &ScenarioWords<'_>, kind: PhaseKind) -> Option<LoadPhase> {
    let key = |figure: &str| format!("{}.{figure}", kind.name());
    let rate_bps = given.number(&key("rate"))? * 1e6;
    let spread = given.number(&key("spread"));
    let ceiling = given
        .number(&key("target"))
        .map(|mbps| json!({"rate_bps": mbps * 1e6, "by": "rate"}));
    let whole =
        json!({"kind": kind.name(), "confidence": "high", "streams": 4, "ceiling": ceiling});
    let mut phase: LoadPhase = serde_json::from_value(whole).expect("a phase");
    (phase.down_bps, phase.up_bps) = (Some(rate_bps), Some(rate_bps));

    let lost = given.number(&key("lost"));
    phase.rtt = given.delay(&key("rtt"), lost).filter(|_| lost.is_some());
    phase.queue_up = given.delay(&key("queue_up"), None);
    phase.queue_down = given.delay(&key("queue_down"), None);
    phase.tcp = given.delay(&key("tcp"), None);
    phase.in_band = given.delay(&key("in_band"), None);
    phase.cpu_cores = given
        .number(&key("cpu_here"))
        .map(|here| (here, given.number(&key("cpu_there"))));
    phase.stream_info = vec![stream(given, kind, PathDirection::Up)];

    let mut bytes = 0.0;
    let samples = (1..=SECONDS * 10).map(|tenth| {
        let sign = if (tenth - 1) / 10 % 2 == 0 { 1.0 } else { -1.0 };
        bytes += rate_bps / 80.0 * (1.0 + sign * spread.unwrap_or(0.0) / 200.0);
        LoadSample {
            at_ns: tenth * 100_000_000,
            down_bytes: bytes as u64,
            up_bytes: bytes as u64,
            streams: 4,
        }
    });
    phase.series = spread.map(|_| samples.collect()).unwrap_or_default();

    Some(phase)
}

fn stream(given: &ScenarioWords<'_>, kind: PhaseKind, direction: PathDirection) -> StreamTotals {
    let number = |figure: &str| given.number(&format!("{}.{figure}", kind.name()));
    let rate_bps = number("rate").unwrap_or_default() * 1e6;
    let busy_us = SECONDS * 1_000_000;

    let tcp = number("retransmits")
        .zip(number("rwnd"))
        .map(|(retransmits, rwnd)| TcpInterval {
            retransmits: retransmits as u64,
            mss_bytes: 1448,
            pmtu_bytes: 1500,
            limits: Some(TcpLimits {
                busy_us,
                rwnd_limited_us: (rwnd / 100.0 * busy_us as f64) as u64,
                sndbuf_limited_us: 0,
            }),
            ..TcpInterval::default()
        });

    StreamTotals {
        direction: Some(direction),
        bytes: (rate_bps / 8.0) as u64 * SECONDS,
        tcp,
        notsent_bytes: number("notsent").map(|bytes| bytes as u64),
        ..StreamTotals::default()
    }
}

/// The host that these words describe.
fn observation(words: &[String], name: &str) -> Option<EndpointObservation> {
    let own: Vec<&str> = words
        .iter()
        .filter_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
        .filter(|word| !word.is_empty())
        .collect();
    if own.is_empty() {
        return None;
    }

    let Observed { snapshot, period } = host(&own);
    let (forward_intervals, reverse_intervals) = (Vec::new(), Vec::new());
    Some(EndpointObservation {
        snapshot,
        period,
        forward: None,
        reverse: None,
        forward_intervals,
        reverse_intervals,
    })
}

fn diagnosed(words: &[String]) -> Diagnosis {
    let report = report(words);
    let given = ScenarioWords::new(words);

    let observed = report.phases.iter().map(|phase| ObservedPhase {
        kind: phase.kind,
        client: observation(words, "client"),
        server: observation(words, "server"),
        remote: Some(EndpointPhase {
            elapsed_ns: SECONDS * 1_000_000_000,
            streams: vec![stream(&given, phase.kind, PathDirection::Down)],
            ..EndpointPhase::default()
        }),
    });
    let observed = observed.collect();
    diagnose_path(&report, observed)
}

fn found(diagnosis: &Diagnosis) -> BTreeSet<String> {
    diagnosis
        .findings
        .iter()
        .map(|finding| format!("{}:{}", finding.id, stored_name(finding.severity)))
        .collect()
}

#[test]
fn every_scenario_has_its_verdict_and_findings() {
    let mut wrong = Vec::new();
    for scenario in scenarios() {
        let diagnosis = diagnosed(&complete(&scenario.words));
        let found = found(&diagnosis);
        let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        if diagnosis.verdict.verdict != scenario.verdict || found != scenario.findings {
            let open: Vec<_> = diagnosis
                .not_evaluated
                .iter()
                .filter(|rule| ["PATH-09", "LAT-01", "LAT-02"].contains(&rule.id.as_str()))
                .map(|rule| format!("{} {} {:?}", rule.id, rule.subject, rule.missing))
                .chain(
                    diagnosis
                        .ruled_out
                        .iter()
                        .filter(|rule| ["PATH-09", "LAT-01", "LAT-02"].contains(&rule.id.as_str()))
                        .map(|rule| format!("{} {}: {}", rule.id, rule.subject, rule.reason)),
                )
                .collect();
            wrong.push(format!(
                "{}: {:?} {found:?}, expected {} {:?}; {open:#?}",
                scenario.name, diagnosis.verdict, scenario.verdict, scenario.findings
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn removing_a_fact_never_makes_a_rule_fire() {
    let mut wrong = Vec::new();
    for scenario in scenarios() {
        let words = complete(&scenario.words);
        let ids = |diagnosis: &Diagnosis| -> BTreeSet<String> {
            let severe = diagnosis
                .findings
                .iter()
                .filter(|finding| finding.severity > Severity::Info);
            severe.map(|finding| finding.id.clone()).collect()
        };

        let before: BTreeSet<String> = diagnosed(&words)
            .findings
            .into_iter()
            .map(|finding| finding.id)
            .collect();
        // A phase or a target rate less is no missing fact but another test. A link of unknown
        // speed counts as a hop of the path, so the limit moves from the link to the path.
        let is_fact = |word: &str| {
            ![".rate=", ".target=", ".link.speed_mbps="]
                .iter()
                .any(|key| word.contains(key))
        };
        for left_out in (0..words.len()).filter(|at| is_fact(&words[*at])) {
            let rest: Vec<String> = words
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != left_out)
                .map(|(_, word)| word.clone())
                .collect();
            let more: Vec<String> = ids(&diagnosed(&rest))
                .difference(&before)
                .cloned()
                .collect();
            if !more.is_empty() {
                wrong.push(format!(
                    "{} without {} fires {more:?}",
                    scenario.name, words[left_out]
                ));
            }
        }
    }

    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The diagnosis of the scenario of this name.
fn of_scenario(name: &str) -> Diagnosis {
    let scenario = scenarios().find(|scenario| scenario.name == name);
    diagnosed(&complete(
        &scenario.unwrap_or_else(|| panic!("{name}")).words,
    ))
}

#[test]
fn verdict_is_one_sentence_over_all_phases() {
    for (scenario, sentence, confidence) in [
        (
            "shaped path, both queues held",
            "the narrowest hop of the path sets the rate, and its queues hold 95.3 ms up and 99.4 \
             ms down (PATH-09 on server down)",
            Confidence::High,
        ),
        (
            "narrow hop with a short queue",
            "the narrowest hop of the path sets the rate (PATH-09 on server down)",
            Confidence::High,
        ),
        (
            "shaped path, no facts of the server",
            "the narrowest hop of the path sets the rate, and its queues hold 95.3 ms up and 99.4 \
             ms down (PATH-09 on client down)",
            Confidence::Medium,
        ),
        (
            "shaper of the client",
            "down: the link is full; up: a shaper on an end host sets the rate (QD-01 on client e)",
            Confidence::High,
        ),
        (
            "shapers of both ends",
            "a shaper on an end host sets the rate (QD-01 on server e)",
            Confidence::High,
        ),
    ] {
        let verdict = of_scenario(scenario).verdict;
        assert_eq!(
            (verdict.sentence.as_str(), verdict.confidence),
            (sentence, confidence),
            "{scenario}"
        );
    }
}

/// Acknowledgements pass the shaper of the receiving host, which is not the limit of that direction.
#[test]
fn goodput_of_a_shaper_is_that_of_the_direction_it_sends() {
    let diagnosis = of_scenario("shapers of both ends");
    let shapers = diagnosis.findings.iter().filter(|f| f.id == "QD-01");
    let goodputs: Vec<(&str, &str)> = shapers
        .map(|finding| {
            let goodput = finding.evidence.iter().find(|e| e.fact == "goodput");
            let goodput = goodput.unwrap_or_else(|| panic!("{finding:?}"));
            (finding.subject.as_str(), goodput.value.as_str())
        })
        .collect();
    assert_eq!(
        goodputs,
        [("server e", "47.5 Mbit/s"), ("client e", "9.5 Mbit/s")]
    );
}

/// The diagnosis of a scenario without some of its words.
fn of_scenario_without(name: &str, left_out: &[&str]) -> Diagnosis {
    let scenario = scenarios()
        .find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("{name}"));
    let is_left_out = |word: &String| left_out.iter().any(|text| word.contains(text));
    let words: Vec<String> = complete(&scenario.words)
        .into_iter()
        .filter(|word| !is_left_out(word))
        .collect();

    diagnosed(&words)
}

#[test]
fn path_is_no_certain_limit_while_a_rival_was_not_measured() {
    const NAME: &str = "narrow hop with a short queue";

    for left_out in [
        &["cgroup.cpu.max"][..],
        &["firewall.drops"],
        &["client:cgroup.cpu.max"],
        &["server:+firewall.drops"],
    ] {
        let verdict = of_scenario_without(NAME, left_out).verdict;
        assert_eq!(
            (verdict.verdict.as_str(), verdict.confidence),
            ("path-rate", Confidence::Medium),
            "{left_out:?}"
        );
    }

    assert_eq!(of_scenario(NAME).verdict.confidence, Confidence::High);
}

/// Options that a text names: `-P` of `more streams (-P)`.
fn options(text: &str) -> impl Iterator<Item = &str> {
    // Commands of other programs are in quotes.
    let outside = text.split('`').step_by(2);
    let words = outside.flat_map(|part| part.split([' ', '(', ')', ',', ';', ':']));
    words.filter(|word| {
        word.strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic()))
    })
}

#[test]
fn advice_on_a_path_names_options_that_its_test_has() {
    const HELP: &str = include_str!("../../../faces/cli/tests/snapshots/test-help.txt");

    let has = |option: &str| {
        HELP.split([' ', ','])
            .any(|word| word.trim_end_matches([',', '.']) == option)
    };
    assert!(has("-P") && !has("-A"), "{HELP}");
    let mut wrong = Vec::new();
    let busy = "server: client:@cpu0:user=97 client:+self.thread.7.ticks=970 up.rate=9000 \
                up.cpu_here=0.97 down.rate=9000";

    let more = [
        "",
        "client:route.peer.is_here=true",
        "client:cpu.program.1.name=x client:cpu.program.1.cpus=1",
    ];
    let words = scenarios().map(|scenario| complete(&scenario.words));
    let words = words.chain(more.map(|more| {
        complete(
            &[busy, more]
                .join(" ")
                .split_whitespace()
                .collect::<Vec<_>>(),
        )
    }));
    for words in words {
        let diagnosis = diagnosed(&words);
        let texts = diagnosis
            .findings
            .iter()
            .filter_map(|finding| finding.advice.as_deref());
        let texts = texts.chain([diagnosis.verdict.sentence.as_str()]);
        wrong.extend(
            texts
                .flat_map(options)
                .filter(|option| !has(option))
                .map(str::to_owned),
        );
    }

    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn queue_has_its_size_and_who_shares_it() {
    for (scenario, subject, texts) in [
        // 95.5 Mbit/s over 99.4 ms are 1,186,588 bytes.
        (
            "shaped path, both queues held",
            "server down",
            [
                "queue 99.4 ms down",
                "queue holds 1159 KiB at 95.5 Mbit/s",
                "shared by all flows: new connections 100.0 ms more",
            ],
        ),
        (
            "queue of the load, new connections pass it",
            "client up",
            [
                "queue 62.0 ms up",
                "queue holds 723 KiB at 95.5 Mbit/s",
                "per flow: new connections 2.0 ms more",
            ],
        ),
        (
            "queue per flow",
            "client up",
            [
                "queue per flow 62.8 ms",
                "run.0.in_band_us 80000",
                "run.0.rtt_loaded_us 13000",
            ],
        ),
    ] {
        let diagnosis = of_scenario(scenario);
        let finding = diagnosis
            .findings
            .iter()
            .find(|finding| finding.id == "LAT-02" && finding.subject == subject);
        let evidence: Vec<String> = finding
            .into_iter()
            .flat_map(|finding| &finding.evidence)
            .map(ToString::to_string)
            .collect();

        for text in texts {
            assert!(
                evidence.iter().any(|seen| seen.starts_with(text)),
                "{scenario}: no {text} in {evidence:#?}"
            );
        }
    }
}

#[test]
fn queue_of_a_host_has_a_setting_with_its_undo() {
    let with = |scenario: &str, words: &[&'static str]| {
        let mut scenario = scenarios()
            .find(|known| known.name == scenario)
            .expect("a scenario");
        scenario.words.extend(words);
        let diagnosis = diagnosed(&complete(&scenario.words));
        let finding = diagnosis
            .findings
            .into_iter()
            .find(|finding| finding.id == "LAT-01")
            .expect("found");
        assert!(
            finding.remedy.len() == finding.undo.len()
                && (!finding.undo.is_empty() || finding.advice.is_some())
        );

        finding
            .remedy
            .into_iter()
            .zip(finding.undo)
            .collect::<Vec<_>>()
    };
    let pair = |command: &str, undo: &str| vec![(command.to_owned(), undo.to_owned())];
    let tbf = "tc qdisc replace dev e root handle 1: tbf rate 100000000bit burst 32000 limit";
    let shorter = pair(&format!("{tbf} 282000"), &format!("{tbf} 1082000"));
    assert_eq!(with("shaper of the client", &[]), shorter);

    let own = "queue of the own interface";
    assert_eq!(with(own, &[]), []);
    let known = [
        "client:kernel.qdiscs=fq_codel",
        "client:nic.e.qdisc.root.command=tc_qdisc_del_dev_e_root",
    ];
    assert_eq!(
        with(own, &known),
        pair(
            "tc qdisc replace dev e root fq_codel",
            "tc qdisc del dev e root"
        )
    );

    let socket = "data in the own socket";
    assert_eq!(with(socket, &[]), []);
    let unlimited = ["client:sysctl.net.ipv4.tcp_notsent_lowat=4294967295"];
    let key = "sysctl -w net.ipv4.tcp_notsent_lowat";
    assert_eq!(
        with(socket, &unlimited),
        pair(&format!("{key}=131072"), &format!("{key}=4294967295"))
    );
}

#[test]
fn report_without_phases_has_no_verdict_and_impossible_numbers_have_no_effect() {
    let none = diagnosed(&complete(&[]));
    assert_eq!(
        (none.verdict.verdict.as_str(), none.findings.len()),
        ("no-load", 0)
    );

    let mut report = report(&complete(&[
        "up.rate=95",
        "up.rtt=12",
        "down.rate=95",
        "down.rtt=12",
    ]));
    for phase in &mut report.phases {
        let sample = |at_ns| LoadSample {
            at_ns,
            up_bytes: u64::MAX,
            down_bytes: u64::MAX,
            streams: u32::MAX,
        };
        phase.series = [0, u64::MAX, 3, u64::MAX, 0].map(sample).to_vec();
        let delay = Delay {
            n: u64::MAX,
            lost: u64::MAX,
            p50_ns: Some(i64::MIN),
            ..Delay::default()
        };
        phase.rtt = Some(delay);
        (phase.up_bps, phase.down_bps) = (Some(f64::NAN), Some(f64::INFINITY));
        phase.cpu_cores = Some((f64::NAN, Some(-1.0)));

        let most = TcpInterval {
            retransmits: u64::MAX,
            limits: Some(TcpLimits {
                busy_us: u64::MAX,
                rwnd_limited_us: u64::MAX,
                sndbuf_limited_us: u64::MAX,
            }),
            ..TcpInterval::default()
        };

        let direction = Some(PathDirection::Up);
        let stream = StreamTotals {
            direction,
            tcp: Some(most),
            notsent_bytes: Some(u64::MAX),
            bytes: u64::MAX,
            ..StreamTotals::default()
        };
        phase.stream_info = vec![stream.clone(), stream];
    }

    let diagnosis = diagnose_path(&report, Vec::new());
    assert_eq!(diagnosis.findings, []);
}
