//! M-Lab's own client of ndt7, that of web pages, at our server.

use std::path::PathBuf;
use std::process::Command;

use linerate_interop::{Process, Service, TIMEOUT, skip};
use serde_json::Value;

const SERVE: [&str; 0] = [];

/// The client of npm, unmodified, which `.ci/ndt7-js` installs.
#[test]
#[ignore = "needs Node.js: make live SUITE=pages"]
fn timed_client_of_web_pages_measures_both_directions_and_reads_the_servers_measurements() {
    let tools = std::env::var("TOOLS").unwrap_or_else(|_| "target/tools".to_owned());
    let folder = PathBuf::from(tools).join("ndt7-js");
    if !folder.join("node_modules/@m-lab/ndt7").exists() {
        return skip("@m-lab/ndt7 is not installed: .ci/ndt7-js FOLDER");
    }

    let service = Service::start(&SERVE);
    let mut command = Command::new("node");
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/ndt7_client.js"))
        .arg(folder)
        .arg(format!("127.0.0.1:{}", service.port));
    let client = Process::start(command).finish();

    let results = client.expect_clean().stdout.clone();
    let results: Vec<Value> = results
        .lines()
        .map(|line| serde_json::from_str(line).expect("a result"))
        .collect();
    let directions: Vec<&Value> = results.iter().map(|result| &result["direction"]).collect();
    assert_eq!(directions, ["download", "upload"], "{client:?}");

    for result in &results {
        let of_client = &result["LastClientMeasurement"];
        let rate = of_client["MeanClientMbps"].as_f64().expect("a rate");
        assert!(rate > 100.0, "{result}");
        let of_server = &result["LastServerMeasurement"];
        let [client, server] = [of_client, &of_server["AppInfo"]]
            .map(|end| end["NumBytes"].as_f64().expect("a count"));
        assert!((server / client - 1.0).abs() < 0.1, "{result}");
        assert!(of_server["TCPInfo"]["MinRTT"].is_u64(), "{result}");
    }
    service.wait_for_events("test_ended", 2, TIMEOUT);
}
