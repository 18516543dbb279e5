//! Probes over new connections: a TCP handshake, a TLS handshake and an echo, each one round trip.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_model::path::{ConcurrentProbes, ProbeSample};
use linerate_native::wire::stream_head::{ANSWER_LEN, StreamHead, StreamKind};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{clock, sockopt};
use linerate_trust::{ClientConfig, ClientSession};

use super::plan::ConnectionPlan;
use super::target::ProbeTarget;
use crate::dialect::native::client::{bind, is_refusal};
use crate::dialect::native::probe_budget::{CONNECTIONS, ProbeBudget};
use crate::dialect::native::tls_stream::TlsStream;

/// Connections that are open, and samples that are new.
pub(super) struct Connections {
    plan: ConnectionPlan,
    open: BTreeMap<u64, Connection>,
    next_ns: u64,
    started: u64,
    refused: u64,
    samples: ConcurrentProbes,
}

struct Connection {
    fd: OwnedFd,
    token: [u8; 16],
    step: Step,
    /// When the step began.
    since_ns: u64,
}

enum Step {
    Connecting,
    Handshaking(Box<TlsStream>),
    Echoing(Box<TlsStream>),
}

/// Next step.
enum Next {
    /// It is not complete.
    Same(Step),
    Then(Step),
    Over,
}

/// Which round trip a step is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Tcp,
    Tls,
    Echo,
}

/// Result of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    Sampled,
}

/// A step that takes longer is lost.
const STEP_TIMEOUT_NS: u64 = 5_000_000_000;
/// Connections that may be open; the server counts as many.
const OPEN_MAX: usize = 32;
/// The message that is echoed.
const ECHO: [u8; 16] = *b"linerate echo 16";

impl Connections {
    pub(super) fn new(plan: ConnectionPlan, now_ns: u64) -> Self {
        let (open, samples) = (BTreeMap::new(), ConcurrentProbes::default());
        Self {
            plan,
            open,
            next_ns: now_ns,
            started: 0,
            refused: 0,
            samples,
        }
    }

    /// When [`Self::on_time`] is due.
    pub(super) fn deadline_ns(&self) -> u64 {
        let oldest = self
            .open
            .values()
            .map(|connection| connection.since_ns + STEP_TIMEOUT_NS)
            .min();
        let next = (!self.plan.tokens.is_empty()).then_some(self.next_ns);
        oldest.into_iter().chain(next).min().unwrap_or(u64::MAX)
    }

    /// Opens a connection that is due, and gives up those that take too long.
    pub(super) fn on_time(
        &mut self,
        now_ns: u64,
        epoll: &Epoll,
        first_token: u64,
        budget: &ProbeBudget,
    ) {
        let late: Vec<u64> = {
            let is_late = |connection: &Connection| connection.since_ns + STEP_TIMEOUT_NS <= now_ns;
            self.open
                .iter()
                .filter(|(_, connection)| is_late(connection))
                .map(|(token, _)| *token)
                .collect()
        };
        for token in late {
            if let Some(connection) = self.open.remove(&token) {
                connection
                    .step
                    .kind()
                    .push(&mut self.samples, connection.since_ns, None);
            }
        }

        if self.next_ns > now_ns {
            return;
        }

        // Not before now: a thread that was late makes up for no probes, which would arrive as a
        // burst.
        self.next_ns =
            now_ns.max(self.next_ns + budget.period_ns(self.plan.period_ns, CONNECTIONS, 1));
        // Left out and not queued: on a path that answers nothing each probe would keep a
        // descriptor for 5 s.
        if self.open.len() >= OPEN_MAX {
            return;
        }

        let Some(secret) = self.plan.tokens.pop() else {
            return;
        };
        let token = first_token + self.started;
        self.started += 1;

        let since_ns = clock::monotonic_ns();
        if let Ok(fd) = open(&self.plan.target)
            && epoll.add(fd.as_fd(), token, Interest::WRITE).is_ok()
        {
            self.open.insert(
                token,
                Connection {
                    fd,
                    token: secret,
                    step: Step::Connecting,
                    since_ns,
                },
            );
        }
    }

    /// A socket is ready.
    pub(super) fn on_ready(&mut self, token: u64, epoll: &Epoll) -> Progress {
        let Some(connection) = self.open.remove(&token) else {
            return Progress::Nothing;
        };
        let (since_ns, was_connecting) = (
            connection.since_ns,
            matches!(connection.step, Step::Connecting),
        );

        match connection.advance(&self.plan.tls, &mut self.samples, &mut self.refused) {
            Some(connection) => {
                if was_connecting {
                    // A connected socket is always writable; level-triggered it would wake without
                    // end.
                    let _ = epoll.modify(connection.fd.as_fd(), token, Interest::READ);
                }

                let progress = if connection.since_ns == since_ns {
                    Progress::Nothing
                } else {
                    Progress::Sampled
                };
                self.open.insert(token, connection);
                progress
            }
            None => Progress::Sampled,
        }
    }

    /// Connections that the server closed instead of a handshake.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Moves new samples to the results.
    pub(super) fn take_samples(&mut self, results: &mut ConcurrentProbes) {
        results.tcp.append(&mut self.samples.tcp);
        results.tls.append(&mut self.samples.tls);
        results.echo.append(&mut self.samples.echo);
    }
}

impl Connection {
    /// Takes the next step; `None` when the probe has ended.
    fn advance(
        self,
        tls: &ClientConfig,
        samples: &mut ConcurrentProbes,
        refused: &mut u64,
    ) -> Option<Self> {
        let Self {
            fd,
            token,
            step,
            since_ns,
        } = self;
        let kind = step.kind();
        let mut now_ns = clock::monotonic_ns();

        let next = match step {
            Step::Connecting => start_tls(fd.as_fd(), token, tls)
                .map(|stream| Next::Then(Step::Handshaking(stream))),
            Step::Handshaking(mut stream) => stream.receive(fd.as_fd()).and_then(|_| {
                if stream.is_handshaking() {
                    return Ok(Next::Same(Step::Handshaking(stream)));
                }

                // Read again: the computation of the keys belongs to the handshake, and the echo
                // starts after it.
                now_ns = clock::monotonic_ns();
                stream.send(fd.as_fd(), &ECHO)?;
                Ok(Next::Then(Step::Echoing(stream)))
            }),
            Step::Echoing(mut stream) => {
                stream
                    .receive(fd.as_fd())
                    .map(|echo| match echo.is_empty() {
                        true => Next::Same(Step::Echoing(stream)),
                        false => Next::Over,
                    })
            }
        };
        match next {
            Ok(Next::Same(step)) => Some(Self {
                fd,
                token,
                step,
                since_ns,
            }),
            Ok(Next::Then(step)) => {
                kind.push(samples, since_ns, Some(now_ns));
                Some(Self {
                    fd,
                    token,
                    step,
                    since_ns: now_ns,
                })
            }
            Ok(Next::Over) => {
                kind.push(samples, since_ns, Some(now_ns));
                None
            }
            Err(error) => {
                *refused += u64::from(matches!(kind, Kind::Tls) && is_refusal(&error));
                kind.push(samples, since_ns, None);
                None
            }
        }
    }
}

impl Step {
    fn kind(&self) -> Kind {
        match self {
            Self::Connecting => Kind::Tcp,
            Self::Handshaking(_) => Kind::Tls,
            Self::Echoing(_) => Kind::Echo,
        }
    }
}

impl Kind {
    /// Adds a round trip; one that was not completed is lost.
    fn push(self, samples: &mut ConcurrentProbes, sent_ns: u64, received_ns: Option<u64>) {
        let of_kind = match self {
            Self::Tcp => &mut samples.tcp,
            Self::Tls => &mut samples.tls,
            Self::Echo => &mut samples.echo,
        };
        of_kind.push(ProbeSample {
            sent_ns,
            peer_received_ns: None,
            peer_sent_ns: None,
            received_ns,
        });
    }
}

/// The TCP handshake is complete: head and ClientHello leave in one write.
fn start_tls(
    fd: BorrowedFd<'_>,
    token: [u8; 16],
    tls: &ClientConfig,
) -> io::Result<Box<TlsStream>> {
    socket::take_error(fd).map_err(io::Error::other)?;
    let mut stream = TlsStream::client(ClientSession::new(tls));
    let sent_ns = clock::monotonic_ns();

    let head = StreamHead {
        kind: StreamKind::Probe,
        flags: 0,
        stream: 0,
        token,
        sent_ns,
    };
    stream.send_before(&head.encode());
    stream.skip_before(ANSWER_LEN);

    match stream.flush(fd) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Ok(Box::new(stream)),
    }
}

/// Begins to connect. The connection is reset when it is closed, so that it leaves no port behind
/// in TIME_WAIT.
fn open(target: &ProbeTarget) -> io::Result<OwnedFd> {
    let fd = socket::open(&target.remote, Protocol::Tcp).map_err(io::Error::other)?;
    bind(fd.as_fd(), &target.bind, &target.remote).map_err(io::Error::other)?;
    let _ = sockopt::set_reset_on_close(&fd);
    let _ = sockopt::TCP_NODELAY.set(&fd, true);

    if target.dscp != 0 {
        let _ = sockopt::set_tos(&fd, target.dscp << 2);
    }

    socket::connect(&fd, &target.remote).map_err(io::Error::other)?;
    Ok(fd)
}
