//! Parameters that a client sends, option by option: our parameters must be the original's, in the
//! same order.
//!
//! A scripted server takes the parameters of both clients and hangs up.

use linerate_interop::{Control, Process, Program, each_case, original, ours};
use serde_json::{Map, Value};

/// Options that travel, or must not.
const CASES: [&str; 44] = [
    "",
    "-t 3",
    "-n 1M",
    "-n 1.5G",
    "-k 20",
    "-l 1000",
    "-l 16K",
    "-w 64K",
    "-M 1000",
    "-N",
    "-P 4",
    "-R",
    "--bidir",
    "-R -P 3 -t 2",
    "-b 10M",
    "-b 1.5m",
    "-b 10M/20",
    "-b 0",
    "-C reno",
    "-S 16",
    "-S 0x20",
    "-S 020",
    "--dscp af11",
    "--dscp 46",
    "--dscp ef",
    "-O 2",
    "-Z",
    "--repeating-payload",
    "--fq-rate 100M",
    "-T title",
    "--extra-data words",
    "--get-server-output",
    "-i 0.5",
    "-A 0",
    "-A 0,1",
    "--pacing-timer 500",
    "--connect-timeout 5000",
    "--rcv-timeout 500 -R",
    "--snd-timeout 500",
    "-u",
    "-u -b 0",
    "-u -l 1000 -b 5M/10",
    "-u --udp-counters-64bit",
    "-u --dont-fragment -R",
];

/// Keys whose value names the program.
const OWN: [&str; 1] = ["client_version"];

/// Keys a 3.22 client adds, and the one by which two of ours know each other; servers ignore what
/// they do not know.
const ADDED: [&str; 6] = [
    "linerate",
    "gso",
    "gso_dg_size",
    "gso_bf_size",
    "gro",
    "gro_bf_size",
];

#[test]
fn the_parameters_are_the_originals() {
    each_case(&CASES, |options| {
        let expected = parameters(original(), options);
        let found = parameters(ours(), options);

        let shared = |map: &Map<String, Value>| {
            let pairs = map
                .iter()
                .filter(|(key, _)| !OWN.contains(&key.as_str()) && expected.contains_key(*key));
            pairs
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(shared(&found), shared(&expected));
        let added: Vec<_> = found
            .keys()
            .filter(|key| !expected.contains_key(*key) && !ADDED.contains(&key.as_str()))
            .collect();
        assert!(
            added.is_empty(),
            "keys that are not sent for these options: {added:?}"
        );
    });
}

fn parameters(program: &Program, options: &str) -> Map<String, Value> {
    let (listener, port) = Control::listen();
    let port = port.to_string();
    let base = ["-c", "127.0.0.1", "-p", &port];
    let client =
        Process::start(program.command(base.into_iter().chain(options.split_whitespace())));
    let (control, text) = Control::parametrised(&listener);
    drop(control);
    client.finish().expect_code(1);

    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => map,
        other => panic!("not an object but {other:?}: {text}"),
    }
}
