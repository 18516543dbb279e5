//! Opening the data streams of a client, one after the other.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_iperf3::wire::{Cookie, ErrorCode, udp_header};
use linerate_model::path::absent;
use linerate_model::spec::ClientSpec;
use linerate_model::workload::Start;
use linerate_model::{Event, Failure, StreamId, Transport};
use linerate_sys::error::io_text;
use linerate_sys::poll::Interest;
use linerate_sys::{clock, socket, sockopt, stream_io, udp};

use super::connect::{self, Handshake};
use crate::data::run::TestRun;
use crate::data::socket as data_socket;
use crate::dialect::iperf3::error::failed;
use crate::dialect::iperf3::role_of;
use crate::interrupts::Interrupts;
use crate::reporter::Reporter;
use crate::wait::{self, WaitError};

/// Parameters of opening a stream.
pub(super) struct Context<'a, 'c> {
    pub spec: &'c ClientSpec,
    pub cookie: Cookie,
    /// The control connection: data goes to the same address.
    pub control: BorrowedFd<'c>,
    pub interrupts: &'a dyn Interrupts,
}

/// Longest wait for a data connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest wait for the answer to a UDP hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Time after which a hello, or its answer, is taken for lost and the hello is repeated; doubled
/// with each repetition. A stock server that got the first hello takes the second for data, so this
/// is longer than the round trip of any usual path.
const HELLO_REPEAT: Duration = Duration::from_secs(1);
/// The number that iperf3 gives a failed `sctp_bindx(3)`; it has no text.
const SCTP_BINDX: i32 = 139;
/// A stock server closes its UDP port between two tests and two streams. A hello that is refused is
/// repeated for this long.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause before a refused hello is repeated.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause before the last stream: servers wait 5 s for it, and hold a turn of UDP streams
/// for 2 s.
const HOLD_MAX: Duration = Duration::from_millis(1_500);
/// Pause before the only second attempt at a data connection: a stock server re-opens its listener
/// for some options.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// Opens all streams of the test and adds them to the run. `handshakes` are those of the test so
/// far.
///
/// The server starts the test when the last stream is open, so a start at a later time is a pause
/// before that one.
pub(super) fn open_all(
    context: &Context<'_, '_>,
    run: &mut TestRun,
    handshakes: &mut Vec<Handshake>,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    let remote = socket::peer_addr(context.control).map_err(failed(ErrorCode::StreamConnect))?;
    let total = context.spec.test.total_streams();
    for index in 0..total {
        if index + 1 == total {
            context.hold(handshakes)?;
        }

        let (role, flow) = role_of(&context.spec.test, index, true);
        let opened = context.open(index, remote, reporter)?;
        let stream =
            data_socket::describe(&opened.fd, StreamId(index), &context.spec.test, role, flow)
                .map_err(failed(ErrorCode::InitStream))?;
        reporter.emit(&Event::StreamOpened(stream.clone()));
        run.add(stream, opened.fd, opened.peer_coalesces);
        handshakes.extend(opened.handshake);
    }

    Ok(())
}

/// A stream that stands.
struct Opened {
    fd: OwnedFd,
    /// The server takes large bursts of datagrams.
    peer_coalesces: bool,
    handshake: Option<Handshake>,
}

/// Why a UDP stream did not come about.
enum HelloError {
    /// No socket is bound to the port of the server.
    Refused(Failure),
    Failed(Failure),
}

impl HelloError {
    fn of(code: ErrorCode, error: &std::io::Error) -> Self {
        let failure = code.failure(Some(&io_text(error)));
        if error.kind() == ErrorKind::ConnectionRefused {
            Self::Refused(failure)
        } else {
            Self::Failed(failure)
        }
    }
}

impl Context<'_, '_> {
    fn open(
        &self,
        index: u32,
        remote: SocketAddr,
        reporter: &mut Reporter<'_>,
    ) -> Result<Opened, Failure> {
        if self.spec.test.transport == Transport::Udp {
            return self.open_datagram(index, remote, reporter);
        }

        let first = self.connect_stream(index, remote, reporter)?;
        let connected = match first {
            Err(refused) if refused.is_refused() => {
                self.pause(REOPEN_PAUSE)?;
                self.connect_stream(index, remote, reporter)?
            }
            other => other,
        };
        let (fd, handshake) =
            connected.map_err(|e| connect::wait_failure(e, ErrorCode::StreamConnect))?;
        let is_tcp = self.spec.test.transport == Transport::Tcp;

        Ok(Opened {
            fd: self.introduce(fd)?,
            peer_coalesces: false,
            handshake: is_tcp.then_some(handshake),
        })
    }

    fn prepare(
        &self,
        index: u32,
        remote: SocketAddr,
        reporter: &mut Reporter<'_>,
    ) -> Result<OwnedFd, Failure> {
        let spec = &self.spec.test;
        let fd = socket::open(&remote, data_socket::protocol(spec))
            .map_err(failed(ErrorCode::StreamConnect))?;

        let port = self
            .spec
            .local
            .bind
            .client_port
            // As iperf3's `--cport`: the streams take consecutive ports.
            .map(|p| p.wrapping_add(index as u16));
        connect::bind(&fd, &self.spec.local.bind, port, &remote)?;

        if spec.transport == Transport::Sctp {
            self.prepare_sctp(&fd, remote)?;
        }

        // Before connect(2): the window scale is fixed in the SYN (RFC 7323 section 2.3), so a
        // later buffer size could not raise it.
        data_socket::tune(&fd, spec, self.spec.local.snd_timeout, reporter)?;
        // The kernel paces for good what has been connected with an algorithm that asks for it,
        // such as BBR.
        data_socket::set_congestion(&fd, spec)?;

        if let Some(label) = spec.socket.flow_label {
            let SocketAddr::V6(remote) = remote else {
                return Err(ErrorCode::SetFlow.failure(None));
            };
            // The kernel sends only labels that the socket has leased (ipv6(7),
            // `IPV6_FLOWLABEL_MGR`).
            sockopt::lease_flow_label(&fd, &remote, label).map_err(failed(ErrorCode::SetFlow))?;
        }

        Ok(fd)
    }

    fn prepare_sctp(&self, fd: impl AsFd, remote: SocketAddr) -> Result<(), Failure> {
        let tuning = &self.spec.test.socket;
        if let Some(streams) = tuning.sctp_streams {
            sockopt::set_sctp_init_streams(&fd, streams)
                .map_err(failed(ErrorCode::SetSctpNStreams))?;
        }

        let family = socket::Family::of(&remote);
        for name in &tuning.sctp_bind {
            let fail = |cause: String| ErrorCode::Unknown(SCTP_BINDX).failure(Some(&cause));
            let addresses =
                socket::resolve(name, 0, Some(family)).map_err(|e| fail(e.to_string()))?;
            sockopt::sctp_bindx(&fd, &addresses).map_err(|e| fail(e.text()))?;
        }

        Ok(())
    }

    fn connect_stream(
        &self,
        index: u32,
        remote: SocketAddr,
        reporter: &mut Reporter<'_>,
    ) -> Result<Result<(OwnedFd, Handshake), WaitError>, Failure> {
        let fd = self.prepare(index, remote, reporter)?;
        let labelled = labelled(remote, self.spec.test.socket.flow_label);
        let sent_ns = clock::monotonic_ns();

        let connected = wait::connect(&fd, &labelled, Some(CONNECT_TIMEOUT), self.interrupts);
        Ok(connected.map(|()| {
            (
                fd,
                Handshake {
                    sent_ns,
                    established_ns: clock::monotonic_ns(),
                },
            )
        }))
    }

    /// The cookie identifies the client of this stream. It fits the empty send buffer of a new
    /// connection.
    fn introduce(&self, fd: OwnedFd) -> Result<OwnedFd, Failure> {
        let cookie = self.cookie.wire();
        match stream_io::send(&fd, &cookie) {
            Ok(n) if n == cookie.len() => {}
            Ok(_) => return Err(ErrorCode::SendCookie.failure(None)),
            Err(e) => return Err(ErrorCode::SendCookie.failure(Some(&io_text(&e)))),
        }
        Ok(fd)
    }

    fn open_datagram(
        &self,
        index: u32,
        remote: SocketAddr,
        reporter: &mut Reporter<'_>,
    ) -> Result<Opened, Failure> {
        let fd = self.prepare(index, remote, reporter)?;
        let labelled = labelled(remote, self.spec.test.socket.flow_label);
        socket::connect(&fd, &labelled).map_err(failed(ErrorCode::StreamConnect))?;

        let deadline = Instant::now() + REOPEN_TIMEOUT;
        let peer_coalesces = loop {
            match self.send_hello(&fd) {
                // A hello that was refused has reached no server, so it may be repeated.
                Err(HelloError::Refused(_)) if Instant::now() < deadline => {
                    self.pause(REFUSED_PAUSE)?;
                }
                Err(HelloError::Refused(failure) | HelloError::Failed(failure)) => {
                    return Err(failure);
                }
                Ok(peer_coalesces) => break peer_coalesces,
            }
        };
        Ok(Opened {
            fd,
            peer_coalesces,
            handshake: None,
        })
    }

    /// Sends the hello and waits for its answer.
    fn send_hello(&self, fd: impl AsFd) -> Result<bool, HelloError> {
        udp::send(&fd, &udp_header::HELLO)
            .map_err(|e| HelloError::of(ErrorCode::StreamWrite, &e))?;
        self.await_reply(&fd)
    }

    /// Waits for the server's answer; true when the server coalesces. In reverse tests the first
    /// data may overtake the answer.
    fn await_reply(&self, fd: impl AsFd) -> Result<bool, HelloError> {
        const OVERTAKING_MAX: u32 = 64;

        let sent = Instant::now();
        let explained_after = self.spec.local.udp_answer_timeout;
        let longest = explained_after.unwrap_or(HELLO_TIMEOUT);
        let deadline = sent + longest.min(self.spec.local.snd_timeout.unwrap_or(longest));
        let mut repeat_after = HELLO_REPEAT;
        let read_failed = |e: &std::io::Error| HelloError::of(ErrorCode::StreamRead, e);
        let mut datagram = [0; 64];

        let mut strangers = 0;
        while strangers < OVERTAKING_MAX {
            match udp::recv(&fd, &mut datagram) {
                Ok(n) => match &datagram[..n.min(datagram.len())] {
                    plain if udp_header::is_reply(plain) => return Ok(false),
                    coalescing if udp_header::is_coalescing_reply(coalescing) => return Ok(true),
                    // Data of a reverse test that overtook the answer; bounded, in case the answer
                    // was lost.
                    _ => strangers += 1,
                },
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    let now = Instant::now();
                    if now >= deadline && explained_after.is_some() {
                        return Err(HelloError::Failed(
                            ErrorCode::StreamRead.failure(Some(absent::UDP_BLOCKED)),
                        ));
                    }
                    if now >= deadline {
                        return Err(read_failed(&e));
                    }

                    // Hello or answer may be lost: a stock server that missed the hello waits for
                    // it.
                    if now >= sent + repeat_after {
                        udp::send(&fd, &udp_header::HELLO)
                            .map_err(|e| HelloError::of(ErrorCode::StreamWrite, &e))?;
                        repeat_after *= 2;
                    }

                    let left = deadline
                        .min(sent + repeat_after)
                        .saturating_duration_since(now);
                    match wait::wait(&fd, Interest::READ, Some(left), self.interrupts) {
                        // A time-out is the receive error of the next turn.
                        Ok(()) | Err(WaitError::Os(_)) => {}
                        Err(interrupted) => {
                            return Err(HelloError::Failed(connect::wait_failure(
                                interrupted,
                                ErrorCode::StreamRead,
                            )));
                        }
                    }
                }
                Err(e) => return Err(read_failed(&e)),
            }
        }

        Err(HelloError::Failed(ErrorCode::StreamRead.failure(None)))
    }

    /// Waits for the start of the test on the monotonic clock, less the two round trips from the
    /// last stream to the data.
    fn hold(&self, handshakes: &[Handshake]) -> Result<(), Failure> {
        let Start::AtMonotonic(start) = self.spec.test.workload.start else {
            return Ok(());
        };
        // The smallest one: a handshake that was delayed says nothing about the path.
        let round_trips = handshakes
            .iter()
            .map(|known| known.established_ns.saturating_sub(known.sent_ns));
        let rtt_ns = round_trips.min().unwrap_or(0);
        let until_ns = clock::as_ns(start).saturating_sub(rtt_ns.saturating_mul(2));
        let pause = wait::time_until(until_ns);
        if pause.is_zero() {
            Ok(())
        } else {
            self.pause(pause.min(HOLD_MAX))
        }
    }

    fn pause(&self, time: Duration) -> Result<(), Failure> {
        wait::pause(time, self.interrupts).map_err(|signal_text| {
            connect::wait_failure(
                WaitError::Interrupted(signal_text),
                ErrorCode::StreamConnect,
            )
        })
    }
}

/// The remote address with the flow label that the socket has leased.
fn labelled(remote: SocketAddr, label: Option<u32>) -> SocketAddr {
    match (remote, label) {
        (SocketAddr::V6(v6), Some(label)) => sockopt::with_flow_label(v6, label).into(),
        (other, _) => other,
    }
}
