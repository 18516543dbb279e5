//! Control connections: lines of the protocol over byte streams, and the child processes at the
//! other end of them.
//!
//! * [`pipe`] reads and writes lines without waiting.
//! * [`Carrier`] is a control path: [`ssh`] and `bus` of a coordinator, [`stdio`] and
//!   `bus` of an agent.
//! * [`children`] starts processes in groups of their own, passes their lines on and ends them.
//!
//! Nothing here reads a message. Nothing waits: owners wait for the descriptors, and call at
//! deadlines.

pub mod bus;
pub mod children;
pub mod pipe;
mod piped_child;
pub mod ssh;
pub mod stdio;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use linerate_sys::clock::monotonic_ns;
use linerate_sys::poll::{Interest, wait_fds};
use linerate_sys::signal::Signals;

/// Lines to and from the peers of an owner: all hosts of a run at a coordinator, the coordinator at
/// an agent. Peers are numbers: places in the list of the owner.
///
/// Nothing waits: the owner waits for [`Self::fd`] until [`Self::deadline_ns`] at most, then calls
/// [`Self::poll`].
pub trait Carrier {
    /// Sends a line to a host, to which its end is added. A host without a connection receives
    /// nothing.
    fn send(&mut self, host: usize, line: &str);

    /// Sends a line to several hosts.
    fn send_all(&mut self, hosts: &[usize], line: &str) {
        hosts.iter().for_each(|host| self.send(*host, line));
    }

    /// Ends the connection of a host. Nothing is reported about it afterwards.
    fn close(&mut self, host: usize);

    /// Readable when [`Self::poll`] has something to do.
    fn fd(&self) -> BorrowedFd<'_>;

    /// When [`Self::poll`] is due without that, in ns of the monotonic clock.
    fn deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Events since the last call, with the host.
    fn poll(&mut self, now_ns: u64) -> Vec<(usize, HostEvent)>;

    /// A connection has not ended yet, closed ones included.
    fn has_open(&self) -> bool;
}

/// Waits for events of a carrier until its deadline, or `until_ns`. True if a signal arrived.
///
/// # Errors
/// The operating system's.
pub(super) fn wait(
    carrier: &dyn Carrier,
    signals: Option<&Signals>,
    until_ns: Option<u64>,
) -> io::Result<bool> {
    let at_ns = carrier.deadline_ns().into_iter().chain(until_ns).min();
    let wait = at_ns.map(|at_ns| Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
    let of_carrier = (carrier.fd(), Interest::READ);

    match signals {
        Some(signals) => {
            let of_signals = (signals.as_fd(), Interest::READ);
            let [_, is_signalled] = wait_fds([of_carrier, of_signals], wait)?;
            // A signal may have been taken by an earlier wait, so readiness alone is no signal.
            Ok(is_signalled && signals.take()?.is_some())
        }
        None => wait_fds([of_carrier], wait).map(|_| false),
    }
}

/// Event on the connection of a host.
#[derive(Debug, PartialEq)]
pub enum HostEvent {
    /// The agent wrote a line.
    Line(Vec<u8>),
    /// The agent wrote a line beyond the bound of the protocol.
    TooLong,
    /// The connection has ended or could not be made; nothing follows.
    Lost {
        /// Why. Untrusted text on one line.
        reason: String,
    },
}
