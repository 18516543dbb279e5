//! The four protocol machines behind one face: a TCP connection or a UDP flow, at either end.

use std::time::Instant;

use linerate_iperf2::ack::{ClockCheck, ServerAck};
use linerate_iperf2::client::{FlowClientAction, FlowClientInput, StreamClientAction, StreamClientInput};
use linerate_iperf2::server::{
    AcceptedTest, ConnectBack, FlowServerAction, FlowServerInput, StreamServerAction, StreamServerInput,
};
use linerate_iperf2::{FinalReport, FlowClient, FlowServer, StreamClient, StreamServer, Timestamp};
use linerate_model::{Failure, FailureKind};
use linerate_sys::clock;

/// One connection or flow.
pub(super) enum Dialogue {
    StreamClient(StreamClient),
    StreamServer(Box<StreamServer>),
    FlowClient(FlowClient),
    FlowServer(FlowServer),
}

/// What is to be done.
pub(super) enum Deed {
    /// The client said what it wants.
    Accepted(Box<AcceptedTest>),
    /// Send these bytes or this datagram.
    Send(Vec<u8>),
    /// Send these bytes; they are part of the payload.
    SendPayload(Vec<u8>),
    StartSending,
    /// So many bytes of the data have been taken already.
    StartReceiving(usize),
    /// Requests follow, the first of which began with these bytes.
    StartBouncing(Vec<u8>),
    /// Open a connection or flow to this port of the client.
    ConnectBack(u16, Option<Box<ConnectBack>>),
    /// Close this direction.
    FinishSending,
    StopReceiving,
    ServerAck(ServerAck),
    ClockCheck(ClockCheck),
    /// What the server counted.
    Report(Box<FinalReport>),
    /// The server was asked and did not tell.
    NoReport,
    /// The report may not have arrived.
    Unconfirmed,
    Close(Result<(), Failure>),
}

/// Who reads what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// A worker, or nobody.
    NotHere,
    /// The control thread, at most so many bytes.
    Bytes(usize),
    /// The control thread, datagram by datagram.
    Datagrams,
}

/// This end's wall clock as it travels.
pub(super) fn wall() -> Timestamp {
    Timestamp::from_unix_ns(clock::unix_ns())
}

impl Dialogue {
    pub(super) fn next(&mut self) -> Option<Deed> {
        Some(match self {
            Self::StreamClient(machine) => match machine.poll_action()? {
                StreamClientAction::Send(bytes) => Deed::SendPayload(bytes),
                StreamClientAction::ServerAck(ack) => Deed::ServerAck(ack),
                StreamClientAction::ClockCheck(check) => Deed::ClockCheck(check),
                StreamClientAction::StartSending => Deed::StartSending,
                StreamClientAction::StartReceiving { header_bytes } => Deed::StartReceiving(header_bytes),
                StreamClientAction::FinishSending => Deed::FinishSending,
                StreamClientAction::Close(outcome) => Deed::Close(outcome),
            },
            Self::StreamServer(machine) => match machine.poll_action()? {
                StreamServerAction::Accepted(test) => Deed::Accepted(test),
                StreamServerAction::Send(bytes) => Deed::Send(bytes),
                StreamServerAction::SendHeader(bytes) => Deed::SendPayload(bytes),
                StreamServerAction::StartReceiving => Deed::StartReceiving(0),
                StreamServerAction::StartSending => Deed::StartSending,
                StreamServerAction::StartBouncing { received } => Deed::StartBouncing(received),
                StreamServerAction::ConnectBack(back) => Deed::ConnectBack(back.port, Some(back)),
                StreamServerAction::FinishSending => Deed::FinishSending,
                StreamServerAction::Close(outcome) => Deed::Close(outcome),
            },
            Self::FlowClient(machine) => match machine.poll_action()? {
                FlowClientAction::StartSending => Deed::StartSending,
                FlowClientAction::StartReceiving => Deed::StartReceiving(0),
                FlowClientAction::Send(datagram) => Deed::Send(datagram),
                FlowClientAction::Report(report) => Deed::Report(report),
                FlowClientAction::NoReport => Deed::NoReport,
                FlowClientAction::Close(outcome) => Deed::Close(outcome),
            },
            Self::FlowServer(machine) => match machine.poll_action()? {
                FlowServerAction::Accepted(test) => Deed::Accepted(test),
                FlowServerAction::StartReceiving => Deed::StartReceiving(0),
                FlowServerAction::StartSending => Deed::StartSending,
                FlowServerAction::ConnectBack { port } => Deed::ConnectBack(port, None),
                FlowServerAction::StopReceiving => Deed::StopReceiving,
                FlowServerAction::Send(datagram) => Deed::Send(datagram),
                FlowServerAction::ReportUnconfirmed => Deed::Unconfirmed,
                FlowServerAction::Close(outcome) => Deed::Close(outcome),
            },
        })
    }

    /// Who reads now. What precedes the data is read here, the data by a worker.
    pub(super) fn reads(&self) -> Reads {
        match self {
            Self::StreamClient(machine) => machine.wanted().map_or(Reads::NotHere, Reads::Bytes),
            Self::StreamServer(machine) => machine.wanted().map_or(Reads::NotHere, Reads::Bytes),
            Self::FlowClient(machine) if machine.awaits_report() => Reads::Datagrams,
            Self::FlowServer(machine) if machine.only_listens() => Reads::Datagrams,
            Self::FlowClient(_) | Self::FlowServer(_) => Reads::NotHere,
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        match self {
            Self::StreamClient(machine) => {
                machine.handle_bytes(Instant::now(), wall(), bytes);
            }
            Self::StreamServer(machine) => {
                machine.handle_bytes(wall(), bytes);
            }
            Self::FlowClient(machine) => machine.handle_datagram(Instant::now(), bytes),
            // Whatever a client says while nothing is received from it shows that it is there.
            Self::FlowServer(machine) => {
                machine.handle_local(Instant::now(), FlowServerInput::DatagramArrived(bytes.len()));
            }
        }
    }

    pub(super) fn eof(&mut self) {
        match self {
            Self::StreamClient(machine) => machine.handle_eof(Instant::now()),
            Self::StreamServer(machine) => machine.handle_eof(Instant::now()),
            Self::FlowClient(machine) => {
                machine.handle_local(Instant::now(), wall(), FlowClientInput::LastArrived);
            }
            Self::FlowServer(_) => {}
        }
    }

    /// The client's last datagram has come; this is what was counted.
    pub(super) fn last_arrived(&mut self, report: FinalReport) {
        match self {
            Self::FlowServer(machine) => {
                machine.handle_local(Instant::now(), FlowServerInput::LastArrived(Box::new(report)));
            }
            _ => self.eof(),
        }
    }

    pub(super) fn data_arrived(&mut self) {
        match self {
            Self::FlowClient(machine) => machine.handle_local(Instant::now(), wall(), FlowClientInput::DataArrived),
            Self::FlowServer(machine) => machine.handle_local(Instant::now(), FlowServerInput::DataArrived),
            Self::StreamClient(_) | Self::StreamServer(_) => {}
        }
    }

    /// All that was to be sent is sent; `datagrams` of it.
    pub(super) fn sending_done(&mut self, datagrams: u64) {
        let now = Instant::now();
        match self {
            Self::StreamClient(machine) => machine.handle_local(now, StreamClientInput::SendingDone),
            Self::StreamServer(machine) => machine.handle_local(now, StreamServerInput::SendingDone),
            Self::FlowClient(machine) => {
                let next_number = i64::try_from(datagrams.saturating_add(1)).unwrap_or(i64::MAX);
                machine.handle_local(now, wall(), FlowClientInput::SendingDone { next_number });
            }
            Self::FlowServer(machine) => machine.handle_local(now, FlowServerInput::SendingDone),
        }
    }

    /// The socket failed; `cause` is the system's text.
    pub(super) fn failed(&mut self, cause: &str) {
        let now = Instant::now();
        let failure = || Failure {
            kind: FailureKind::Error,
            message: cause.to_owned(),
            code: None,
        };
        match self {
            Self::StreamClient(machine) => machine.handle_error(now, cause),
            Self::StreamServer(machine) => machine.handle_error(now, cause),
            Self::FlowClient(machine) => machine.handle_local(now, wall(), FlowClientInput::Failed(failure())),
            Self::FlowServer(machine) => machine.handle_local(now, FlowServerInput::Failed(failure())),
        }
    }

    /// Somebody wants this to end.
    pub(super) fn interrupted(&mut self) {
        let now = Instant::now();
        match self {
            Self::StreamClient(machine) => machine.handle_local(now, StreamClientInput::Interrupted),
            Self::StreamServer(machine) => machine.handle_local(now, StreamServerInput::Terminated),
            Self::FlowClient(machine) => machine.handle_local(now, wall(), FlowClientInput::Interrupted),
            Self::FlowServer(machine) => machine.handle_local(now, FlowServerInput::Terminated),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::StreamClient(machine) => machine.poll_timeout(),
            Self::StreamServer(machine) => machine.poll_timeout(),
            Self::FlowClient(machine) => machine.poll_timeout(),
            Self::FlowServer(machine) => machine.poll_timeout(),
        }
    }

    pub(super) fn on_time(&mut self) {
        let now = Instant::now();
        match self {
            Self::StreamClient(machine) => machine.handle_timeout(now),
            Self::StreamServer(machine) => machine.handle_timeout(now),
            Self::FlowClient(machine) => machine.handle_timeout(now, wall()),
            Self::FlowServer(machine) => machine.handle_timeout(now),
        }
    }

    /// The other end has not shown by its data that it is there, and the machine waits for that.
    pub(super) fn awaits_data(&self) -> bool {
        match self {
            Self::FlowClient(machine) => machine.awaits_data(),
            Self::FlowServer(machine) => machine.awaits_proof(),
            Self::StreamClient(_) | Self::StreamServer(_) => false,
        }
    }
}
