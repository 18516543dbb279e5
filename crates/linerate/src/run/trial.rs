//! `linerate try`: the main job on one machine, over the loopback interface.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use linerate_engine::{StopHandle, client, server};
use linerate_model::event::Endpoint;
use linerate_model::sharing::Sharing;
use linerate_model::spec::{BindSpec, ClientSpec, LocalOptions, ServerSpec};
use linerate_model::{
    Direction, EndCondition, Event, EventSink, Failure, FailureKind, ServerReporter, SinkError, TestSpec, Transport,
};
use linerate_report::Output;
use linerate_report::iperf3::{self, Options};
use linerate_sys::signal::{Signal, Signals};

use crate::cli::iperf3::version;
use crate::exit_code::ExitCode;

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
    let stop = StopHandle::new().map_err(|e| failed(&e))?;
    let (ready, port) = mpsc::channel();
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(ready, &stop));
        // Without a port the server has ended and tells why.
        let outcome = match port.recv() {
            Ok(port) => run_tests(port, &signals),
            Err(mpsc::RecvError) => Ok(()),
        };
        stop.stop();
        let served = server.join().unwrap_or(Ok(()));
        outcome.and(served)
    })
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

/// The embedded server. It reports nothing but its port: the client's report has both ends' numbers.
fn serve(ready: mpsc::Sender<u16>, stop: &StopHandle) -> Result<(), Failure> {
    let bind = BindSpec {
        host: Some(LOOPBACK.to_owned()),
        ..BindSpec::default()
    };
    let spec = ServerSpec {
        local: LocalOptions {
            port: 0,
            bind,
            ..LocalOptions::default()
        },
        one_off: false,
        idle_timeout: None,
        bitrate_limit: None,
        max_duration: None,
        auth: None,
        mptcp: false,
        sharing: Sharing::default(),
    };
    match server::run(&spec, &mut PortReporter { ready }, stop) {
        Err(failure) if failure.kind == FailureKind::Interrupted => Ok(()),
        outcome => outcome,
    }
}

/// Passes the server's port to whoever waits for it.
struct PortReporter {
    ready: mpsc::Sender<u16>,
}

impl ServerReporter for PortReporter {
    fn listening(&mut self, port: u16, _: u32) -> Result<(), SinkError> {
        // The receiver listens only for the first.
        let _ = self.ready.send(port);
        Ok(())
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(Silent))
    }

    fn warning(&mut self, _: &str) {}
}

struct Silent;

impl EventSink for Silent {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        Ok(())
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
