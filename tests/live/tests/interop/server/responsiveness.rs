//! Tests of responsiveness over HTTP/2 and TLS: resources by curl, loads and attackers by a client of
//! ours.

use std::process::Command;
use std::time::Duration;

use linerate_interop::{
    Certificate, NDT7, Process, RawBrowser, Service, TIMEOUT, each_case, original,
};
use serde_json::Value;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/nq_client.py");
/// Longest time from the last byte of an attacker to its end: a request has 5 s.
const HELD_MAX_S: f64 = 9.0;

fn serve(certificate: &Certificate, more: &[&str]) -> Service {
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    Service::start(&[&["--tls-cert", &cert, "--tls-key", &key], more].concat())
}

fn curl(certificate: &Certificate, words: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.args([
        "-sS",
        "--max-time",
        "2",
        "--cacert",
        &certificate.path("cert.pem"),
    ]);
    command.args(words);
    Process::start(command).finish().stdout
}

/// Our client, which prints JSON.
fn client(certificate: &Certificate, service: &Service, words: &[&str]) -> Process {
    let mut command = Command::new("python3");
    command.args([CLIENT, "127.0.0.1", &service.port.to_string()]);
    command.arg(certificate.path("cert.pem")).args(words);
    Process::start(command)
}

#[test]
fn resources_are_those_of_the_configuration_by_either_version_of_http() {
    let certificate = Certificate::make();
    let service = serve(&certificate, &[]);
    let root = format!("https://127.0.0.1:{}", service.port);
    for (option, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let get = |path: &str, words: &[&str]| {
            let url = format!("{root}{path}");
            curl(&certificate, &[&[option, &url], words].concat())
        };
        let configuration = get("/.well-known/nq", &[]);
        let configuration: Value = serde_json::from_str(&configuration).expect("JSON");
        let urls = &configuration["urls"];
        assert_eq!(configuration["version"], 1, "{configuration}");
        for (name, path) in [
            ("small_download_url", "small"),
            ("small_https_download_url", "small"),
            ("large_download_url", "large"),
            ("large_https_download_url", "large"),
            ("upload_url", "slurp"),
            ("https_upload_url", "slurp"),
        ] {
            assert_eq!(urls[name], format!("{root}/nq/{path}"), "{configuration}");
        }
        assert_eq!(get("/nq/small", &[]), "x");
        let written = ["-o", "/dev/null", "-w", "%{http_code} %{http_version}"];
        assert_eq!(get("/", &written), format!("200 {version}"));
    }

    let plain = format!("http://127.0.0.1:{}/.well-known/nq", service.port);
    let status = curl(
        &certificate,
        &["-o", "/dev/null", "-w", "%{http_code}", &plain],
    );
    assert_eq!(status, "404");
}

#[test]
fn loads_over_http2_are_tests_in_both_directions() {
    let certificate = Certificate::make();
    let service = serve(&certificate, &[]);
    let url = |name: &str| format!("https://127.0.0.1:{}/nq/{name}", service.port);
    // curl stops at its time; the body has no end.
    let written = ["-o", "/dev/null", "-w", "%{size_download} %{http_version}"];
    let taken = curl(&certificate, &[&written[..], &[&url("large")]].concat());
    let (octets, version) = taken.split_once(' ').expect("two values");
    assert!(
        version == "2" && octets.parse::<u64>().expect("a number") > 10_000_000,
        "{taken}"
    );

    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(3_000_000).expect("its length");
    let body = format!("@{}", file.path().display());
    let written = ["-w", "%{http_code} %{size_upload}", "--data-binary", &body];
    let sent = curl(&certificate, &[&written[..], &[&url("slurp")]].concat());
    assert_eq!(sent.trim(), "200 3000000");

    let ended = service.wait_for_events("test_ended", 2, TIMEOUT);
    let bytes = |event: &Value, name: &str| event[name].as_u64().expect("a count");
    assert!(bytes(&ended[0], "sent_bytes") > 10_000_000, "{ended:?}");
    assert_eq!(bytes(&ended[1], "received_bytes"), 3_000_000, "{ended:?}");
    for event in &ended {
        assert_eq!(event["outcome"], "complete", "{event}");
    }

    let written = [
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-H",
        "Sec-Fetch-Site: cross-site",
    ];
    let foreign = curl(&certificate, &[&written[..], &[&url("large")]].concat());
    assert_eq!(foreign, "403");
}

/// All connections of a client are one test, which has a place and a quota.
#[test]
fn timed_limits_of_the_server_hold_for_loads_over_http2() {
    let certificate = Certificate::make();
    let service = serve(&certificate, &["--limit", "address:tests=1,rate=40M"]);
    for (direction, count) in [("download", 1), ("upload", 2)] {
        let process = client(&certificate, &service, &["rate", "4", direction]);
        service.wait_for_events("test_started", count, TIMEOUT);
        let (_, status) = RawBrowser::upgrade(service.port, "/ndt/v7/download", NDT7, "");
        assert!(status.contains("503"), "a second test: {status}");

        let found = process.finish().expect_clean().json()["bps"].as_f64();
        let found = found.expect("a rate");
        assert!((25e6..45e6).contains(&found), "{direction}: {found}");
        service.wait_for_events("test_ended", count, TIMEOUT);
    }
}

const ATTACKS: [&str; 12] = [
    "resets",
    "pings",
    "settings",
    "windows",
    "empty bodies",
    "endless fields",
    "a bomb of fields",
    "a body without a request",
    "a frame of 16 MiB",
    "a load and a flood of pings",
    "a load and resets",
    "silence",
];

/// Every attacker is disconnected, and the original's client is served as if nothing had happened.
#[test]
fn attackers_over_http2_are_disconnected() {
    let certificate = Certificate::make();
    let service = serve(&certificate, &[]);
    each_case(&ATTACKS, |name| {
        let attacker = client(&certificate, &service, &["attack", name]);
        service
            .client(original(), &["-n", "1M"])
            .finish()
            .expect_clean();
        let ended = attacker.finish_within(Duration::from_secs(60));
        let held_s = ended.expect_clean().json()["ended_s"].as_f64();
        assert!(
            held_s.is_some_and(|held_s| held_s < HELD_MAX_S),
            "{ended:?}"
        );
    });
}
