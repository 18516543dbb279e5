//! Delay beside a test, in a thread of its own: ICMP echo, or connections to the port of the busy
//! server.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, iter};

use linerate_engine::dialect::native::client::bind;
use linerate_model::path::{ProbeKind, ProbeSample};
use linerate_sys::icmp::EchoSocket;
use linerate_sys::poll::{self, Interest};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{clock, scheduling, sockopt, stream_io};

use crate::spec::{PathTest, SideProbe};

/// Method by which the delay is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// ICMP echo, without and under load.
    Icmp,
    /// Without load the handshakes of the tests; under load those of connections beside the test,
    /// which a busy server of iperf3 refuses.
    Busy,
    /// Without and under load the handshakes of connections to this port of another service.
    Port(u16),
    /// Handshakes of the tests alone.
    Handshakes,
}

/// Between two echo requests, ns: with headers 32 kbit/s.
const ECHO_PERIOD_NS: u64 = 20_000_000;
/// An echo without reply is lost after this time, ns.
const LOST_NS: u64 = 1_000_000_000;
/// Echo requests before ICMP is taken for blocked.
const TRIES: u16 = 3;
/// Between two connections to a busy server, ns: five per second.
const CONNECT_PERIOD_NS: u64 = 200_000_000;
/// No connection begins later than this before the end of the test, ns: the server must refuse it
/// as a busy one.
const CONNECT_MARGIN_NS: u64 = 1_000_000_000;
/// A connection is given up before its first segment is repeated (RFC 6298: after 1 s), ns.
const CONNECT_TIMEOUT_NS: u64 = 900_000_000;
/// Byte that a busy server of iperf3 sends: ACCESS_DENIED.
const REFUSAL: u8 = 0xff;

impl Method {
    /// The method, and why there is no delay under load.
    pub(super) fn choose(test: &PathTest, remote: SocketAddr) -> (Self, Option<String>) {
        // A load that ends by its bytes ends at an unknown moment.
        let busy = || match (test.is_ndt7, test.spec.bytes_max) {
            // A server of ndt7 has many clients, and takes no connection for a test.
            (true, _) => (Self::Port(remote.port()), None),
            (false, Some(_)) => (
                Self::Handshakes,
                Some("--max-bytes may end a load while a connection is under way".to_owned()),
            ),
            (false, None) => (Self::Busy, None),
        };
        match test.side_probe {
            SideProbe::None => (Self::Handshakes, Some("--side-probe none".to_owned())),
            SideProbe::Busy => busy(),
            SideProbe::Tcp(port) => (Self::Port(port), None),
            SideProbe::Icmp | SideProbe::Auto => match is_answered(test, remote) {
                Ok(true) => (Self::Icmp, None),
                // Only a user who demands ICMP needs the reason for which it is not used.
                _ if test.side_probe == SideProbe::Auto => busy(),
                Ok(false) => (
                    Self::Handshakes,
                    Some("no ICMP echo is answered".to_owned()),
                ),
                Err(error) => (
                    Self::Handshakes,
                    Some(format!("ICMP echo (net.ipv4.ping_group_range): {error}")),
                ),
            },
        }
    }

    /// Kind of probe that measures the delay, in reports.
    pub(super) fn kind(self) -> ProbeKind {
        match self {
            Self::Icmp => ProbeKind::Icmp,
            Self::Busy => ProbeKind::Busy,
            Self::Port(_) | Self::Handshakes => ProbeKind::Tcp,
        }
    }

    /// It measures without a test, too.
    pub(super) fn needs_no_test(self) -> bool {
        matches!(self, Self::Icmp | Self::Port(_))
    }
}

/// The thread. It ends when this is dropped.
pub(super) struct SideProber {
    stop: Arc<AtomicBool>,
    samples: Arc<Samples>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Samples(Mutex<Vec<ProbeSample>>);

impl SideProber {
    /// Starts to probe; `end_ns` is the end of the test, monotonic.
    ///
    /// # Errors
    /// When the system has no socket or thread left.
    pub(super) fn start(
        method: Method,
        test: &PathTest,
        remote: SocketAddr,
        end_ns: Option<u64>,
    ) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let samples = Arc::<Samples>::default();
        let stopped = Arc::clone(&stop);
        let shared = Arc::clone(&samples);

        let work: Box<dyn FnOnce() + Send> = match method {
            Method::Handshakes => Box::new(|| {}),
            Method::Icmp => {
                let echo = open_echo(test, remote)?;
                Box::new(move || probe_by_echo(&echo, &stopped, &shared))
            }
            Method::Busy | Method::Port(_) => {
                let wanted = test.target.bind.clone();
                let dscp = test.spec.dscp;
                let prepare = move |fd: BorrowedFd<'_>| {
                    bind(fd, &wanted, &remote).map_err(io::Error::other)?;
                    mark(fd, dscp);
                    Ok(())
                };

                let (remote, last_ns, refusal_wait_ns) = match method {
                    // Another service sends no refusal, and takes connections without a test as
                    // well.
                    Method::Port(port) => (SocketAddr::new(remote.ip(), port), u64::MAX, 0),
                    _ => (
                        remote,
                        end_ns.unwrap_or(0).saturating_sub(CONNECT_MARGIN_NS),
                        CONNECT_TIMEOUT_NS,
                    ),
                };
                Box::new(move || {
                    probe_by_connections(
                        remote,
                        &prepare,
                        last_ns,
                        refusal_wait_ns,
                        &stopped,
                        &shared,
                    );
                })
            }
        };
        let thread = thread::Builder::new()
            .name("side-prober".into())
            .spawn(work)?;
        Ok(Self {
            stop,
            samples,
            thread: Some(thread),
        })
    }

    /// Newest round trip in ns.
    pub(super) fn newest_rtt_ns(&self) -> Option<i64> {
        self.samples
            .with(|samples| samples.iter().rev().find_map(ProbeSample::rtt_ns))
    }

    /// Sends no further probe, waits for what is outstanding, and returns all round trips.
    pub(super) fn finish(mut self) -> Vec<ProbeSample> {
        self.end();
        self.samples.with(std::mem::take)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has no result.
            let _ = thread.join();
        }
    }
}

impl Drop for SideProber {
    fn drop(&mut self) {
        self.end();
    }
}

impl Samples {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<ProbeSample>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A probe left; its reply is missing.
    fn sent(&self, sent_ns: u64) {
        self.with(|samples| {
            samples.push(ProbeSample {
                sent_ns,
                peer_received_ns: None,
                peer_sent_ns: None,
                received_ns: None,
            });
        });
    }

    /// A reply to the newest probe whose number ends in `sequence`.
    fn answered(&self, sequence: u16, received_ns: u64) {
        self.with(|samples| {
            let Some(newest) = samples.len().checked_sub(1) else {
                return;
            };
            // An echo reply bears 16 bits (RFC 792): the distance to the newest probe is modulo
            // 65,536.
            let age = (newest as u16).wrapping_sub(sequence);
            let index = newest.checked_sub(usize::from(age));
            if let Some(sample) = index.and_then(|index| samples.get_mut(index)) {
                sample.received_ns.get_or_insert(received_ns);
            }
        });
    }

    /// A probe of this time can still be answered.
    fn is_outstanding(&self, now_ns: u64) -> bool {
        self.with(|samples| {
            let mut recent = samples
                .iter()
                .rev()
                .take_while(|sample| now_ns.saturating_sub(sample.sent_ns) < LOST_NS);
            recent.any(|sample| sample.received_ns.is_none())
        })
    }
}

fn open_echo(test: &PathTest, remote: SocketAddr) -> io::Result<EchoSocket> {
    let echo = EchoSocket::open(remote.ip()).map_err(io::Error::other)?;
    bind(echo.as_fd(), &test.target.bind, &remote).map_err(io::Error::other)?;
    mark(echo.as_fd(), test.spec.dscp);
    Ok(echo)
}

/// Probes bear the DSCP of the load. Where the kernel refuses, they go without it.
fn mark(fd: BorrowedFd<'_>, dscp: u8) {
    if dscp != 0 {
        let _ = sockopt::set_tos(fd, dscp << 2);
    }
}

/// The kernel allows ICMP echo, and the server answers.
fn is_answered(test: &PathTest, remote: SocketAddr) -> io::Result<bool> {
    let echo = open_echo(test, remote)?;
    for sequence in 0..TRIES {
        echo.send(sequence)?;
        let timeout = Duration::from_nanos(LOST_NS / u64::from(TRIES));
        if poll::wait_fd(&echo, Interest::READ, Some(timeout))?
            && matches!(echo.receive(), Ok(Some(_)))
        {
            return Ok(true);
        }
    }

    Ok(false)
}

fn probe_by_echo(echo: &EchoSocket, stop: &AtomicBool, samples: &Samples) {
    // Without the favour probes wait behind the workers of a load, and would measure this host.
    let _ = scheduling::wake_soon();
    let _ = clock::set_timer_slack_ns(1);
    let mut next_ns = clock::monotonic_ns();
    let mut number: u16 = 0;

    loop {
        let now_ns = clock::monotonic_ns();
        let is_stopping = stop.load(Ordering::Acquire);
        if is_stopping && !samples.is_outstanding(now_ns) {
            return;
        }

        if !is_stopping && now_ns >= next_ns {
            // A late probe moves the schedule: probes that catch up would leave as a burst.
            next_ns = now_ns + ECHO_PERIOD_NS;
            samples.sent(now_ns);
            // A request that does not leave is a probe without reply.
            let _ = echo.send(number);
            number = number.wrapping_add(1);
        }

        let timeout = Duration::from_nanos(next_ns.saturating_sub(now_ns).clamp(1, ECHO_PERIOD_NS));
        // An interrupted wait is repeated.
        let _ = poll::wait_fd(echo, Interest::READ, Some(timeout));
        let received_ns = clock::monotonic_ns();

        // Errors that ICMP messages report are those of single probes.
        for sequence in iter::from_fn(|| echo.receive().ok().flatten()) {
            samples.answered(sequence, received_ns);
        }
    }
}

/// Probes until `last_ns`, monotonic, or until it is stopped; waits so long for a refusal at first.
fn probe_by_connections(
    remote: SocketAddr,
    prepare: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>,
    last_ns: u64,
    mut refusal_wait_ns: u64,
    stop: &AtomicBool,
    samples: &Samples,
) {
    let _ = scheduling::wake_soon();
    let mut next_ns = clock::monotonic_ns();
    while !stop.load(Ordering::Acquire) && next_ns < last_ns {
        let now_ns = clock::monotonic_ns();
        if now_ns < next_ns {
            thread::sleep(Duration::from_nanos((next_ns - now_ns).min(ECHO_PERIOD_NS)));
            continue;
        }

        next_ns = now_ns + CONNECT_PERIOD_NS;
        match probe_by_connection(remote, prepare, refusal_wait_ns, samples) {
            Ok(Answer::Refusal | Answer::Late) => {}
            // One that serves many clients waits for the cookie; a connection less is the same to
            // it.
            Ok(Answer::Nothing) => refusal_wait_ns = 0,
            // Not what a server of iperf3 does: further connections could harm it.
            Ok(Answer::Other) | Err(_) => return,
        }
    }
}

/// Outcome of a connection beside a test.
enum Answer {
    /// The server is busy and refuses, as iperf3 does while a test runs.
    Refusal,
    /// The connection is established, and nothing arrived.
    Nothing,
    /// The connection was not established in time.
    Late,
    Other,
}

/// One connection, which is closed when the answer is there or `refusal_wait_ns` after it is
/// established.
fn probe_by_connection(
    remote: SocketAddr,
    prepare: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>,
    refusal_wait_ns: u64,
    samples: &Samples,
) -> io::Result<Answer> {
    let fd = socket::open(&remote, Protocol::Tcp).map_err(io::Error::other)?;
    prepare(fd.as_fd())?;
    let sent_ns = clock::monotonic_ns();
    let end_ns = sent_ns + CONNECT_TIMEOUT_NS;
    let left_ns = || end_ns.saturating_sub(clock::monotonic_ns());

    socket::connect(&fd, &remote).map_err(io::Error::other)?;
    samples.sent(sent_ns);
    if !poll::wait_fd(&fd, Interest::WRITE, Some(Duration::from_nanos(left_ns())))? {
        return Ok(Answer::Late);
    }

    let established_ns = clock::monotonic_ns();
    socket::take_error(&fd).map_err(io::Error::other)?;
    let number = samples.with(|samples| samples.len().saturating_sub(1));
    samples.answered(number as u16, established_ns);

    if !poll::wait_fd(
        &fd,
        Interest::READ,
        Some(Duration::from_nanos(left_ns().min(refusal_wait_ns))),
    )? {
        return Ok(Answer::Nothing);
    }

    let mut answer = [0; 1];
    let is_refusal = stream_io::recv(&fd, &mut answer)? == 1 && answer == [REFUSAL];
    Ok(if is_refusal {
        Answer::Refusal
    } else {
        Answer::Other
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_find_their_probe_by_the_lower_half_of_its_number() {
        let samples = Samples::default();
        (0..70_000).for_each(|number| samples.sent(number));

        for (sequence, index) in [
            (69_999_u32 as u16, 69_999),
            (65_536_u32 as u16, 65_536),
            (65_535, 65_535),
        ] {
            samples.answered(sequence, 1_000_000);
            assert_eq!(
                samples.with(|all| all[index].received_ns),
                Some(1_000_000),
                "{index}"
            );
        }

        // 4,464 is that of 70,000, which was not sent yet: the one of 4,464 is the newest.
        samples.answered(4_464, 2_000_000);
        assert_eq!(samples.with(|all| all[4_464].received_ns), Some(2_000_000));

        // A second reply changes nothing.
        samples.answered(4_464, 3_000_000);
        assert_eq!(samples.with(|all| all[4_464].received_ns), Some(2_000_000));
    }

    #[test]
    fn probes_are_outstanding_for_a_second() {
        let samples = Samples::default();
        samples.sent(5);
        assert!(samples.is_outstanding(LOST_NS) && !samples.is_outstanding(LOST_NS + 5));
        samples.answered(0, 10);
        assert!(!samples.is_outstanding(11));
    }
}
