//! Events and actions of the machines: a connection or a flow, at either end.

use linerate_model::{Failure, TestSpec};

use super::ack::{ClockCheck, ServerAck};
use super::report::FinalReport;
use super::server::AcceptedTest;

/// Event on this end. A machine ignores those that concern it in no phase.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// All that was to be sent is sent, or the time has elapsed. A server has sent its last
    /// datagram as well.
    SendingDone {
        /// Number of the first datagram that marks the end of a client's flow.
        next_number: i64,
    },
    /// A datagram with a positive number has arrived; the caller has counted it.
    DataArrived,
    /// A datagram of this length in bytes arrived while nothing is counted.
    DatagramArrived(usize),
    /// The peer's last datagram has arrived; this is what was counted. Its repetitions come the
    /// same way.
    LastArrived(Box<FinalReport>),
    /// The test is ended now, or the server is to end; the report is about what has happened.
    Interrupted,
    /// Something failed.
    Failed(Failure),
}

/// Action for the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A test of a client begins.
    Accepted(Box<AcceptedTest>),
    /// Send these bytes or this datagram; they are no payload.
    Send(Vec<u8>),
    /// Send these bytes; they are part of the amount.
    SendPayload(Vec<u8>),
    /// Send data; the first datagram of a client has number 1 and at least
    /// [`Header::datagram_len_min`](super::Header::datagram_len_min) bytes.
    StartSending,
    /// Further input is data, of a flow the first datagram included.
    StartReceiving {
        /// Length of the header the server sent before its data; it is counted as received.
        header_bytes: usize,
    },
    /// Further input is requests for a [`Responder`](super::bounceback::Responder); these bytes of
    /// the first one have been taken already.
    StartBouncing {
        /// The head of the first request.
        received: Vec<u8>,
    },
    /// Open a connection or flow to the client's address, and only to it.
    ConnectBack {
        /// Port on the client's address.
        port: u16,
        /// Data to send on a connection; those of a flow follow from its test.
        spec: Option<Box<TestSpec>>,
    },
    /// Nothing more is sent; close this direction (`shutdown(2)`).
    FinishSending,
    /// The client has finished: close the report.
    StopReceiving,
    /// The server identified itself.
    ServerAck(ServerAck),
    /// The offset of the two clocks by the server's times.
    ClockCheck(ClockCheck),
    /// Counters of the server.
    Report(Box<FinalReport>),
    /// The server sent no report.
    NoReport,
    /// The client never fell silent, so its report may not have arrived.
    ReportUnconfirmed,
    /// The connection or flow has ended; always the last action.
    Close(Result<(), Failure>),
}

/// What all machines have: a deadline, actions, and a last one, after which a field has this value.
macro_rules! machine {
    ($machine:ident, $field:ident = $closed:expr) => {
        impl $machine {
            /// When [`Self::handle_timeout`] wants to be called.
            pub fn poll_timeout(&self) -> Option<Instant> {
                self.deadline
            }

            /// The next thing to do.
            pub fn poll_action(&mut self) -> Option<Action> {
                self.actions.pop_front()
            }

            fn close(&mut self, outcome: Result<(), Failure>) {
                self.push(Action::Close(outcome));
                self.$field = $closed;
                self.deadline = None;
            }

            fn push(&mut self, action: Action) {
                self.actions.push_back(action);
            }
        }
    };
}

pub(super) use machine;
