//! Reports of speed tests over HTTP: `speedtest -f json` of Ookla, `speedtest-cli --json`,
//! `librespeed-cli --json` and `ndt7-client --format json`.

use std::net::{IpAddr, Ipv4Addr};

use linerate_model::path::{
    Confidence, Delay, Dialect, IdleDelays, LoadPhase, PathReport, PathState, PathTarget,
    PhaseKind, Profile,
};
use serde_json::Value;

use super::path::PathTest;
use super::plausible::check_path;
use super::time;

/// A line of `speedtest -f jsonl` or of `ndt7-client` beside that with the result.
pub(super) fn is_progress(document: &Value) -> bool {
    const OOKLA: [&str; 5] = ["testStart", "ping", "download", "upload", "log"];
    const NDT7: [&str; 5] = ["starting", "connected", "measurement", "complete", "error"];

    let is_ndt7 = |kind: &str| NDT7.iter().any(|known| known.eq_ignore_ascii_case(kind));
    match (&document["type"], &document["Type"], &document["Key"]) {
        (Value::String(kind), ..) => {
            OOKLA.contains(&kind.as_str()) && document["timestamp"].is_string()
        }
        (_, Value::String(kind), _) => is_ndt7(kind),
        (.., Value::String(kind)) => is_ndt7(kind) && document["Value"].is_object(),
        _ => false,
    }
}

/// The report in a document; `None` of another document.
///
/// # Errors
/// Values that cannot be.
pub(super) fn read(document: &Value) -> Option<Result<PathTest, String>> {
    let found = ookla(document)
        .or_else(|| ndt7(document))
        .or_else(|| plain(document))?;
    Some(check_path(&found.report).map(|()| found))
}

/// Rates in bytes per second, delays in ms.
fn ookla(document: &Value) -> Option<PathTest> {
    if document["type"] != "result" {
        return None;
    }

    let idle_ms = number(&document["ping"]["latency"]);
    let phase = |kind| {
        let part = &document[if kind == PhaseKind::Down {
            "download"
        } else {
            "upload"
        }];
        load(
            kind,
            number(&part["bandwidth"])? * 8.0,
            number(&part["latency"]["iqm"]),
            idle_ms,
        )
    };
    let phases = [PhaseKind::Down, PhaseKind::Up]
        .into_iter()
        .filter_map(phase)
        .collect();
    let server = &document["server"];
    let address = server["ip"].as_str().and_then(|text| text.parse().ok());
    let port = server["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok());
    let mut report = report(text(&server["host"]), port, address, phases)?;
    report.idle = idle(idle_ms, number(&document["ping"]["jitter"]));

    if let Some(idle) = report.idle.as_mut().and_then(|idle| idle.rtt.as_mut()) {
        idle.min_ns = ns(number(&document["ping"]["low"]));
        idle.max_ns = ns(number(&document["ping"]["high"]));
    }

    let elapsed_ms = ["download", "upload"]
        .iter()
        .filter_map(|part| document[*part]["elapsed"].as_u64());
    report.elapsed_ns = elapsed_ms.fold(0_u64, |sum, ms| {
        sum.saturating_add(ms.saturating_mul(1_000_000))
    });
    report.bytes_received = document["download"]["bytes"].as_u64().unwrap_or(0);
    report.bytes_sent = document["upload"]["bytes"].as_u64().unwrap_or(0);

    let lost_share = number(&document["packetLoss"])
        .map(|percent| percent / 100.0)
        .filter(|share| *share <= 1.0);
    Some(test("speedtest", document, report, lost_share))
}

/// The client in Go has values with units, the one in Rust names with units, within `Summary`.
fn ndt7(document: &Value) -> Option<PathTest> {
    let summary = document.get("Summary").unwrap_or(document);
    let host = text(&summary["ServerFQDN"])?;
    let figure = |part: &Value, plain: &str, pair: &str| {
        number(&part[plain]).or_else(|| number(&part[pair]["Value"]))
    };

    let mut shortest_ms: Option<f64> = None;
    let mut phases = Vec::new();
    for (kind, name) in [(PhaseKind::Down, "Download"), (PhaseKind::Up, "Upload")] {
        let part = &summary[name];
        let Some(mbps) = figure(part, "ThroughputMbps", "Throughput") else {
            continue;
        };
        // The smallest round trip of the connection, also in microseconds on loopback.
        let latency_ms = figure(part, "LatencyMs", "Latency");
        shortest_ms = shortest_ms.into_iter().chain(latency_ms).reduce(f64::min);
        phases.extend(load(kind, mbps * 1e6, None, None));
    }

    let address = text(&summary["ServerIP"]).and_then(|ip| ip.parse().ok());
    let port = text(&summary["ServerPort"]).and_then(|port| port.parse().ok());
    let mut report = report(Some(host), port, address, phases)?;
    report.idle = shortest_ms.map(|ms| IdleDelays {
        rtt: Some(Delay {
            min_ns: ns(Some(ms)),
            ..Delay::default()
        }),
        ..IdleDelays::default()
    });
    Some(test("ndt7-client", document, report, None))
}

/// `speedtest-cli` has bit/s and names its servers by numbers; `librespeed-cli` has Mbit/s and a
/// jitter.
fn plain(document: &Value) -> Option<PathTest> {
    let (down, up) = (number(&document["download"])?, number(&document["upload"])?);
    let server = document.get("server").filter(|server| server.is_object())?;
    let idle_ms = number(&document["ping"])?;
    let is_librespeed = document.get("jitter").is_some() || server.get("id").is_none();
    let (tool, unit) = if is_librespeed {
        ("librespeed-cli", 1e6)
    } else {
        ("speedtest-cli", 1.0)
    };

    // The program has a rate of 0 for a direction that the user left out.
    let phase =
        |(kind, rate): (PhaseKind, f64)| load(kind, rate * unit, None, None).filter(|_| rate > 0.0);
    let phases = [(PhaseKind::Down, down), (PhaseKind::Up, up)]
        .into_iter()
        .filter_map(phase)
        .collect();
    let url = text(&server["url"]).unwrap_or_default();
    let of_url = url
        .split_once("://")
        .map_or(url, |(_, rest)| rest)
        .split('/')
        .next()
        .filter(|host| !host.is_empty());
    let (host, port) = host_and_port(
        text(&server["host"])
            .or(of_url)
            .or_else(|| text(&server["name"])),
    );
    let mut report = report(host, port, None, phases)?;
    report.idle = idle(Some(idle_ms), number(&document["jitter"]));
    report.bytes_received = document["bytes_received"].as_u64().unwrap_or(0);
    report.bytes_sent = document["bytes_sent"].as_u64().unwrap_or(0);

    Some(test(tool, document, report, None))
}

fn test(
    tool: &'static str,
    document: &Value,
    mut report: PathReport,
    lost_share: Option<f64>,
) -> PathTest {
    report.target.program = Some(tool.to_owned());
    let started_unix_ms = document["timestamp"].as_str().and_then(time::rfc3339_ms);
    PathTest {
        tool,
        format: "speed-test",
        started_unix_ms,
        report,
        diagnosis: None,
        lost_share,
    }
}

fn report(
    host: Option<&str>,
    port: Option<u16>,
    address: Option<IpAddr>,
    phases: Vec<LoadPhase>,
) -> Option<PathReport> {
    if phases.is_empty() {
        return None;
    }

    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let host = host.unwrap_or("server");
    let mut target = PathTarget::new(
        host,
        port.unwrap_or(0),
        address.unwrap_or(unknown),
        Dialect::SpeedTest,
    );

    if address.is_none() {
        (target.address, target.family) = (String::new(), String::new());
    }

    let mut report = PathReport::new(PathState::Complete, Profile::Default, target);
    report.phases = phases;
    Some(report)
}

/// Without its intervals nothing says how steady a load was.
fn load(
    kind: PhaseKind,
    bps: f64,
    loaded_ms: Option<f64>,
    idle_ms: Option<f64>,
) -> Option<LoadPhase> {
    if !bps.is_finite() || bps < 0.0 {
        return None;
    }

    let mut phase = LoadPhase::new(kind, Confidence::Low);
    let rate = if kind == PhaseKind::Down {
        &mut phase.down_bps
    } else {
        &mut phase.up_bps
    };
    *rate = Some(bps);
    phase.rtt = delay(loaded_ms);

    let added_ms = loaded_ms.zip(idle_ms).map(|(loaded, idle)| loaded - idle);
    phase.added_p50_ns = ns(added_ms);
    Some(phase)
}

fn idle(rtt_ms: Option<f64>, jitter_ms: Option<f64>) -> Option<IdleDelays> {
    let idle = IdleDelays {
        rtt: Some(delay(rtt_ms)?),
        jitter_ns: ns(jitter_ms).and_then(|ns| u64::try_from(ns).ok()),
        ..IdleDelays::default()
    };
    Some(idle)
}

/// A figure in the middle of the delays, of a number of probes that is not known.
fn delay(middle_ms: Option<f64>) -> Option<Delay> {
    let delay = Delay {
        p50_ns: Some(ns(middle_ms)?),
        ..Delay::default()
    };
    Some(delay)
}

fn ns(ms: Option<f64>) -> Option<i64> {
    const MS_MAX: f64 = 1e7;
    ms.filter(|ms| ms.abs() <= MS_MAX)
        // The largest of these delays has 10^13 ns, so that the cast is exact.
        .map(|ms| (ms * 1e6).round() as i64)
}

/// A number that is one, and not below 0.
fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// `speedtest.example.net:8080`
fn host_and_port(named: Option<&str>) -> (Option<&str>, Option<u16>) {
    let parts = named.and_then(|named| named.rsplit_once(':'));
    match parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (Some(host), Some(port)),
        None => (named, None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Rates in bit/s, delay without load in ns, host and port.
    type Values = (Option<f64>, Option<f64>, Option<i64>, String, u16);

    fn values(document: &Value) -> (&'static str, Values, PathTest) {
        let test = read(document).expect("a speed test").expect("possible");
        let report = &test.report;
        let down = report.phases.iter().find_map(|phase| phase.down_bps);
        let up = report.phases.iter().find_map(|phase| phase.up_bps);
        let idle_ns = report.idle.as_ref().and_then(|idle| idle.rtt?.p50_ns);

        (
            test.tool,
            (
                down,
                up,
                idle_ns,
                report.target.host.clone(),
                report.target.port,
            ),
            test,
        )
    }

    #[test]
    fn each_program_has_units_of_its_own() {
        let ookla = json!({
            "type": "result", "timestamp": "2026-11-21T18:53:32Z", "packetLoss": 2.5,
            "ping": {"jitter": 0.25, "latency": 12.5, "low": 12.0, "high": 14.0},
            "download": {"bandwidth": 11_750_000, "bytes": 110_000_000, "elapsed": 9400, "latency": {"iqm": 62.5}},
            "upload": {"bandwidth": 1_250_000, "bytes": 12_000_000, "elapsed": 9600, "latency": {"iqm": 212.5}},
            "server": {"id": 7, "host": "speed.example.net", "port": 8080, "ip": "192.0.2.7"},
        });
        let (tool, found, test) = values(&ookla);
        assert_eq!(tool, "speedtest");
        assert_eq!(
            found,
            (
                Some(94e6),
                Some(10e6),
                Some(12_500_000),
                "speed.example.net".to_owned(),
                8080
            )
        );

        let added: Vec<_> = test
            .report
            .phases
            .iter()
            .map(|phase| phase.added_p50_ns)
            .collect();
        assert_eq!(added, [Some(50_000_000), Some(200_000_000)]);
        assert_eq!(
            (test.lost_share, test.started_unix_ms),
            (Some(0.025), Some(1_795_287_212_000))
        );
        assert_eq!(test.report.target.address, "192.0.2.7");

        let cli = json!({
            "download": 93_184_654.6, "upload": 10_234_567.8, "ping": 12.345, "timestamp": "2026-11-21T18:53:32.0Z",
            "server": {"url": "http://speed.example.net:8080/speedtest/upload.php", "id": "1234", "sponsor": "Example",
                "host": "speed.example.net:8080"},
            "bytes_sent": 1, "bytes_received": 2, "share": null, "client": {"ip": "203.0.113.5"},
        });
        let (tool, found, _) = values(&cli);
        let host = "speed.example.net".to_owned();

        assert_eq!(
            (tool, found),
            (
                "speedtest-cli",
                (
                    Some(93_184_654.6),
                    Some(10_234_567.8),
                    Some(12_345_000),
                    host,
                    8080
                )
            )
        );

        let libre = json!({
            "timestamp": "2026-11-21T18:53:32.123456789Z", "server": {"name": "Lab", "url": "https://libre.example.net/backend"},
            "client": {"ip": "203.0.113.5"}, "bytes_sent": 1, "bytes_received": 2, "ping": 11, "jitter": 0.5,
            "upload": 38.5, "download": 93.25, "share": "",
        });
        let (tool, found, _) = values(&libre);
        let host = "libre.example.net".to_owned();

        assert_eq!(
            (tool, found),
            (
                "librespeed-cli",
                (Some(93.25e6), Some(38.5e6), Some(11_000_000), host, 0)
            )
        );
    }

    #[test]
    fn both_clients_of_ndt7_are_read() {
        // As the crate ndt7-client 0.3.1 and the client in Go write it.
        let rust = json!({"Type": "Summary", "Summary": {
            "ServerFQDN": "ndt.example", "ClientIP": "", "ServerIP": "",
            "Download": {"ThroughputMbps": 94.5, "LatencyMs": 12.5, "RetransmissionPct": 0.0},
            "Upload": {"ThroughputMbps": 19.25, "LatencyMs": 11.0, "RetransmissionPct": 0.0},
        }});
        let pair = |value: f64, unit: &str| json!({"Value": value, "Unit": unit});
        let go = json!({
            "ServerFQDN": "ndt.example", "ServerIP": "192.0.2.7", "ServerPort": "443",
            "ClientIP": "203.0.113.5", "ClientPort": "50000",
            "Download": {"UUID": "u", "Throughput": pair(94.5, "Mbit/s"), "Latency": pair(12.5, "ms"),
                "Retransmission": pair(0.5, "%")},
            "Upload": {"UUID": "u", "Throughput": pair(19.25, "Mbit/s"), "Latency": pair(11.0, "ms"),
                "Retransmission": pair(0.0, "%")},
        });

        for (document, port) in [(rust, 0), (go, 443)] {
            let (tool, found, test) = values(&document);
            let host = "ndt.example".to_owned();
            assert_eq!(tool, "ndt7-client");
            assert_eq!(found, (Some(94.5e6), Some(19.25e6), None, host, port));
            let idle = test.report.idle.and_then(|idle| idle.rtt).expect("idle");
            assert_eq!(idle.min_ns, Some(11_000_000));
        }

        for line in [
            json!({"Type": "Connected", "Test": "upload", "FQDN": "ndt.example"}),
            json!({"Key": "measurement", "Value": {}}),
        ] {
            assert!(is_progress(&line) && read(&line).is_none(), "{line}");
        }
        assert!(!is_progress(&json!({"Type": "Summary"})));
    }

    #[test]
    fn other_documents_and_impossible_rates_are_no_results() {
        for other in [
            json!({}),
            json!({"type": "result"}),
            json!({"download": 1, "upload": 2}),
            json!({"type": "log"}),
        ] {
            assert!(read(&other).is_none(), "{other}");
        }

        let server = json!({"id": "1", "host": "a.example"});
        let fast = json!({"download": 1e15, "upload": 1e6, "ping": 1, "server": server});
        assert_eq!(
            read(&fast),
            Some(Err("implausible: 1000000 Gbit/s".to_owned()))
        );
    }
}
