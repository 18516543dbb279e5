//! `linerate try`: the main job on one machine, over the loopback interface.

use std::io::{self, Write};
use std::time::Duration;

use linerate_engine::client;
use linerate_model::event::Endpoint;
use linerate_model::sharing::AccessRules;
use linerate_model::spec::{ClientSpec, LocalOptions};
use linerate_model::{Direction, EndCondition, Failure, FailureKind, TestSpec, Transport};
use linerate_report::Output;
use linerate_report::iperf3::{self, Options};
use linerate_sys::signal::{Signal, Signals};

use crate::cli::iperf3::version;
use crate::exit_code::ExitCode;
use crate::run::embedded::Embedded;

const LOOPBACK: &str = "127.0.0.1";
/// Long enough for a row per second, short enough to watch.
const SECONDS: u64 = 2;
/// Rate of the UDP tests: high enough to mean something, low enough for any machine.
const UDP_RATE_BPS: u64 = 1_000_000_000;
/// Datagram that fits an Ethernet frame.
const UDP_BLOCK_LEN_BYTES: u32 = 1448;

/// Tests this machine against itself: TCP and UDP, both directions.
pub(crate) fn run() -> ExitCode {
    match try_all() {
        Ok(()) => ExitCode::Done,
        Err(failure) if failure.kind == FailureKind::Interrupted => ExitCode::Interrupted,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "linerate: error - {failure}");
            ExitCode::NotCompleted
        }
    }
}

fn try_all() -> Result<(), Failure> {
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]).map_err(|e| failed(&e))?;
    let server = Embedded::start(Some(LOOPBACK.to_owned()), 0, AccessRules::default())?;
    let outcome = run_tests(server.port(), &signals);
    outcome.and(server.stop())
}

fn run_tests(port: u16, signals: &Signals) -> Result<(), Failure> {
    let tests = [
        ("TCP, this machine to itself", Transport::Tcp, Direction::Forward),
        ("TCP, the other direction", Transport::Tcp, Direction::Reverse),
        ("UDP at 1 Gbit/s", Transport::Udp, Direction::Forward),
        (
            "UDP at 1 Gbit/s, the other direction",
            Transport::Udp,
            Direction::Reverse,
        ),
    ];
    for (title, transport, direction) in tests {
        writeln!(io::stdout(), "\n== {title} ==").map_err(|e| failed(&e))?;
        let mut sink = iperf3::client_sink(options(Endpoint::Client), Output::standard());
        client::run(&client_spec(port, transport, direction), &mut *sink, signals)?;
    }
    Ok(())
}

fn client_spec(port: u16, transport: Transport, direction: Direction) -> ClientSpec {
    let mut test = TestSpec {
        transport,
        direction,
        end: EndCondition::Duration(Duration::from_secs(SECONDS)),
        ..TestSpec::default()
    };
    if transport == Transport::Udp {
        test.block_len_bytes = UDP_BLOCK_LEN_BYTES;
        test.block_len_explicit = true;
        test.pacing.rate_bps = Some(UDP_RATE_BPS);
    }
    let local = LocalOptions {
        port,
        ..LocalOptions::default()
    };
    let host = LOOPBACK.to_owned();
    ClientSpec {
        host,
        local,
        test,
        connect_timeout: None,
        server_cpu: None,
        credentials: None,
    }
}

fn options(endpoint: Endpoint) -> Options {
    Options::new(endpoint, version::program_version(), version::system_line())
}

fn failed(error: &impl std::fmt::Display) -> Failure {
    Failure {
        kind: FailureKind::Error,
        message: error.to_string(),
        code: None,
    }
}
