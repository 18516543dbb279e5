//! A pending connection: accepted, cookie not yet read.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_iperf2::opening::{OPENING_LEN, Opening, recognise};
use linerate_iperf3::{COOKIE_WIRE_LEN, Cookie};
use linerate_sys::stream_io;

use super::context::HANDSHAKE_TIMEOUT;

/// Collects the 37 bytes that every connection starts with.
#[derive(Debug)]
pub(super) struct PendingConnection {
    fd: OwnedFd,
    peer: SocketAddr,
    cookie: [u8; COOKIE_WIRE_LEN],
    got: usize,
    /// It may be a client of another dialect; its first bytes decide.
    may_differ: bool,
    deadline: Instant,
}

/// What a read brought.
#[derive(Debug)]
pub(super) enum Progress {
    More,
    Cookie(Cookie),
    /// The beginning of a test without a control connection.
    Other([u8; OPENING_LEN]),
    Gone,
}

/// Time for the whole cookie; progress does not extend it.
const TIMEOUT: Duration = HANDSHAKE_TIMEOUT;

impl PendingConnection {
    pub(super) fn new(fd: OwnedFd, peer: SocketAddr, may_differ: bool) -> Self {
        Self {
            fd,
            peer,
            cookie: [0; COOKIE_WIRE_LEN],
            got: 0,
            may_differ,
            deadline: Instant::now() + TIMEOUT,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Reads what has arrived, and not a byte beyond the cookie: the rest is for the session.
    pub(super) fn read(&mut self) -> Progress {
        // Behind an opening of another dialect data may follow.
        let end = if self.may_differ { OPENING_LEN } else { COOKIE_WIRE_LEN };
        match stream_io::recv(self.fd.as_fd(), &mut self.cookie[self.got..end]) {
            Ok(0) => Progress::Gone,
            Ok(n) => {
                self.got += n;
                if self.may_differ && self.got == OPENING_LEN {
                    self.may_differ = false;
                    if let Some(opening) = iperf2_opening(&self.cookie) {
                        return Progress::Other(opening);
                    }
                    return self.read();
                }
                if self.got == COOKIE_WIRE_LEN {
                    Progress::Cookie(Cookie::parse(&self.cookie))
                } else {
                    Progress::More
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Progress::More,
            Err(_) => Progress::Gone,
        }
    }

    pub(super) fn into_parts(self) -> (OwnedFd, SocketAddr) {
        (self.fd, self.peer)
    }
}

/// The first bytes, if no cookie begins with them: cookies have neither digits below 2 nor bytes beyond ASCII.
fn iperf2_opening(bytes: &[u8; COOKIE_WIRE_LEN]) -> Option<[u8; OPENING_LEN]> {
    let opening: [u8; OPENING_LEN] = *bytes.first_chunk()?;
    match recognise(&opening) {
        Opening::Header | Opening::BounceBack | Opening::Legacy | Opening::Data => Some(opening),
        Opening::NeedMore | Opening::Foreign => None,
    }
}
