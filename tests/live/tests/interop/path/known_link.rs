//! Goal: delay, jitter, reordering and duplicates are those of the path. Method: a link that has
//! them exactly, and counts what it does.

use linerate_interop::namespaces::SERVER;
use linerate_interop::{LinkReport, NativeHost, Service, TIMEOUT, TunLink, ours, unsupported};
use serde_json::{Value, json};

/// Datagrams of the load: 1,400 bytes with the headers of IP and UDP. Probes are shorter.
const DATAGRAM_BYTES: u32 = 1428;

#[track_caller]
fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn ms(delay: &Value, figure: &str) -> f64 {
    number(&delay[figure]) / 1e6
}

#[track_caller]
fn assert_near(found: f64, expected: f64, tolerance: f64, name: &str, report: &Value) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{name}: {found}, not {expected} +- {tolerance}: {report:#}"
    );
}

/// A test over a link, and what the link did.
fn tested(
    link: TunLink,
    serve: impl FnOnce(&NativeHost) -> Service,
    words: &[&str],
) -> (Value, LinkReport) {
    let (client, server) = NativeHost::both(&link.net);
    let _server = serve(&server);
    let report = client.report(SERVER, words);
    (report, link.finish())
}

fn plain(host: &NativeHost) -> Service {
    host.serve(&[])
}

/// 100 ms are 600 round trips per minute. An echo in the load waits in addition for what its sender
/// has written before it: what leaves within 5 ms, and the frame after that.
#[test]
#[ignore = "twenty seconds: make live SUITE=path"]
fn timed_responsiveness_is_that_of_the_round_trip() {
    let Some(link) = TunLink::new(&json!({ "delay_ms": 50 }), &json!({ "delay_ms": 50 })) else {
        return;
    };
    let (report, _) = tested(
        link,
        plain,
        &[
            "--only",
            "idle,down,up",
            "--rate",
            "5M",
            "--streams",
            "1",
            "--time",
            "6",
        ],
    );
    for phase in report["phases"].as_array().expect("loads") {
        assert_near(
            number(&phase["rpm_foreign"]),
            600.0,
            24.0,
            "new connections",
            phase,
        );
        let own_rtt_ms = 60_000.0 / number(&phase["rpm_self"]);
        assert!(
            (100.0..=110.0).contains(&own_rtt_ms),
            "{own_rtt_ms} ms: {phase:#}"
        );

        let mean = f64::midpoint(number(&phase["rpm_foreign"]), number(&phase["rpm_self"]));
        assert_near(number(&phase["rpm"]), mean, 0.1, "mean", phase);
    }
}

/// By so much half of the packets of a direction arrive later than planned, in ms.
fn late_ms(did: &Value) -> f64 {
    ms(did, "error_p50_ns")
}

/// Checks the values of a path of 5 ms up and 45 ms down, whatever is known of the clocks.
#[track_caller]
fn check_delays(report: &Value, link: &LinkReport) {
    let idle = &report["idle"];
    let late_ms = late_ms(&link.up) + late_ms(&link.down);
    assert_near(
        ms(&idle["rtt"], "p50_ns"),
        50.0,
        0.3 + late_ms,
        "RTT",
        report,
    );

    for (way, delay_ms) in [("one_way_up", 5.0), ("one_way_down", 45.0)] {
        // The link's own error, and half of the interval that is printed.
        let tolerance_ms = 0.3 + late_ms + ms(&idle[way], "error_ns");
        assert_near(
            ms(&idle[way], "p50_ns"),
            delay_ms,
            tolerance_ms,
            way,
            report,
        );
    }

    for phase in report["phases"].as_array().expect("loads") {
        for queue in ["queue_up", "queue_down"] {
            assert_near(
                ms(&phase[queue], "p50_ns"),
                0.0,
                0.3 + late_ms,
                queue,
                phase,
            );
        }
    }
}

const SHORT: [&str; 6] = ["--only", "idle,down,up", "--rate", "2M", "--time", "1"];

fn unequal() -> Option<TunLink> {
    TunLink::new(&json!({ "delay_ms": 5 }), &json!({ "delay_ms": 45 }))
}

#[test]
fn timed_delays_are_those_of_their_direction() {
    let Some(link) = unequal() else { return };
    let (report, link) = tested(link, plain, &SHORT);
    check_delays(&report, &link);
    assert_eq!(report["clock"]["method"], "one-clock", "{report:#}");
}

/// Hosts whose clocks are not related: the probes alone bound the offset.
#[test]
fn timed_delays_are_the_same_with_an_unrelated_clock() {
    let Some(link) = unequal() else { return };
    if !std::path::Path::new("/proc/self/ns/time").exists() {
        return unsupported("this kernel has no time namespaces");
    }

    let serve = |host: &NativeHost| {
        let program = ours().path().to_str().expect("a plain path");
        let words = [
            "--time",
            "--monotonic",
            "1000",
            "--boottime",
            "1000",
            program,
        ];
        let service = Service::spawn(host.command_of("unshare".as_ref(), &words), 5201, &[]);
        service.wait_for_events("listening", 1, TIMEOUT);

        service
    };
    let (report, link) = tested(link, serve, &SHORT);
    check_delays(&report, &link);
    assert_eq!(report["clock"]["method"], "exchange", "{report:#}");

    let (offset_ns, error_ns) = (
        number(&report["clock"]["offset_ns"]),
        number(&report["clock"]["error_ns"]),
    );
    let late_ms = late_ms(&link.up) + late_ms(&link.down);
    assert!(
        (offset_ns - 1e12).abs() <= error_ns + 300_000.0 + late_ms * 1e6,
        "{report:#}"
    );
    assert_near(
        error_ns / 1e6,
        25.0,
        0.3 + late_ms,
        "half of the round trip",
        &report,
    );
}

/// Datagrams of both directions, each with what the link did to it.
fn datagrams<'a>(report: &'a Value, link: &'a LinkReport) -> [(&'a Value, &'a Value); 2] {
    [("down", &link.down), ("up", &link.up)].map(|(direction, did)| {
        let all = report["datagrams"].as_array().expect("datagrams");
        let found = all.iter().find(|one| one["direction"] == direction);
        (
            found.unwrap_or_else(|| panic!("no {direction}: {report:#}")),
            did,
        )
    })
}

#[test]
fn timed_reordered_and_doubled_datagrams_are_counted_exactly() {
    let way = json!({
        "delay_ms": 2, "late": [10, 3], "double": [100, 5], "udp_bytes_min": DATAGRAM_BYTES,
    });
    let Some(link) = TunLink::new(&way, &way) else {
        return;
    };
    let (report, link) = tested(link, plain, &["--only", "datagrams", "--rate", "20M"]);
    for (found, did) in datagrams(&report, &link) {
        let sent = number(&found["loss"]["sent"]);
        assert_eq!(number(&did["selected"]), sent, "{found:#} {did:#}");
        assert_eq!(
            found["loss"]["received"], found["loss"]["sent"],
            "{found:#}"
        );
        assert_near(
            100.0 * number(&found["reordered_share"]),
            10.0,
            0.2,
            "reordered",
            found,
        );
        assert_near(
            100.0 * number(&found["duplicate_share"]),
            1.0,
            0.1,
            "doubled",
            found,
        );
        assert_eq!(found["reordering_extent"], 3, "{found:#}");

        // No datagram passes one that is the last of all.
        let reordered = (number(&found["reordered_share"]) * sent).round();
        assert!(
            (0.0..=1.0).contains(&(number(&did["delayed"]) - reordered)),
            "{found:#} {did:#}"
        );
        let doubled = (number(&found["duplicate_share"]) * sent).round();
        assert_eq!(doubled, number(&did["doubled"]), "{found:#} {did:#}");
    }
}

/// Neighbours differ by 2 ms. At 2 Mbit/s they leave 5.7 ms apart, so that none passes another
/// while the sender is in time.
#[test]
fn timed_jitter_is_the_difference_of_neighbours() {
    let way = json!({ "delay_ms": 5, "alternate_ms": 1, "udp_bytes_min": DATAGRAM_BYTES });
    let Some(link) = TunLink::new(&way, &way) else {
        return;
    };
    let (report, link) = tested(link, plain, &["--only", "datagrams", "--rate", "2M"]);
    for (found, did) in datagrams(&report, &link) {
        // A packet that the link holds for too long differs from both of its neighbours.
        let late_ms = (2.0 * ms(did, "error_mean_ns")).min(1.0);
        assert_near(
            number(&found["jitter_ns"]) / 1e6,
            2.0,
            0.1 + late_ms,
            "jitter",
            found,
        );
        assert_eq!(found["duplicate_share"], 0.0, "{found:#}");
        assert_eq!(
            found["loss"]["received"], found["loss"]["sent"],
            "{found:#}"
        );
    }
}
