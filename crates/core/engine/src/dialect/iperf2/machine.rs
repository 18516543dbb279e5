//! The four protocol machines behind one face: a TCP connection or a UDP flow, at either end.

use std::time::Instant;

use linerate_iperf2::wire::ack::{ClockCheck, ServerAck};
use linerate_iperf2::wire::client::{
    FlowClientAction, FlowClientInput, FlowClientSetup, StreamClientAction, StreamClientInput,
    StreamClientSetup,
};
use linerate_iperf2::wire::server::{
    AcceptedTest, ConnectBack, FlowServerAction, FlowServerInput, StreamServerAction,
    StreamServerInput,
};
use linerate_iperf2::wire::{
    FinalReport, FlowClient, FlowServer, Header, StreamClient, StreamServer, Timestamp,
};
use linerate_model::{Failure, TestSpec, Transport};
use linerate_sys::clock;

use crate::error::failure;

/// One connection or flow.
pub(super) enum Machine {
    StreamClient(StreamClient),
    StreamServer(Box<StreamServer>),
    FlowClient(FlowClient),
    FlowServer(FlowServer),
}

/// Action of the machine.
pub(super) enum Action {
    /// The client's test is known.
    Accepted(Box<AcceptedTest>),
    /// Send these bytes or this datagram.
    Send(Vec<u8>),
    /// Send these bytes; they are part of the payload.
    SendPayload(Vec<u8>),
    StartSending,
    /// Bytes of the data that have been taken already.
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
    /// Counts of the server.
    Report(Box<FinalReport>),
    /// The server sent no report.
    NoReport,
    /// The report may not have arrived.
    Unconfirmed,
    Close(Result<(), Failure>),
}

/// Who reads what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// A worker, or none.
    None,
    /// The control thread, at most this number of bytes.
    Bytes(usize),
    /// The control thread, datagram by datagram.
    Datagrams,
}

/// This end's wall clock as it travels.
pub(super) fn wall() -> Timestamp {
    Timestamp::from_unix_ns(clock::unix_ns())
}

impl Machine {
    /// The end that opens a connection or flow.
    pub(super) fn client(test: &TestSpec, header: Option<Header>, wants_report: bool) -> Self {
        let (now, time_limit) = (Instant::now(), test.end.duration());
        if test.transport != Transport::Udp {
            return Self::StreamClient(StreamClient::new(
                now,
                StreamClientSetup { header, time_limit },
            ));
        }

        let datagram_bytes = test.block_len_bytes as usize;
        let setup = FlowClientSetup {
            header,
            datagram_bytes,
            time_limit,
            wants_report,
        };
        Self::FlowClient(FlowClient::new(now, wall(), setup))
    }

    pub(super) fn next(&mut self) -> Option<Action> {
        Some(match self {
            Self::StreamClient(machine) => match machine.poll_action()? {
                StreamClientAction::Send(bytes) => Action::SendPayload(bytes),
                StreamClientAction::ServerAck(ack) => Action::ServerAck(ack),
                StreamClientAction::ClockCheck(check) => Action::ClockCheck(check),
                StreamClientAction::StartSending => Action::StartSending,
                StreamClientAction::StartReceiving { header_bytes } => {
                    Action::StartReceiving(header_bytes)
                }
                StreamClientAction::FinishSending => Action::FinishSending,
                StreamClientAction::Close(outcome) => Action::Close(outcome),
            },
            Self::StreamServer(machine) => match machine.poll_action()? {
                StreamServerAction::Accepted(test) => Action::Accepted(test),
                StreamServerAction::Send(bytes) => Action::Send(bytes),
                StreamServerAction::SendHeader(bytes) => Action::SendPayload(bytes),
                StreamServerAction::StartReceiving => Action::StartReceiving(0),
                StreamServerAction::StartSending => Action::StartSending,
                StreamServerAction::StartBouncing { received } => Action::StartBouncing(received),
                StreamServerAction::ConnectBack(back) => Action::ConnectBack(back.port, Some(back)),
                StreamServerAction::FinishSending => Action::FinishSending,
                StreamServerAction::Close(outcome) => Action::Close(outcome),
            },
            Self::FlowClient(machine) => match machine.poll_action()? {
                FlowClientAction::StartSending => Action::StartSending,
                FlowClientAction::StartReceiving => Action::StartReceiving(0),
                FlowClientAction::Send(datagram) => Action::Send(datagram),
                FlowClientAction::Report(report) => Action::Report(report),
                FlowClientAction::NoReport => Action::NoReport,
                FlowClientAction::Close(outcome) => Action::Close(outcome),
            },
            Self::FlowServer(machine) => match machine.poll_action()? {
                FlowServerAction::Accepted(test) => Action::Accepted(test),
                FlowServerAction::StartReceiving => Action::StartReceiving(0),
                FlowServerAction::StartSending => Action::StartSending,
                FlowServerAction::ConnectBack { port } => Action::ConnectBack(port, None),
                FlowServerAction::StopReceiving => Action::StopReceiving,
                FlowServerAction::Send(datagram) => Action::Send(datagram),
                FlowServerAction::ReportUnconfirmed => Action::Unconfirmed,
                FlowServerAction::Close(outcome) => Action::Close(outcome),
            },
        })
    }

    /// Who reads now. What precedes the data is read here, the data by a worker.
    pub(super) fn read_mode(&self) -> ReadMode {
        match self {
            Self::StreamClient(machine) => machine.wanted().map_or(ReadMode::None, ReadMode::Bytes),
            Self::StreamServer(machine) => machine.wanted().map_or(ReadMode::None, ReadMode::Bytes),
            Self::FlowClient(machine) if machine.awaits_report() => ReadMode::Datagrams,
            Self::FlowServer(machine) if machine.only_listens() => ReadMode::Datagrams,
            Self::FlowClient(_) | Self::FlowServer(_) => ReadMode::None,
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
            // Any datagram of a client that only receives proves that it is reachable.
            Self::FlowServer(machine) => {
                machine.handle_local(
                    Instant::now(),
                    FlowServerInput::DatagramArrived(bytes.len()),
                );
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
                machine.handle_local(
                    Instant::now(),
                    FlowServerInput::LastArrived(Box::new(report)),
                );
            }
            _ => self.eof(),
        }
    }

    pub(super) fn data_arrived(&mut self) {
        match self {
            Self::FlowClient(machine) => {
                machine.handle_local(Instant::now(), wall(), FlowClientInput::DataArrived);
            }
            Self::FlowServer(machine) => {
                machine.handle_local(Instant::now(), FlowServerInput::DataArrived);
            }
            Self::StreamClient(_) | Self::StreamServer(_) => {}
        }
    }

    /// All that was to be sent is sent; `datagrams` of it.
    pub(super) fn sending_done(&mut self, datagrams: u64) {
        let now = Instant::now();
        match self {
            Self::StreamClient(machine) => {
                machine.handle_local(now, StreamClientInput::SendingDone);
            }
            Self::StreamServer(machine) => {
                machine.handle_local(now, StreamServerInput::SendingDone);
            }
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
        match self {
            Self::StreamClient(machine) => machine.handle_error(now, cause),
            Self::StreamServer(machine) => machine.handle_error(now, cause),
            Self::FlowClient(machine) => {
                machine.handle_local(now, wall(), FlowClientInput::Failed(failure(cause)));
            }
            Self::FlowServer(machine) => {
                machine.handle_local(now, FlowServerInput::Failed(failure(cause)));
            }
        }
    }

    /// The user or the server ends the test.
    pub(super) fn interrupted(&mut self) {
        let now = Instant::now();
        match self {
            Self::StreamClient(machine) => {
                machine.handle_local(now, StreamClientInput::Interrupted);
            }
            Self::StreamServer(machine) => machine.handle_local(now, StreamServerInput::Terminated),
            Self::FlowClient(machine) => {
                machine.handle_local(now, wall(), FlowClientInput::Interrupted);
            }
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
