//! Opens the streams of a load: a connection, a head with a token, and the server's answer.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_model::path::{PathDirection, PhaseTransport};
use linerate_native::wire::stream_head::{
    ANSWER_LEN, FLAG_DOWN, StreamAnswer, StreamHead, StreamKind,
};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{clock, sockopt, stream_io};
use linerate_trust::{ClientConfig, ClientSession};

use super::prober::ProbeTarget;
use crate::dialect::native::load::{EchoSamples, EchoSchedule, LoadStream};
use crate::layer::Layer;
use crate::tls_stream::TlsStream;
use crate::wait::if_ready;

/// Parameters that the streams of a phase share.
pub(super) struct StreamPlan {
    pub target: ProbeTarget,
    pub transport: PhaseTransport,
    pub tls: ClientConfig,
    /// Congestion control; absent for the default.
    pub congestion: Option<String>,
    /// Echoes within the streams; absent where they have none.
    pub echoes: Option<Arc<EchoSamples>>,
}

/// A stream that is to be opened.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub number: u16,
    pub direction: PathDirection,
    pub token: [u8; 16],
}

/// A stream that the server has not answered yet.
pub(super) struct OpeningStream {
    fd: OwnedFd,
    pub wanted: Wanted,
    /// Until then it is connected and answered.
    end: Instant,
    /// Absent until it is connected.
    layer: Option<Layer>,
    answer: Vec<u8>,
}

/// Longest time for connection and answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

impl OpeningStream {
    /// Begins to connect; the event loop has the stream's number for it.
    pub(super) fn begin(plan: &StreamPlan, wanted: Wanted, epoll: &Epoll) -> io::Result<Self> {
        let protocol = match plan.transport {
            PhaseTransport::Mptcp => Protocol::Mptcp,
            _ => Protocol::Tcp,
        };
        let fd = plan.target.socket(protocol)?;
        if let Some(name) = &plan.congestion {
            // Here it also decides whether the kernel paces; what is refused, the load notes when
            // it prepares its senders.
            let _ = sockopt::set_congestion(&fd, name);
        }

        socket::connect(&fd, &plan.target.remote)?;
        epoll.add(&fd, u64::from(wanted.number), Interest::WRITE)?;
        Ok(Self {
            fd,
            wanted,
            end: Instant::now() + OPEN_TIMEOUT,
            layer: None,
            answer: Vec::with_capacity(ANSWER_LEN),
        })
    }

    /// Continues where it is ready; true once the server has accepted it.
    ///
    /// # Errors
    /// Those of the system; `ConnectionReset` or `ConnectionAborted` where the server does not
    /// accept its token.
    pub(super) fn advance(
        &mut self,
        plan: &StreamPlan,
        is_ready: bool,
        epoll: &Epoll,
    ) -> io::Result<bool> {
        if !is_ready {
            return if Instant::now() < self.end {
                Ok(false)
            } else {
                Err(ErrorKind::TimedOut.into())
            };
        }

        if self.layer.is_none() {
            socket::take_error(&self.fd)?;
            self.layer = Some(self.send_head(plan)?);
            epoll.modify(&self.fd, u64::from(self.wanted.number), Interest::READ)?;
        }

        // Ends of a load handshake when it begins: the answer is all that comes before.
        let mut bytes = [0; ANSWER_LEN];
        let missing = bytes.get_mut(self.answer.len()..).unwrap_or_default();
        match if_ready(stream_io::recv(&self.fd, missing))? {
            Some(0) => return Err(ErrorKind::ConnectionReset.into()),
            Some(len) => self.answer.extend(missing.iter().take(len)),
            None => {}
        }

        match self.answer.first_chunk() {
            Some(answer) if StreamAnswer::decode(answer).is_some_and(|a| a.status == 0) => {
                epoll.remove(&self.fd)?;
                Ok(true)
            }
            Some(_) => Err(ErrorKind::ConnectionAborted.into()),
            None => Ok(false),
        }
    }

    fn send_head(&self, plan: &StreamPlan) -> io::Result<Layer> {
        let head = StreamHead {
            kind: StreamKind::Load,
            flags: match self.wanted.direction {
                PathDirection::Down => FLAG_DOWN,
                PathDirection::Up => 0,
            },
            stream: self.wanted.number,
            token: self.wanted.token,
            sent_ns: clock::monotonic_ns(),
        };
        if plan.transport != PhaseTransport::Tls {
            stream_io::send(&self.fd, &head.encode())?;
            return Ok(Layer::plain());
        }

        let mut stream = TlsStream::client(ClientSession::new(&plan.tls));
        stream.send_before(&head.encode());
        stream.flush(&self.fd)?;
        Ok(Layer::Tls(Box::new(stream)))
    }

    /// The stream, once it is accepted.
    pub(super) fn into_stream(self, plan: &StreamPlan) -> LoadStream {
        let echoes = plan.echoes.as_ref();
        LoadStream {
            fd: self.fd,
            number: self.wanted.number,
            direction: self.wanted.direction,
            layer: self.layer.unwrap_or_else(Layer::plain),
            echo: echoes.map(|echoes| EchoSchedule::new(Arc::clone(echoes), clock::monotonic_ns())),
        }
    }
}
