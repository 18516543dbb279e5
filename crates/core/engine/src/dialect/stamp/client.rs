//! The session sender: packets on a schedule, and the answers to them.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_model::spec::BindSpec;
pub use linerate_stamp::wire::PORT;
use linerate_stamp::wire::sender::Sender;
pub use linerate_stamp::wire::sender::{Answer, Losses, Probe, losses};
pub use linerate_stamp::wire::timestamp::{ErrorEstimate, TimeFormat};
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::poll::{self, Interest};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{OsError, sockopt, udp};

use super::clock_error::clock_error;
use crate::dialect::native::client::bind;
use crate::interrupts::Interrupts;
use crate::random::Sequence;

/// Time between two packets: 50 of them a second are 35 kbit/s.
const PERIOD: Duration = Duration::from_millis(20);
/// Time to live of packets (RFC 5357 section 4.1.2): what is left of it shows the hops.
const TTL: u8 = 255;
/// Longest wait for the last answers.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Bytes of an answer that are read; extensions of others are ignored.
const ANSWER_LEN_MAX: usize = 128;

/// Packets of a session and the answers to them.
#[derive(Debug)]
pub struct Measured {
    /// In the order in which they left.
    pub probes: Vec<Probe>,
    /// Error of this host's clock.
    pub error: ErrorEstimate,
    /// A host answered that the port is closed.
    pub is_refused: bool,
    /// A signal ended the session.
    pub is_interrupted: bool,
}

/// Sends packets to the reflector at `remote` for this time, and follows the answers.
///
/// # Errors
/// This host has no socket for it, or no route.
pub fn measure(
    remote: SocketAddr,
    from: &BindSpec,
    dscp: u8,
    duration: Duration,
    interrupts: &dyn Interrupts,
) -> Result<Measured, OsError> {
    let fd = socket::open(&remote, Protocol::Udp)?;
    bind(&fd, from, &remote)?;
    sockopt::set_tos(&fd, dscp << 2)?;
    sockopt::set_ttl(&fd, TTL)?;
    // Without a stamp an answer has the time when it was read.
    let _ = sockopt::SO_TIMESTAMPNS.set(&fd, true);
    socket::connect(&fd, &remote)?;

    let mut session = Session {
        fd,
        // An identifier is not 0 (RFC 8972 section 3).
        sender: Sender::new(Sequence::seeded().next() as u16 | 1, clock_error()),
        offset: RealtimeOffset::read(),
        answered: 0,
        is_refused: false,
    };
    let is_interrupted = session.run(duration, interrupts)?;
    Ok(Measured {
        probes: session.sender.probes().to_vec(),
        error: session.sender.error(),
        is_refused: session.is_refused,
        is_interrupted,
    })
}

struct Session {
    fd: OwnedFd,
    sender: Sender,
    /// Times of one session have one offset, even if the clock is set meanwhile.
    offset: RealtimeOffset,
    answered: usize,
    is_refused: bool,
}

impl Session {
    /// True if a signal ended it.
    fn run(&mut self, duration: Duration, interrupts: &dyn Interrupts) -> Result<bool, OsError> {
        let count = (clock::as_ns(duration) / clock::as_ns(PERIOD)) as usize;
        let mut next_ns = clock::monotonic_ns();

        loop {
            let now_ns = clock::monotonic_ns();
            let is_sending = self.sender.probes().len() < count;
            if is_sending && now_ns >= next_ns {
                self.send();
                // A thread that is late sends no burst.
                next_ns = next_ns.saturating_add(clock::as_ns(PERIOD)).max(now_ns);
                continue;
            }

            let until_ns = if is_sending {
                next_ns
            } else {
                next_ns.saturating_add(clock::as_ns(ANSWER_MAX))
            };
            let is_complete = self.answered == self.sender.probes().len();
            if !is_sending && (is_complete || now_ns >= until_ns) {
                return Ok(false);
            }

            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns));
            let fds = [self.fd.as_fd(), interrupts.fd()].map(|fd| (fd, Interest::READ));
            let [is_ready, is_interrupted] =
                poll::wait_fds(fds, Some(left)).map_err(|error| OsError::new("wait", "", error))?;
            if is_interrupted && interrupts.take().is_some() {
                return Ok(true);
            }
            if is_ready {
                self.receive();
            }
        }
    }

    fn send(&mut self) {
        let now_ns = self.offset.unix_ns(clock::monotonic_ns());
        // A packet that the kernel refuses is a lost one.
        let sent = udp::send(&self.fd, &self.sender.next_packet(now_ns));
        self.is_refused |= sent.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    }

    fn receive(&mut self) {
        let mut buffer = [0; ANSWER_LEN_MAX];
        loop {
            match udp::recv_message(&self.fd, &mut buffer) {
                Ok(message) => {
                    let read_ns = clock::monotonic_ns();
                    let received_ns = self
                        .offset
                        .unix_ns(message.arrival_ns(self.offset, read_ns));
                    let answered = self.sender.receive(message.data, received_ns);
                    self.answered += usize::from(answered.is_some());
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.is_refused = true;
                }
                Err(_) => return,
            }
        }
    }
}
