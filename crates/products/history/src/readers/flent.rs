//! Data files of Flent (`.flent.gz`): series of rates and round trips on one time axis.

use std::net::{IpAddr, Ipv4Addr};

use linerate_model::path::{
    Confidence, Delay, Dialect, IdleDelays, LoadPhase, LoadSample, PathReport, PathState,
    PathTarget, PhaseKind, Profile,
};
use serde_json::Value;

use super::path::PathTest;
use super::plausible::check_path;
use super::time;

/// Values of a series by their place on the time axis; absent between two measurements.
struct Series<'a> {
    seconds: &'a [Value],
    values: &'a [Value],
}

impl<'a> Series<'a> {
    /// The first of these series that the document has.
    fn first(document: &'a Value, names: &[&str]) -> Option<Self> {
        let series = names.iter().find_map(|name| document["results"].get(name));
        Some(Self {
            seconds: document["x_values"].as_array()?,
            values: series?.as_array()?,
        })
    }

    /// Times in ns with values.
    fn points(&self) -> Vec<(u64, f64)> {
        let pairs = self.seconds.iter().zip(self.values);
        let known = pairs.filter_map(|(second, value)| Some((second.as_f64()?, value.as_f64()?)));
        known
            .filter(|(second, value)| (0.0..1e9).contains(second) && *value >= 0.0)
            .map(|(second, value)| ((second * 1e9) as u64, value))
            .collect()
    }
}

/// The report in a document; `None` of another document.
///
/// # Errors
/// A document without rates or with rates that cannot be.
pub(super) fn read(document: &Value) -> Option<Result<PathTest, String>> {
    let metadata = &document["metadata"];
    let name = metadata["NAME"].as_str()?;
    document["x_values"].as_array()?;

    Some(match report(document) {
        None => Err(format!("Flent's {name} has no TCP download or upload")),
        Some(report) => check_path(&report).map(|()| PathTest {
            tool: "flent",
            format: "flent",
            started_unix_ms: started_ms(metadata),
            report,
            diagnosis: None,
            lost_share: None,
        }),
    })
}

fn report(document: &Value) -> Option<PathReport> {
    let down = rates(document, "download");
    let up = rates(document, "upload");
    let first_ns = down.iter().chain(&up).map(|point| point.0).min()?;
    let last_ns = down.iter().chain(&up).map(|point| point.0).max()?;
    let kind = match (down.is_empty(), up.is_empty()) {
        (false, true) => PhaseKind::Down,
        (true, _) => PhaseKind::Up,
        (false, false) => PhaseKind::Both,
    };

    let mut before = Vec::new();
    let mut loaded = Vec::new();
    for (at_ns, rtt_ns) in round_trips(document) {
        if at_ns < first_ns {
            before.push((at_ns, Some(rtt_ns)));
        } else if at_ns <= last_ns {
            loaded.push((at_ns - first_ns, Some(rtt_ns)));
        }
    }

    let mut phase = LoadPhase::new(kind, Confidence::Low);
    phase.down_bps = mean_bps(&down);
    phase.up_bps = mean_bps(&up);
    phase.series = samples(&down, &up, first_ns);
    phase.rtt = delay(&loaded);
    let idle = delay(&before);
    let medians = phase.rtt.zip(idle);
    phase.added_p50_ns = medians.and_then(|(rtt, idle)| Some(rtt.p50_ns? - idle.p50_ns?));
    phase.rtt_series = loaded;

    let host = document["metadata"]["HOST"].as_str().unwrap_or("server");
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let mut target = PathTarget::new(host, 0, unknown, Dialect::SpeedTest);
    target.address = String::new();
    target.family = String::new();
    target.program = Some("flent".to_owned());

    let mut report = PathReport::new(PathState::Complete, Profile::Default, target);
    report.elapsed_ns = last_ns;
    report.idle = idle.map(|rtt| IdleDelays {
        rtt: Some(rtt),
        rtt_series: before,
        ..IdleDelays::default()
    });
    report.phases = vec![phase];
    Some(report)
}

/// Rate of all streams of a direction, bit/s.
fn rates(document: &Value, direction: &str) -> Vec<(u64, f64)> {
    let names = [format!("TCP {direction} sum"), format!("TCP {direction}")];
    let series = Series::first(document, &[&*names[0], &*names[1]]);
    let points = series.map(|series| series.points()).unwrap_or_default();
    points
        .into_iter()
        .map(|(ns, mbps)| (ns, mbps * 1e6))
        .collect()
}

/// Round trips of one series in ns.
fn round_trips(document: &Value) -> Vec<(u64, i64)> {
    const LONGEST_MS: f64 = 1e7;

    let names = ["Ping (ms) avg", "Ping (ms) ICMP", "Ping (ms) UDP BE"];
    let points = Series::first(document, &names).map(|series| series.points());
    points
        .unwrap_or_default()
        .into_iter()
        .filter(|(_, ms)| *ms <= LONGEST_MS)
        .map(|(ns, ms)| (ns, (ms * 1e6) as i64))
        .collect()
}

fn mean_bps(points: &[(u64, f64)]) -> Option<f64> {
    let sum: f64 = points.iter().map(|(_, bps)| bps).sum();
    (!points.is_empty()).then(|| sum / points.len() as f64)
}

fn delay(round_trips: &[(u64, Option<i64>)]) -> Option<Delay> {
    let arrived: Vec<i64> = round_trips.iter().filter_map(|(_, ns)| *ns).collect();
    (!arrived.is_empty()).then(|| Delay::of(&arrived, 0))
}

/// Bytes of both directions over time. A rate holds since the one before.
fn samples(down: &[(u64, f64)], up: &[(u64, f64)], first_ns: u64) -> Vec<LoadSample> {
    let mut times: Vec<u64> = down.iter().chain(up).map(|point| point.0).collect();
    times.sort_unstable();
    times.dedup();

    let rate_at = |points: &[(u64, f64)], at_ns: u64| {
        let next = points.partition_point(|point| point.0 < at_ns);
        points.get(next).map_or(0.0, |point| point.1)
    };
    let mut before_ns = first_ns;
    let mut bytes = [0.0, 0.0];
    let sample = |at_ns: u64| {
        let seconds = (at_ns - before_ns) as f64 / 1e9;
        before_ns = at_ns;
        for (total, points) in bytes.iter_mut().zip([down, up]) {
            *total += rate_at(points, at_ns) / 8.0 * seconds;
        }
        LoadSample {
            at_ns: at_ns - first_ns,
            down_bytes: bytes[0] as u64,
            up_bytes: bytes[1] as u64,
            ..LoadSample::default()
        }
    };
    times.into_iter().map(sample).collect()
}

/// Times without a zone are UTC.
fn started_ms(metadata: &Value) -> Option<u64> {
    let text = metadata["T0"].as_str().or(metadata["TIME"].as_str())?;
    let text = if text.ends_with('Z') {
        text.to_owned()
    } else {
        format!("{text}Z")
    };
    time::rfc3339_ms(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Two seconds without load, then two streams up.
    fn document() -> Value {
        json!({
            "version": 4,
            "metadata": {
                "NAME": "tcp_nup", "HOST": "lab", "LOCAL_HOST": "client", "TITLE": "",
                "T0": "2026-11-30T10:00:00.5Z",
            },
            "x_values": [0.0, 1.0, 2.0, 3.0, 4.0],
            "results": {
                "Ping (ms) ICMP": [10.0, 12.0, 30.0, 50.0, null],
                "TCP upload sum": [null, null, 90.0, 94.0, 92.0],
                "TCP upload::1": [null, null, 45.0, 47.0, 46.0],
            },
        })
    }

    #[test]
    fn rates_are_means_and_round_trips_are_split_by_the_load() {
        let test = read(&document()).expect("Flent's").expect("valid");
        let (report, phase) = (&test.report, &test.report.phases[0]);

        assert_eq!(test.started_unix_ms, Some(1_796_032_800_500));
        assert_eq!(report.target.host, "lab");
        assert_eq!((phase.kind, phase.down_bps), (PhaseKind::Up, None));
        assert_eq!(phase.up_bps, Some(92e6));

        let idle = report
            .idle
            .as_ref()
            .and_then(|idle| idle.rtt)
            .expect("idle");
        assert_eq!((idle.n, idle.max_ns), (2, Some(12_000_000)));
        assert_eq!(phase.rtt.and_then(|rtt| rtt.max_ns), Some(50_000_000));
        assert_eq!(phase.rtt_series.len(), 2);

        let last = phase.series.last().expect("samples");
        assert_eq!(last.at_ns, 2_000_000_000);
        assert_eq!(last.up_bytes, (94_000_000 + 92_000_000) / 8);
    }

    #[test]
    fn a_file_without_load_is_refused_and_other_documents_are_none_of_flent() {
        let mut ping = document();
        ping["results"] = json!({ "Ping (ms) ICMP": [10.0] });
        let reason = read(&ping).expect("Flent's").expect_err("no load");
        assert!(reason.contains("tcp_nup"), "{reason}");

        let mut fast = document();
        fast["results"]["TCP upload sum"] = json!([1e30, 1e30]);
        assert!(read(&fast).expect("Flent's").is_err());

        assert!(read(&json!({ "metadata": {}, "x_values": [] })).is_none());
        assert!(read(&json!({ "results": {} })).is_none());
    }
}
