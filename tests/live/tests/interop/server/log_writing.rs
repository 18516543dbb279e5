//! Logs and reports of a server that cannot be written, or that nothing reads. Each test reads
//! the clients and at the process: both must not notice.

use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::iter;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::iperf2::Iperf2;
use linerate_interop::{
    Process, Server, Signal, TIMEOUT, each_case, free_port, listens, original, ours, wait_until,
};
use serde_json::Value;

/// Outputs of a server that take nothing.
#[derive(Debug, Clone, Copy)]
enum Refusing {
    FullDisk,
    ReaderGone,
    LogFileOnFullDisk,
}

/// A kind of server, as the words of its command line behind the port.
type Kind = (&'static str, &'static [&'static str]);

const KINDS: [Kind; 4] = [
    ("iperf3", &["iperf3", "-s", "-i", "0.2", "-p"]),
    ("iperf3", &["iperf3", "-s", "-J", "-p"]),
    ("iperf3", &["serve", "--log-level", "debug", "--port"]),
    ("iperf2", &["iperf2", "-s", "-i", "0.5", "-p"]),
];

#[test]
fn server_continues_when_its_report_cannot_be_written() {
    let outputs = [
        Refusing::FullDisk,
        Refusing::ReaderGone,
        Refusing::LogFileOnFullDisk,
    ];
    let cases: Vec<(Kind, Refusing)> = KINDS
        .iter()
        .flat_map(|kind| outputs.map(|output| (*kind, output)))
        // The service writes to its standard output only.
        .filter(|((_, words), output)| {
            words[0] != "serve" || !matches!(output, Refusing::LogFileOnFullDisk)
        })
        .collect();
    each_case(&cases, |((dialect, words), output)| {
        let port = free_port();
        let mut command = server(words, port);

        match output {
            Refusing::FullDisk => command.stdout(full_disk()),
            Refusing::ReaderGone => command.stdout(io::pipe().expect("a pipe").1),
            Refusing::LogFileOnFullDisk => match *dialect {
                "iperf2" => command.args(["-o", "/dev/full"]).stdout(Stdio::null()),
                _ => command
                    .args(["--logfile", "/dev/full"])
                    .stdout(Stdio::null()),
            },
        };

        let mut running = start(command, port);
        for _ in 0..2 {
            expect_service(&mut running, dialect);
        }
    });
}

/// The pipe is full from the beginning, so that the first word of the server finds no room.
#[test]
fn a_reader_that_stops_holds_up_neither_clients_nor_the_end() {
    each_case(&KINDS, |(dialect, words)| {
        let port = free_port();
        let mut command = server(words, port);
        let (_reader, writer) = full_pipe();
        command
            .stderr(writer.try_clone().expect("a descriptor"))
            .stdout(writer);

        let mut running = start(command, port);
        expect_service(&mut running, dialect);
        let started = Instant::now();

        running.process.signal(Signal::Terminate);
        assert!(
            wait_until(TIMEOUT, || running.process.has_ended()),
            "SIGTERM did not end the server"
        );
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "{:?}",
            started.elapsed()
        );
    });
}

/// A named pipe refuses text while it has no reader, and takes it when there is one again.
#[test]
fn lines_that_were_dropped_are_counted_in_the_log() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("log");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");

    // For reading and writing, because opening one end alone waits for the other (fifo(7)).
    let both = || {
        File::options()
            .read(true)
            .write(true)
            .open(&path)
            .expect("a named pipe")
    };
    let reader = both();
    let writer = File::options()
        .write(true)
        .open(&path)
        .expect("there is a reader");

    drop(reader);
    let port = free_port();

    let mut command = server(
        &[
            "serve",
            "--log-format",
            "json",
            "--log-level",
            "debug",
            "--port",
        ],
        port,
    );
    command.stdout(writer);
    let mut running = start(command, port);
    expect_service(&mut running, "iperf3");

    let (sender, lines) = mpsc::channel();
    let reader = both();
    // It reads until the test program ends, because the pipe has no end of file.
    thread::spawn(move || {
        BufReader::new(reader)
            .lines()
            .map_while(Result::ok)
            .try_for_each(|l| sender.send(l))
    });
    expect_service(&mut running, "iperf3");

    let counted = iter::from_fn(|| lines.recv_timeout(TIMEOUT).ok())
        .find(|line| line.contains("\"dropped\""));
    let counted: Value =
        serde_json::from_str(&counted.expect("a line about the others")).expect("JSON");
    assert!(counted["lines"].as_u64() >= Some(3), "{counted}");
}

fn server(words: &[&str], port: u16) -> Command {
    let mut command = Command::new(ours().path());
    command
        .args(words)
        .arg(port.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn full_disk() -> File {
    File::options()
        .write(true)
        .open("/dev/full")
        .expect("part of every Linux")
}

/// A pipe that takes nothing more (pipe(7): 64 KiB unless changed).
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    writer
        .write_all(&vec![b'\n'; 64 * 1024])
        .expect("an empty pipe has room");
    (reader, writer)
}

/// Starts a server that writes to the streams of its command.
fn start(command: Command, port: u16) -> Server {
    let mut process = Process::start_uncaptured(command);
    process.wait_until_up(|| listens(port));
    Server { port, process }
}

/// A stock client's test succeeds, and the server is there afterwards.
fn expect_service(server: &mut Server, dialect: &str) {
    let client = if dialect == "iperf2" {
        Iperf2::Original.client(server.port, "-n 64K")
    } else {
        server.client(original(), "127.0.0.1", &["-t", "1", "-b", "2M"])
    };
    client.finish().expect_clean();
    assert!(!server.process.has_ended(), "the server ended");
}
