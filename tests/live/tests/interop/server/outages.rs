//! A running test continues after what it survives with the original's server: an outage of the
//! path, a client that is stopped for a while, a server that is. A client that never continues
//! keeps no place that another one waits for.

use std::process::Command;
use std::thread;
use std::time::Duration;

use linerate_interop::namespaces::{Net, SERVER, inside};
use linerate_interop::{Process, Program, Server, Signal, original, ours, ours_only, wait_until};

/// Longer than a server keeps a silent test whose place is wanted.
const OUTAGE: Duration = Duration::from_secs(15);
/// Longest time of a test with an outage: TCP tries again after a time that has doubled several
/// times.
const END: Duration = Duration::from_secs(90);
/// Options of a client that prints what it moves.
const CLIENT: [&str; 6] = ["-t", "20", "-i", "1", "-f", "m"];

/// Server, client, and the client's options.
fn cases() -> [(&'static Program, &'static Program, &'static [&'static str]); 6] {
    [
        (ours(), original(), &["-b", "5M"]),
        (ours(), original(), &["-b", "5M", "-R"]),
        (ours(), original(), &["-b", "1M", "-u"]),
        (ours(), ours(), &["-b", "5M"]),
        (ours(), ours(), &["-b", "5M", "-R"]),
        (original(), ours(), &["-b", "5M"]),
    ]
}

#[test]
fn a_test_survives_an_outage_of_the_path() {
    at_once(|(server, client, options)| {
        let Some(net) = Net::bridged() else { return };
        let server = iperf3(
            inside(&net.b, server.path(), &[]),
            server,
            &["-s", "--forceflush"],
        );
        wait_until(linerate_interop::TIMEOUT, || {
            server.stdout().contains("Server listening")
        });

        let words = [&["-c", SERVER, "--forceflush"], &CLIENT[..], options].concat();
        let client = iperf3(inside(&net.a, client.path(), &[]), client, &words);
        client.wait_for_stdout("/sec", 3);

        net.in_middle("ip link set br0 down");
        thread::sleep(OUTAGE);
        net.in_middle("ip link set br0 up");

        let client = client.finish_within(END);
        assert_eq!(
            client.code(),
            Some(0),
            "{options:?}: {client:?}\nserver: {server:?}"
        );
    });
}

#[test]
fn a_test_survives_a_stopped_client() {
    at_once(|(server, client, options)| {
        let server = Server::start(server, &["--forceflush"]);
        let words = [&["--forceflush"], &CLIENT[..], options].concat();
        let client = server.client(client, "127.0.0.1", &words);
        client.wait_for_stdout("/sec", 3);

        client.signal(Signal::Stop);
        thread::sleep(OUTAGE);
        client.signal(Signal::Continue);

        let client = client.finish_within(END);
        assert_eq!(
            client.code(),
            Some(0),
            "{options:?}: {client:?}\nserver: {server:?}"
        );
    });
}

/// As when the machine of the server is paused.
#[test]
fn a_test_survives_a_stopped_server() {
    at_once(|(server, client, options)| {
        let server = Server::start(server, &["--forceflush"]);
        let words = [&["--forceflush"], &CLIENT[..], options].concat();
        let client = server.client(client, "127.0.0.1", &words);
        client.wait_for_stdout("/sec", 3);

        server.process.signal(Signal::Stop);
        thread::sleep(OUTAGE);
        server.process.signal(Signal::Continue);

        let client = client.finish_within(END);
        assert_eq!(
            client.code(),
            Some(0),
            "{options:?}: {client:?}\nserver: {server:?}"
        );
    });
}

#[test]
fn a_stopped_client_keeps_no_place_that_another_one_wants() {
    let ours = ours_only!("the original waits for a stopped client for ever");
    for admission in ["exclusive", "queue:1"] {
        let server = Server::start(ours, &["--lr-admit", admission]);
        let stopped = server.client(
            original(),
            "127.0.0.1",
            &["-t", "20", "-i", "0.2", "--forceflush"],
        );
        stopped.wait_for_stdout("/sec", 2);
        stopped.signal(Signal::Stop);

        // A client that comes at once is refused, or waits; one that comes later finds the place
        // free.
        let is_served = || server.run(ours, &["-n", "64K"]).code() == Some(0);
        if admission == "exclusive" {
            assert!(!is_served(), "the test has been silent for no time");
            thread::sleep(OUTAGE);
        }

        assert!(is_served(), "{admission}: {server:?}");
        assert!(
            server
                .process
                .stderr()
                .contains("no sign of life from the client for 10 s"),
            "{server:?}"
        );
    }
}

fn at_once(run: impl Fn((&'static Program, &'static Program, &'static [&'static str])) + Sync) {
    thread::scope(|scope| {
        for case in cases() {
            let run = &run;
            scope.spawn(move || run(case));
        }
    });
}

/// A program in a namespace, called under the name of iperf3.
fn iperf3(mut command: Command, program: &Program, words: &[&str]) -> Process {
    if !program.is_original() {
        command.arg("iperf3");
    }
    command.args(words);
    Process::start(command)
}
