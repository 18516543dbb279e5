//! Probes over new connections: a TCP handshake, a TLS handshake and an echo, each one round trip.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use linerate_model::path::{ConcurrentProbes, ProbeSample};
use linerate_native::wire::stream_head::{ANSWER_LEN, StreamHead, StreamKind};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{clock, socket};
use linerate_trust::{ClientConfig, ClientSession};

use super::plan::{ConnectionPlan, ProbeResults, sample};
use crate::dialect::native::client::is_refusal;
use crate::dialect::native::probe_budget::{CONNECTIONS, ProbeBudget};
use crate::tls_stream::TlsStream;
use crate::wait::if_ready;

/// Connections that are open.
pub(super) struct Connections {
    plan: ConnectionPlan,
    open: BTreeMap<u64, Connection>,
    next_ns: u64,
    started: u64,
}

struct Connection {
    fd: OwnedFd,
    token: [u8; 16],
    /// Absent until it is connected.
    tls: Option<Box<TlsStream>>,
    /// When its step began: the TCP handshake, the TLS handshake or the echo.
    since_ns: u64,
}

/// A step that takes longer is lost.
const STEP_TIMEOUT_NS: u64 = 5_000_000_000;
/// Connections that may be open; the server counts as many.
const OPEN_MAX: usize = 32;
/// The message that is echoed.
const ECHO: [u8; 16] = *b"linerate echo 16";

impl Connections {
    pub(super) fn new(plan: ConnectionPlan, now_ns: u64) -> Self {
        Self {
            plan,
            open: BTreeMap::new(),
            next_ns: now_ns,
            started: 0,
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
        results: &mut ProbeResults,
    ) {
        self.open.retain(|_, connection| {
            let is_late = connection.since_ns + STEP_TIMEOUT_NS <= now_ns;
            if is_late {
                let samples = connection.samples(&mut results.connections);
                samples.push(sample(connection.since_ns, None));
            }
            !is_late
        });

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
        if let Ok(fd) = self.plan.target.connect()
            && epoll.add(&fd, token, Interest::WRITE).is_ok()
        {
            self.open.insert(
                token,
                Connection {
                    fd,
                    token: secret,
                    tls: None,
                    since_ns,
                },
            );
        }
    }

    /// A socket is ready.
    pub(super) fn on_ready(&mut self, token: u64, epoll: &Epoll, results: &mut ProbeResults) {
        let Some(connection) = self.open.get_mut(&token) else {
            return;
        };
        let was_connecting = connection.tls.is_none();
        let is_echo = connection.is_echo();
        let since_ns = connection.since_ns;
        let samples = connection.samples(&mut results.connections);

        let is_over = match connection.advance(&self.plan.tls) {
            Ok(None) => false,
            Ok(Some(now_ns)) => {
                samples.push(sample(since_ns, Some(now_ns)));
                connection.since_ns = now_ns;
                if was_connecting {
                    // A connected socket is always writable; level-triggered it would wake without
                    // end.
                    let _ = epoll.modify(&connection.fd, token, Interest::READ);
                }
                is_echo
            }
            Err(error) => {
                samples.push(sample(since_ns, None));
                let is_handshake = !was_connecting && !is_echo;
                results.refused += u64::from(is_handshake && is_refusal(&error));
                true
            }
        };
        if is_over {
            self.open.remove(&token);
        }
    }
}

impl Connection {
    fn is_echo(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|stream| !stream.is_handshaking())
    }

    /// Round trips of the same step.
    fn samples<'a>(&self, all: &'a mut ConcurrentProbes) -> &'a mut Vec<ProbeSample> {
        match self.tls {
            None => &mut all.tcp,
            Some(_) if self.is_echo() => &mut all.echo,
            Some(_) => &mut all.tls,
        }
    }

    /// Continues the step; returns when it was complete.
    fn advance(&mut self, config: &ClientConfig) -> io::Result<Option<u64>> {
        let now_ns = clock::monotonic_ns();
        let is_echo = self.is_echo();
        let Some(stream) = &mut self.tls else {
            socket::take_error(&self.fd)?;
            self.tls = Some(start_tls(&self.fd, self.token, config)?);
            return Ok(Some(now_ns));
        };

        let echo = stream.receive(&self.fd)?;
        if is_echo {
            return Ok((!echo.is_empty()).then_some(now_ns));
        }
        if stream.is_handshaking() {
            return Ok(None);
        }

        // Read again: the computation of the keys belongs to the handshake, and the echo starts
        // after it.
        let now_ns = clock::monotonic_ns();
        stream.send(&self.fd, &ECHO)?;
        Ok(Some(now_ns))
    }
}

/// The TCP handshake is complete: head and ClientHello leave in one write.
fn start_tls(fd: &OwnedFd, token: [u8; 16], tls: &ClientConfig) -> io::Result<Box<TlsStream>> {
    let mut stream = TlsStream::client(ClientSession::new(tls));
    let head = StreamHead {
        kind: StreamKind::Probe,
        flags: 0,
        stream: 0,
        token,
        sent_ns: clock::monotonic_ns(),
    };
    stream.send_before(&head.encode());
    stream.skip_before(ANSWER_LEN);

    if_ready(stream.flush(fd))?;
    Ok(Box::new(stream))
}
