//! Opens the streams of a load: a connection, a head with a token, and the server's answer.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::path::{PathDirection, PhaseTransport};
use linerate_native::wire::stream_head::{
    ANSWER_LEN, FLAG_DOWN, StreamAnswer, StreamHead, StreamKind,
};
use linerate_sys::poll::{self, Interest};
use linerate_sys::socket::{self, Connect, Protocol};
use linerate_sys::{clock, sockopt, stream_io};
use linerate_trust::{ClientConfig, ClientSession};

use super::bind;
use super::prober::ProbeTarget;
use crate::dialect::native::load::{EchoSamples, EchoSchedule, LoadStream, Wire};
use crate::dialect::native::tls_stream::TlsStream;

/// Parameters that the streams of a phase share.
#[derive(Clone)]
pub(super) struct StreamPlan {
    pub(super) target: ProbeTarget,
    pub(super) transport: PhaseTransport,
    pub(super) tls: ClientConfig,
    /// Congestion control; absent for the default.
    pub(super) congestion: Option<String>,
    /// Echoes within the streams; absent where they have none.
    pub(super) echoes: Option<Arc<EchoSamples>>,
}

/// A stream that is to be opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) number: u16,
    pub(super) direction: PathDirection,
    pub(super) token: [u8; 16],
}

/// Longest time for connection and answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of a stream, and the stream or why there is none.
pub(super) type Opened = (u16, io::Result<LoadStream>);

/// Opens streams beside a load that runs, in a thread of its own; the receiver gets each one.
pub(super) fn open_in_background(
    plan: &StreamPlan,
    wanted: Vec<Wanted>,
) -> io::Result<Receiver<Opened>> {
    let (sender, receiver) = mpsc::channel();
    let plan = plan.clone();
    thread::Builder::new()
        .name("native-streams".into())
        .spawn(move || {
            for stream in wanted {
                // Without a receiver the phase has ended.
                if sender.send((stream.number, open(&plan, stream))).is_err() {
                    return;
                }
            }
        })?;

    Ok(receiver)
}

/// Opens one stream.
///
/// # Errors
/// Those of the system; `ConnectionReset` or `ConnectionAborted` where the server does not accept
/// its token.
pub(super) fn open(plan: &StreamPlan, wanted: Wanted) -> io::Result<LoadStream> {
    let end = Instant::now() + OPEN_TIMEOUT;
    let fd = connect(plan, end)?;

    let flags = if wanted.direction == PathDirection::Down {
        FLAG_DOWN
    } else {
        0
    };
    let sent_ns = clock::monotonic_ns();

    let head = StreamHead {
        kind: StreamKind::Load,
        flags,
        stream: wanted.number,
        token: wanted.token,
        sent_ns,
    };
    let wire = match plan.transport {
        PhaseTransport::Tls => {
            let mut stream = TlsStream::client(ClientSession::new(&plan.tls));
            stream.send_before(&head.encode());
            stream.flush(fd.as_fd())?;
            Wire::Tls(Box::new(stream))
        }
        _ => {
            stream_io::send(&fd, &head.encode())?;
            Wire::Plain
        }
    };

    // Ends of a load handshake when it begins: the answer is all that comes before.
    read_answer(&fd, end)?;
    let echo = plan
        .echoes
        .as_ref()
        .map(|echoes| EchoSchedule::new(Arc::clone(echoes), clock::monotonic_ns()));
    Ok(LoadStream {
        fd,
        number: wanted.number,
        direction: wanted.direction,
        wire,
        echo,
    })
}

fn connect(plan: &StreamPlan, end: Instant) -> io::Result<OwnedFd> {
    let ProbeTarget {
        remote,
        bind: from,
        dscp,
    } = &plan.target;
    let protocol = if plan.transport == PhaseTransport::Mptcp {
        Protocol::Mptcp
    } else {
        Protocol::Tcp
    };
    let fd = socket::open(remote, protocol).map_err(io::Error::other)?;
    bind(fd.as_fd(), from, remote).map_err(io::Error::other)?;

    let _ = sockopt::TCP_NODELAY.set(&fd, true);
    if *dscp != 0 {
        let _ = sockopt::set_tos(&fd, dscp << 2);
    }

    if let Some(name) = &plan.congestion {
        // Here it also decides whether the kernel paces; what is refused, the load notes when it
        // prepares its senders.
        let _ = sockopt::set_congestion(&fd, name);
    }

    match socket::connect(&fd, remote).map_err(io::Error::other)? {
        Connect::Done => {}
        Connect::InProgress => {
            wait(&fd, Interest::WRITE, end)?;
            socket::take_error(&fd).map_err(io::Error::other)?;
        }
    }

    Ok(fd)
}

fn read_answer(fd: &OwnedFd, end: Instant) -> io::Result<()> {
    let mut answer = [0; ANSWER_LEN];
    let mut read = 0;
    while read < ANSWER_LEN {
        match stream_io::recv(fd, answer.get_mut(read..).unwrap_or_default()) {
            Ok(0) => return Err(ErrorKind::ConnectionReset.into()),
            Ok(len) => read += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(fd, Interest::READ, end)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }

    let accepted = StreamAnswer::decode(&answer).is_some_and(|answer| answer.status == 0);
    if accepted {
        Ok(())
    } else {
        Err(ErrorKind::ConnectionAborted.into())
    }
}

fn wait(fd: &OwnedFd, interest: Interest, end: Instant) -> io::Result<()> {
    match poll::wait_fd(
        fd,
        interest,
        Some(end.saturating_duration_since(Instant::now())),
    )? {
        true => Ok(()),
        false => Err(ErrorKind::TimedOut.into()),
    }
}
