//! The four protocol machines behind one face: a TCP connection or a UDP flow, at either end.

use std::time::Instant;

use linerate_iperf2::wire::client::{FlowClientSetup, StreamClientSetup};
pub(super) use linerate_iperf2::wire::machine::Action;
use linerate_iperf2::wire::machine::Input;
use linerate_iperf2::wire::{
    FinalReport, FlowClient, FlowServer, Header, StreamClient, StreamServer, Timestamp,
};
use linerate_model::{TestSpec, Transport};
use linerate_sys::clock;

use crate::error::failure;

/// One connection or flow.
pub(super) enum Machine {
    StreamClient(StreamClient),
    StreamServer(Box<StreamServer>),
    FlowClient(FlowClient),
    FlowServer(FlowServer),
}

/// Who reads what arrives.
#[derive(PartialEq, Eq)]
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
        let now = Instant::now();
        let time_limit = test.end.duration();
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
        match self {
            Self::StreamClient(machine) => machine.poll_action(),
            Self::StreamServer(machine) => machine.poll_action(),
            Self::FlowClient(machine) => machine.poll_action(),
            Self::FlowServer(machine) => machine.poll_action(),
        }
    }

    fn handle_local(&mut self, input: Input) {
        let now = Instant::now();
        match self {
            Self::StreamClient(machine) => machine.handle_local(now, input),
            Self::StreamServer(machine) => machine.handle_local(now, input),
            Self::FlowClient(machine) => machine.handle_local(now, wall(), input),
            Self::FlowServer(machine) => machine.handle_local(now, input),
        }
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
                machine.handle_local(Instant::now(), Input::DatagramArrived(bytes.len()));
            }
        }
    }

    /// The peer of a connection sends nothing more.
    pub(super) fn eof(&mut self) {
        match self {
            Self::StreamClient(machine) => machine.handle_eof(Instant::now()),
            Self::StreamServer(machine) => machine.handle_eof(Instant::now()),
            Self::FlowClient(_) | Self::FlowServer(_) => {}
        }
    }

    /// The peer's last datagram has come; this is what was counted.
    pub(super) fn last_arrived(&mut self, report: FinalReport) {
        self.handle_local(Input::LastArrived(Box::new(report)));
    }

    pub(super) fn data_arrived(&mut self) {
        self.handle_local(Input::DataArrived);
    }

    /// All that was to be sent is sent; `datagrams` of it.
    pub(super) fn sending_done(&mut self, datagrams: u64) {
        let next_number = i64::try_from(datagrams.saturating_add(1)).unwrap_or(i64::MAX);
        self.handle_local(Input::SendingDone { next_number });
    }

    /// The socket failed; `cause` is the system's text.
    pub(super) fn failed(&mut self, cause: &str) {
        self.handle_local(Input::Failed(failure(cause)));
    }

    /// The user or the server ends the test.
    pub(super) fn interrupted(&mut self) {
        self.handle_local(Input::Interrupted);
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
