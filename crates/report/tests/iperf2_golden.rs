//! Recorded output of iperf 2.1.8 and 2.2.1 is turned back into events; the writer must make the same lines of them.
//!
//! Not compared: what depends on digits that were rounded away (network power, Little's load, replies per second), and
//! what the originals get wrong. Each is masked in both texts, in [`mask`].

#[path = "iperf2/command.rs"]
mod command;
#[path = "iperf2/events.rs"]
mod events;
#[path = "iperf2/lines.rs"]
mod lines;
#[path = "support/output.rs"]
mod output;
#[path = "iperf2/solver.rs"]
mod solver;

use std::fs;
use std::path::PathBuf;

use linerate_model::event::Endpoint;
use linerate_report::iperf2::{client_sink, server_reporter};

use command::Command;
use output::captured_output;

/// Recordings that are compared as a whole, each at both ends.
const WHOLE: &[&str] = &[
    "bounceback",
    "bounceback_triptimes",
    "tcp_C",
    "tcp_F",
    "tcp_P3_b30m",
    "tcp_P3_enh_b30m",
    "tcp_V6",
    "tcp_V6_e",
    "tcp_X",
    "tcp_X_triptimes",
    "tcp_Z_reno",
    "tcp_burst_triptimes",
    "tcp_bvar",
    "tcp_connectonly_i",
    "tcp_daemon_pid_w",
    "tcp_default",
    "tcp_default_i1",
    "tcp_dual_b",
    "tcp_e_m",
    "tcp_enh_b100m",
    "tcp_enh_full",
    "tcp_f_A",
    "tcp_f_B",
    "tcp_f_G",
    "tcp_f_K",
    "tcp_f_M",
    "tcp_f_b",
    "tcp_f_bad",
    "tcp_f_g",
    "tcp_f_k",
    "tcp_f_m",
    "tcp_fqrate",
    "tcp_fullduplex_b",
    "tcp_fullduplex_e_b",
    "tcp_hideips",
    "tcp_histograms",
    "tcp_isoch",
    "tcp_m_M_N_S_B",
    "tcp_n",
    "tcp_nearcongest",
    "tcp_permitkey",
    "tcp_port_range",
    "tcp_prefetch",
    "tcp_reverse_P2_b",
    "tcp_reverse_b",
    "tcp_reverse_e_b",
    "tcp_reverse_n",
    "tcp_t05",
    "tcp_tradeoff_b",
    "tcp_triptimes_P2_b",
    "tcp_triptimes_b",
    "tcp_txdelay",
    "tcp_writetimes",
    "udp_P2",
    "udp_P2_enh",
    "udp_V6",
    "udp_b1g_enh",
    "udp_default",
    "udp_dual",
    "udp_enh",
    "udp_fullduplex",
    "udp_fullduplex_e",
    "udp_histograms",
    "udp_isoch",
    "udp_isoch_triptimes",
    "udp_l16",
    "udp_n",
    "udp_nofin",
    "udp_pps",
    "udp_reverse",
    "udp_reverse_e",
    "udp_triptimes",
    "w_256k",
    "w_8M",
];

/// Ends of recordings that show a defect, or something only another part of the program can say.
const LEFT_OUT: &[(&str, &str)] = &[
    ("218/tcp_burst_triptimes server", "every burst begins at 0"),
    ("221/tcp_burst_triptimes server", "the first burst takes no time"),
    (
        "218/udp_n server",
        "the recording begins with the end of the flows before",
    ),
    ("218/udp_P2 client", "reports come in the order of their arrival"),
    (
        "218/udp_P2 server",
        "flows are mixed, and the sum takes the mistake back",
    ),
    ("218/udp_P2_enh client", "reports come in the order of their arrival"),
    (
        "218/udp_P2_enh server",
        "flows are mixed, and the sum takes the mistake back",
    ),
    ("221/udp_P2 client", "one of 181 datagrams is 0%"),
    ("221/udp_P2_enh server", "one flow begins a second late"),
    (
        "221/bounceback_triptimes server",
        "requests are taken for bursts without delay",
    ),
    (
        "221/udp_histograms server",
        "the distribution of jitter is not supported",
    ),
    ("221/udp_dual client", "the two banners come in either order"),
    ("221/tcp_F server", "a short test has no rate"),
    ("221/tcp_n server", "a short test has no rate"),
];

/// One end of one recording.
struct Recorded {
    name: String,
    text: String,
    client: Command,
    server: Command,
    endpoint: Endpoint,
}

#[test]
fn recorded_text_is_written_again() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for release in ["218", "221"] {
        for case in WHOLE {
            for recorded in load(release, case) {
                if LEFT_OUT.iter().any(|(name, _)| *name == recorded.name) {
                    continue;
                }
                compared += 1;
                let expected = mask(&lines::without_noise(&recorded.text), release);
                let Ok(written) = std::panic::catch_unwind(|| write(&recorded)) else {
                    wrong.push(format!("{}: cannot be read", recorded.name));
                    continue;
                };
                let actual = mask(&written, release);
                if let Some(difference) = difference(&expected, &actual) {
                    wrong.push(format!("{}\n{difference}", recorded.name));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared > 200, "{compared}");
}

/// Both ends of a recording.
fn load(release: &str, case: &str) -> Vec<Recorded> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf2");
    let path = root.join(format!("text-{release}/{case}.txt"));
    let Ok(text) = fs::read_to_string(&path) else {
        panic!("{}", path.display())
    };
    let line = |start: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_default()
    };
    let client = Command::parse(line("# client: iperf "), release);
    let server = Command::parse(line("# server: iperf "), release);
    let section = |start: &str| {
        let after = text.split(start).nth(1).unwrap_or_default();
        after
            .split("\n=== ")
            .next()
            .unwrap_or_default()
            .trim_start_matches('\n')
            .to_owned()
    };
    let ends = [
        ("client", section("=== client stdout ==="), Endpoint::Client),
        (
            "server",
            section("=== server stdout+stderr (ended with SIGINT) ==="),
            Endpoint::Server,
        ),
    ];
    let recorded = ends.into_iter().filter(|(_, text, _)| !text.is_empty());
    recorded
        .map(|(end, text, endpoint)| Recorded {
            name: format!("{release}/{case} {end}"),
            text: format!("{}\n", text.trim_end_matches('\n')),
            client: client.clone(),
            server: server.clone(),
            endpoint,
        })
        .collect()
}

fn write(recorded: &Recorded) -> String {
    let script = events::script(&recorded.text, &recorded.client, &recorded.server, recorded.endpoint);
    let (output, captured, _) = captured_output();
    let mut sink = if recorded.endpoint == Endpoint::Client {
        client_sink(script.options, output)
    } else {
        let mut reporter = server_reporter(script.options, output);
        script
            .listeners
            .iter()
            .for_each(|facts| reporter.listener(facts).expect("a writable output"));
        reporter.open_test().expect("a writable output")
    };
    for event in &script.events {
        sink.event(&output::stored(event)).expect("a writable output");
    }
    captured.text()
}

/// Replaces what cannot be known, in both texts alike.
fn mask(text: &str, release: &str) -> String {
    let masked = text.lines().filter_map(|line| lines::mask(line, release));
    masked.fold(String::new(), |text, line| text + &line + "\n")
}

fn difference(expected: &str, actual: &str) -> Option<String> {
    let (mut expected, mut actual) = (expected.lines(), actual.lines());
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some(format!("  expected {a:?}\n  got      {b:?}")),
        }
    }
}
