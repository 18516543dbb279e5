//! `libiperf.so.0`: the same programs over the original library and over ours.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_interop::{Finished, Process, each_case, established, free_port, listens, skip};
use serde_json::Value;
use tempfile::TempDir;

use super::{Compiled, library, original_libiperf};

/// Folder of a `libiperf.so.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Library {
    Original,
    Ours,
}

/// Each client over each server.
const PAIRS: [(Library, Library); 4] = [
    (Library::Original, Library::Original),
    (Library::Ours, Library::Ours),
    (Library::Ours, Library::Original),
    (Library::Original, Library::Ours),
];

/// Both libraries under the name that programs load, and the C program.
struct Lab {
    original: Option<PathBuf>,
    program: Compiled,
}

impl Lab {
    fn new() -> Self {
        let original = original_libiperf();
        if original.is_none() {
            skip("the original library: libiperf0 is not installed");
        }

        let program = Compiled::new(include_str!("libiperf.c"), &library("libiperf.so"));
        assert!(
            program.folder().join("libiperf.so.0").exists(),
            "the soname is that of the original"
        );
        Self { original, program }
    }

    fn folder(&self, library: Library) -> Option<&Path> {
        match library {
            Library::Original => self.original.as_deref(),
            Library::Ours => Some(self.program.folder()),
        }
    }

    /// A program that loads this library.
    fn command(&self, library: Library, program: &Path) -> Command {
        let folder = self
            .folder(library)
            .expect("pairs without a library are left out");
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", folder).env("LC_ALL", "C");
        command
    }

    fn run(&self, library: Library, words: &str) -> Finished {
        let mut command = self.command(library, self.program.path());
        command.args(words.split_whitespace());
        Process::start(command).finish()
    }

    /// A server of the C program for `tests` tests.
    fn server(&self, library: Library, port: u16, tests: u32, settings: &str) -> Process {
        let mut command = self.command(library, self.program.path());
        command.args([
            "server",
            &port.to_string(),
            &tests.to_string(),
            "bind=127.0.0.1",
        ]);
        command.args(settings.split_whitespace());

        start_server(command, port)
    }

    fn pairs(&self) -> Vec<(Library, Library)> {
        let is_there = |library: Library| self.folder(library).is_some();
        PAIRS
            .into_iter()
            .filter(|(client, server)| is_there(*client) && is_there(*server))
            .collect()
    }

    fn libraries(&self) -> Vec<Library> {
        [Library::Original, Library::Ours]
            .into_iter()
            .filter(|library| self.folder(*library).is_some())
            .collect()
    }
}

fn start_server(command: Command, port: u16) -> Process {
    let mut server = Process::start(command);
    server.wait_until_up(|| listens(port));
    server
}

/// The one document of a report.
fn document(finished: &Finished) -> Value {
    let text = finished
        .stdout
        .trim_start_matches("before\n")
        .trim_end_matches("\nafter\n");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

#[test]
fn defaults_and_values_after_a_reset_are_those_of_the_original() {
    let lab = Lab::new();
    let shown = |library| {
        let finished = lab.run(library, "defaults");
        let (settings, version) = finished.stderr.split_once("release ").expect("a version");
        (settings.to_owned(), version.to_owned())
    };
    let (ours, version) = shown(Library::Ours);
    assert!(version.ends_with("version iperf 3.22\n"), "{version}");
    assert!(
        ours.contains("length 131072") && ours.contains("set_protocol -1 errno 131"),
        "{ours}"
    );

    if lab.original.is_some() {
        assert_eq!(ours, shown(Library::Original).0);
    }
}

#[test]
fn command_lines_are_read_as_by_the_original() {
    let lab = Lab::new();
    for line in [
        "-c 127.0.0.1 -p 5300 -t 3 -P 2 -R -O 1 -N -M 1400 -w 64K -C cubic",
        "-c 127.0.0.1 -u -b 5M -l 1000 -J --get-server-output",
        "-c 127.0.0.1 -n 1M -i 0.5 -S 16 --repeating-payload",
        "-s -p 5300 -B 127.0.0.1 -1 -V",
        "-c 127.0.0.1 -s",
        "-c 127.0.0.1 -p 99999",
        "-c 127.0.0.1 -P 1000",
        "-c 127.0.0.1 -i 1000",
    ] {
        // The words of a message differ between releases of the original, and what `-1` sets is its
        // own.
        let shown = |library| {
            let finished = lab.run(library, &format!("arguments {line}"));
            let lines = finished
                .stderr
                .lines()
                .filter(|line| !line.starts_with("text "));

            // The original keeps what it read before a failure.
            let compared = if finished.stderr.starts_with("result 0 ") {
                usize::MAX
            } else {
                1
            };
            lines.take(compared).map(str::to_owned).collect::<Vec<_>>()
        };
        let ours = shown(Library::Ours);
        assert!(ours[0].starts_with("result "), "{ours:?}");

        if lab.original.is_some() {
            assert_eq!(ours, shown(Library::Original), "{line}");
        }
    }
}

#[test]
fn failures_have_the_numbers_of_the_original() {
    let lab = Lab::new();
    let port = free_port();

    for (settings, result, number, text) in [
        ("", -1, 103, "unable to connect to server"),
        // The report has the failure.
        ("json=1", 0, 103, "unable to connect to server"),
        (
            "host=no.such.host.invalid",
            -1,
            103,
            "unable to connect to server",
        ),
    ] {
        for library in lab.libraries() {
            let finished = lab.run(library, &format!("client {port} {settings}"));
            let outcome = format!("result {result} errno {number}\n");
            finished
                .expect_code(0)
                .expect_stderr(&outcome)
                .expect_stderr(&format!("text {text}"));
            finished.expect_stderr("iperf3: values 7 2.5");
            finished
                .expect_stdout("before\n")
                .expect_stdout("\nafter\n");

            if settings == "json=1" {
                let report = document(&finished);
                assert!(
                    report["error"]
                        .as_str()
                        .is_some_and(|error| error.starts_with(text)),
                    "{report}"
                );
            }
        }
    }
}

#[test]
fn values_out_of_their_bounds_are_refused_before_a_connection() {
    let lab = Lab::new();
    for (settings, number) in [
        ("parallel=200", 6),
        ("time=100000", 5),
        ("length=2000000", 7),
        ("protocol=2 length=8", 20),
        ("omit=1000", 12),
        ("interval=0.01", 9),
        ("tos=300", 21),
        ("burst=5000", 15),
        ("bytes=1000 blocks=1000", 16),
        ("port=70000", 26),
    ] {
        let finished = lab.run(Library::Ours, &format!("client 5201 {settings}"));
        finished
            .expect_code(0)
            .expect_stderr(&format!("result -1 errno {number}\n"));
    }
}

#[test]
fn c_programs_have_the_same_outcome_over_both_libraries() {
    let lab = Lab::new();
    let cases: Vec<_> = [
        "",
        "reverse=1 parallel=2",
        "bytes=200000000 time=0",
        "protocol=2 rate=5000000 length=1000",
        "protocol=2 rate=5000000 length=1000 reverse=1",
        "length=4096 rate=10000000 tos=16 mss=1000 no_delay=1",
        "get_server_output=1 udp_64bit=1",
        "zerocopy=1 repeating=1",
    ]
    .into_iter()
    .enumerate()
    .flat_map(|(number, settings)| {
        // What differs between libraries on the wire shows in the first ones.
        let pairs = lab
            .pairs()
            .into_iter()
            .filter(move |(client, server)| number < 4 || client == server);
        pairs.map(move |(client, server)| (client, server, settings))
    })
    .collect();
    each_case(&cases, |(client, server, settings)| {
        let port = free_port();
        let server = lab.server(*server, port, 1, "json=1");
        let finished = lab.run(*client, &format!("client {port} json=1 time=1 {settings}"));
        let served = server.finish();

        finished
            .expect_code(0)
            .expect_stderr("result 0 errno 0\n")
            .expect_stderr("report ");
        served.expect_code(0).expect_stderr("result 0 errno 0\n");
        let (sent, received) = (document(&finished), document(&served));
        let start = &sent["start"]["test_start"];

        let protocol = if settings.contains("protocol=2") {
            "UDP"
        } else {
            "TCP"
        };
        assert_eq!(start["protocol"], protocol);
        assert_eq!(start["reverse"], i32::from(settings.contains("reverse=1")));
        assert_eq!(
            start["num_streams"],
            if settings.contains("parallel") { 2 } else { 1 }
        );
        assert_eq!(received["start"]["test_start"]["protocol"], protocol);
        assert!(
            moved(&sent) > 0 && moved(&received) > 0,
            "{sent} {received}"
        );

        if settings.contains("bytes=") {
            assert!((200_000_000..300_000_000).contains(&moved(&sent)), "{sent}");
        }

        assert_eq!(
            sent["server_output_json"].is_object(),
            settings.contains("get_server_output"),
            "{sent}"
        );
    });
}

/// Bytes of a report's sums.
fn moved(report: &Value) -> u64 {
    let end = &report["end"];
    let sums = [
        &end["sum_sent"]["bytes"],
        &end["sum_received"]["bytes"],
        &end["sum"]["bytes"],
    ];
    sums.iter()
        .filter_map(|bytes| bytes.as_u64())
        .max()
        .unwrap_or(0)
}

#[test]
fn a_server_runs_one_test_after_the_other_and_survives_clients_that_break_off() {
    let lab = Lab::new();
    let port = free_port();
    let mut server = lab.server(Library::Ours, port, 3, "json=1");

    for settings in ["", "reverse=1"] {
        server.wait_until_up(|| listens(port));
        lab.run(
            Library::Ours,
            &format!("client {port} json=1 time=1 {settings}"),
        )
        .expect_stderr("result 0 errno 0\n");
    }

    server.wait_until_up(|| listens(port));
    let (input, end) = io::pipe().expect("a pipe");
    let mut command = lab.command(Library::Ours, lab.program.path());
    command.args(["ended", &port.to_string(), "json=1", "time=30"]);

    let mut client = Process::start_reading(command, input);
    // Both ends of its control connection and of its stream.
    client.wait_until_up(|| established(port).len() >= 4);
    drop(end);
    client.finish().expect_code(0).expect_stderr("errno 119\n");

    let served = server.finish();
    served.expect_code(0);
    assert_eq!(
        served.stderr.matches("result 0 errno 0\n").count(),
        2,
        "{served:?}"
    );
    served.expect_stderr("result 0 errno 119\ntext the client has terminated\n");
}

#[test]
fn a_client_that_is_killed_is_no_failure_of_the_server() {
    let lab = Lab::new();
    for library in lab.libraries() {
        let port = free_port();
        let server = lab.server(library, port, 1, "json=1");
        let mut command = lab.command(Library::Ours, lab.program.path());
        command.args([
            "client",
            &port.to_string(),
            "time=60",
            "rate=1000000",
            "interval=0.1",
        ]);

        let client = Process::start(command);
        client.wait_for_stdout("bits/sec", 1);
        drop(client);

        let served = server.finish();
        served
            .expect_code(0)
            .expect_stderr("result 0 errno 109\ntext control socket has closed unexpectedly\n");
        assert!(document(&served)["error"].is_string(), "{served:?}");
    }
}

#[test]
fn a_log_file_takes_the_report() {
    let lab = Lab::new();
    let folder = TempDir::new().expect("a folder");
    let log = folder.path().join("log");
    let port = free_port();
    let server = lab.server(Library::Ours, port, 1, "");
    let finished = lab.run(
        Library::Ours,
        &format!("client {port} time=1 logfile={}", log.display()),
    );
    finished.expect_stderr("result 0 errno 0\n");
    server.finish().expect_stdout("Server listening on");
    assert_eq!(finished.stdout, "before\n\nafter\n");

    let text = std::fs::read_to_string(&log).expect("a report");
    assert!(
        text.contains("Connecting to host 127.0.0.1") && text.contains("iperf Done."),
        "{text}"
    );
}

/// The command of the package, or the reason why it cannot run.
fn python(lab: &Lab, library: Library) -> Option<Command> {
    let mut command = lab.command(library, Path::new("python3"));
    if let Ok(folder) = std::env::var("LINERATE_TEST_PYTHON") {
        command.env("PYTHONPATH", folder);
    }

    let mut probe = lab.command(library, Path::new("python3"));
    probe
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .args(["-c", "import iperf3"]);

    if Process::start(probe).finish().code() != Some(0) {
        skip("python3 has no package iperf3; .ci/python-tools installs it");
        return None;
    }

    Some(command)
}

fn outcome(finished: &Finished) -> Value {
    finished.expect_code(0);
    serde_json::from_str(finished.stdout.trim())
        .unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

#[test]
fn the_python_package_has_the_same_outcome_over_both_libraries() {
    let lab = Lab::new();
    if python(&lab, Library::Ours).is_none() {
        return;
    }

    let script = super::file("python_iperf3.py");
    let run = |library, words: &str| {
        let mut command = python(&lab, library).expect("it was there before");
        command.arg(&script).args(words.split_whitespace());
        command
    };

    let cases: Vec<_> = [
        "duration=1",
        "duration=1 reverse=1 num_streams=3",
        "duration=1 protocol=udp bandwidth=5000000 blksize=1200",
        "duration=1 protocol=udp bandwidth=20000000",
    ]
    .into_iter()
    .enumerate()
    .flat_map(|(number, settings)| {
        let pairs = lab
            .pairs()
            .into_iter()
            .filter(move |(client, server)| number % 2 == 0 || client == server);
        pairs.map(move |(client, server)| (client, server, settings))
    })
    .collect();
    each_case(&cases, |(client, server, settings)| {
        let port = free_port();
        let server = start_server(run(*server, &format!("server {port} 1")), port);
        let sent =
            outcome(&Process::start(run(*client, &format!("client {port} {settings}"))).finish());
        let received = outcome(&server.finish());
        let is_udp = settings.contains("udp");

        for shown in [&sent, &received] {
            assert!(shown["error"].is_null(), "{shown}");
            assert_eq!(shown["protocol"], if is_udp { "UDP" } else { "TCP" });
            assert_eq!(
                shown["num_streams"],
                if settings.contains("num_streams") {
                    3
                } else {
                    1
                }
            );
            assert_eq!(shown["reverse"], settings.contains("reverse"));
            assert_eq!(shown["duration"], 1);
        }

        assert_eq!(
            (&sent["type"], &received["type"]),
            (&"client".into(), &"server".into())
        );
        assert_eq!(
            (&sent["remote_host"], &sent["remote_port"]),
            (&"127.0.0.1".into(), &port.into())
        );
        assert!(
            sent["bytes"].as_u64() > Some(0) && sent["intervals"].as_u64() >= Some(1),
            "{sent}"
        );

        if is_udp {
            assert!(sent["lost_percent"].is_number(), "{sent}");
        }
    });

    for library in lab.libraries() {
        let port = free_port();
        let refused =
            outcome(&Process::start(run(library, &format!("client {port} duration=1"))).finish());
        let error = refused["error"].as_str().unwrap_or_default();
        assert!(
            error.starts_with("unable to connect to server")
                && error.ends_with("Connection refused"),
            "{refused}"
        );

        let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let in_use = outcome(&Process::start(run(library, &format!("server {port} 1"))).finish());
        let error = in_use["error"].as_str().unwrap_or_default();
        assert!(
            error.starts_with("unable to start listener for connections"),
            "{in_use}"
        );
    }
}

#[test]
fn the_library_exports_its_interface_alone() {
    let library = library("libiperf.so");
    let listed = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(&library)
        .output()
        .expect("nm runs");
    let text = String::from_utf8(listed.stdout).expect("symbols are UTF-8");
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();

    let is_other = |name: &&&str| {
        let others = [
            "i_errno",
            "version",
            "iflush",
            "warning",
            "usage",
            "usage_long",
            "connect_msg",
        ];
        let prefixes = [
            "iperf_",
            "has_",
            "get_",
            "set_protocol",
            "add_to_interval_list",
            "save_tcpinfo",
            "print_tcpinfo",
        ];
        !others.contains(name)
            && !prefixes.iter().any(|prefix| name.starts_with(prefix))
            && **name != "build_tcpinfo_message"
    };
    let foreign: Vec<_> = names.iter().filter(is_other).collect();
    assert!(
        foreign.is_empty() && names.len() > 150,
        "{} names, {foreign:?}",
        names.len()
    );
}

/// valgrind runs both ends twenty times slower.
#[test]
#[ignore = "make live SUITE=libraries"]
fn tests_leak_no_memory() {
    let lab = Lab::new();
    for settings in [
        "json=1",
        "protocol=2 rate=1000000 length=1000 json=1",
        "reverse=1",
    ] {
        let port = free_port();
        let under = |words: &str| {
            let words: Vec<&str> = words.split_whitespace().collect();
            super::valgrind(&lab.command(Library::Ours, lab.program.path()), &words)
        };
        let server = start_server(under(&format!("server {port} 1")), port);
        let client = Process::start(under(&format!("client {port} time=1 {settings}")));
        client
            .finish_within(super::SLOW)
            .expect_code(0)
            .expect_stderr("result 0 errno 0\n");
        server
            .finish_within(super::SLOW)
            .expect_code(0)
            .expect_stderr("result 0 errno 0\n");
    }
}
