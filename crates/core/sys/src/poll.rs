//! Readiness: epoll with nanosecond timeouts, a doorbell, and waiting for one descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libc::{c_int, c_short};

use crate::error::{During, Result};
use crate::syscall::{syscall, syscall_len};

/// Readiness to wait for. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interest {
    /// Wake when a read would not wait.
    pub read: bool,
    /// Wake when a write would not wait.
    pub write: bool,
    /// Wake once per change instead of as long as the state lasts (`EPOLLET`). Ignored by
    /// [`wait_fd`].
    pub edge: bool,
}

impl Interest {
    /// Readable, as long as it lasts.
    pub const READ: Self = Self {
        read: true,
        write: false,
        edge: false,
    };
    /// Writable, as long as it lasts.
    pub const WRITE: Self = Self {
        read: false,
        write: true,
        edge: false,
    };
    /// Both, as long as they last.
    pub const BOTH: Self = Self {
        read: true,
        write: true,
        edge: false,
    };
}

/// A descriptor with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The number it was registered under.
    pub token: u64,
    /// A read would not wait; end of file counts.
    pub readable: bool,
    /// A write would not wait.
    pub writable: bool,
    /// Both directions are closed (`EPOLLHUP`).
    pub hangup: bool,
    /// An error is pending (`EPOLLERR`).
    pub error: bool,
}

/// A set of descriptors to wait for (epoll(7)).
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An empty set (epoll_create1(2)).
    ///
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub fn new() -> Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = syscall(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
            .during("epoll_create1", "")?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Registers a descriptor under `token`. Closing the last copy of the descriptor takes it out
    /// by itself.
    ///
    /// # Errors
    /// The operating system's; `EEXIST` when it is registered already.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
            .during("epoll_ctl add", token)
    }

    /// Changes what a registered descriptor is waited for, and its token.
    ///
    /// # Errors
    /// The operating system's; `ENOENT` when it is not registered.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
            .during("epoll_ctl modify", token)
    }

    /// Takes a descriptor out.
    ///
    /// # Errors
    /// The operating system's; `ENOENT` when it is not registered.
    pub fn remove(&self, fd: impl AsFd) -> Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::default())
            .during("epoll_ctl remove", "")
    }

    fn control(
        &self,
        operation: c_int,
        fd: impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.epoll_events(),
            u64: token,
        };
        let fd = fd.as_fd().as_raw_fd();

        // SAFETY: `event` outlives the call, which only reads it.
        syscall(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &raw mut event) })?;
        Ok(())
    }

    /// Waits until a descriptor is ready or `timeout` passed (`None`: without limit; zero: a poll),
    /// and replaces `events` by what is ready, at most 256 at once. Interrupted by a signal handler
    /// it returns early with nothing.
    ///
    /// The timeout has nanosecond resolution since Linux 5.11 (`epoll_pwait2`); before that it is
    /// rounded up to milliseconds.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait(&self, events: &mut Vec<Ready>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let mut raw = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let count = match self.wait_raw(&mut raw, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        events.extend(raw.iter().take(count).map(Ready::from_epoll));

        Ok(())
    }

    /// What is ready now; nothing when the system does not tell.
    pub fn ready(&self) -> Vec<Ready> {
        let mut events = Vec::new();
        let _ = self.wait(&mut events, Some(Duration::ZERO));
        events
    }

    fn wait_raw(
        &self,
        events: &mut [libc::epoll_event; EVENTS_MAX],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        if FINE_TIMEOUT_MISSING.load(Ordering::Relaxed) {
            return self.wait_ms(events, timeout);
        }

        match self.wait_ns(events, timeout) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                FINE_TIMEOUT_MISSING.store(true, Ordering::Relaxed);
                self.wait_ms(events, timeout)
            }
            other => other,
        }
    }

    fn wait_ns(
        &self,
        events: &mut [libc::epoll_event; EVENTS_MAX],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let timeout = timeout.map(KernelTimespec::from);
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);

        // SAFETY: `events` has room for EVENTS_MAX entries; timeout and signal mask may be null,
        // and a timeout that is not outlives the call.
        let count = syscall(unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS_MAX as c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        })?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    fn wait_ms(
        &self,
        events: &mut [libc::epoll_event; EVENTS_MAX],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let (fd, max) = (self.0.as_raw_fd(), EVENTS_MAX as c_int);
        // SAFETY: `events` has room for EVENTS_MAX entries.
        let count = syscall(unsafe {
            libc::epoll_wait(fd, events.as_mut_ptr(), max, timeout_ms(timeout))
        })?;
        Ok(usize::try_from(count).unwrap_or_default())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A doorbell between threads: what one signals, another one waits for (eventfd(2)).
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// An event descriptor without an event.
    ///
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub fn new() -> Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = syscall(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
            .during("eventfd", "")?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Rings: the descriptor becomes readable and stays so until [`Self::drain`].
    pub fn signal(&self) {
        let one = 1_u64.to_ne_bytes();
        // The only failure an eventfd of our own can have is a full counter, and then it rings
        // already. SAFETY: an eventfd reads eight bytes, which `one` has.
        let _ =
            syscall_len(unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) });
    }

    /// Clears the event; true if there was one.
    pub fn drain(&self) -> bool {
        let mut count = [0_u8; 8];
        // SAFETY: an eventfd writes eight bytes, for which `count` has room.
        syscall_len(unsafe {
            libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len())
        })
        .is_ok()
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits for one descriptor (ppoll(2)); `true` when it is ready or has an error or hang-up, `false`
/// when `timeout` passed or a signal handler ran.
///
/// # Errors
/// The operating system's.
pub fn wait_fd(fd: impl AsFd, interest: Interest, timeout: Option<Duration>) -> io::Result<bool> {
    wait_fds([(fd.as_fd(), interest)], timeout).map(|[is_ready]| is_ready)
}

/// Waits for the first of some descriptors, as [`wait_fd`] does for one, and returns for each
/// whether it is ready.
///
/// # Errors
/// The operating system's.
pub fn wait_fds<const N: usize>(
    fds: [(BorrowedFd<'_>, Interest); N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut polls = fds.map(|(fd, interest)| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: interest.poll_events(),
        revents: 0,
    });
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::c_long::MAX),
        tv_nsec: timeout.subsec_nanos() as _,
    });
    let timeout = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    let count = N as libc::nfds_t;

    // SAFETY: `polls` has `count` elements; timeout and signal mask may be null, and a timeout that
    // is not outlives the call.
    match syscall(unsafe { libc::ppoll(polls.as_mut_ptr(), count, timeout, std::ptr::null()) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        other => other.map(|_| polls.map(|poll| poll.revents != 0)),
    }
}

impl Interest {
    fn epoll_events(self) -> u32 {
        let bit = |on: bool, bit: c_int| if on { bit.cast_unsigned() } else { 0 };
        bit(self.read, libc::EPOLLIN)
            | bit(self.write, libc::EPOLLOUT)
            | bit(self.edge, libc::EPOLLET)
    }

    fn poll_events(self) -> c_short {
        let bit = |on: bool, bit: c_short| if on { bit } else { 0 };
        bit(self.read, libc::POLLIN) | bit(self.write, libc::POLLOUT)
    }
}

impl Ready {
    fn from_epoll(event: &libc::epoll_event) -> Self {
        // The structure is packed: fields are copied, not borrowed.
        let (events, token) = (event.events, event.u64);
        let has = |bit: c_int| events & bit.cast_unsigned() != 0;
        Self {
            token,
            readable: has(libc::EPOLLIN),
            writable: has(libc::EPOLLOUT),
            hangup: has(libc::EPOLLHUP),
            error: has(libc::EPOLLERR),
        }
    }
}

/// `struct __kernel_timespec`, 64 bits on every architecture.
#[repr(C)]
struct KernelTimespec {
    seconds: i64,
    nanoseconds: i64,
}

impl From<Duration> for KernelTimespec {
    fn from(duration: Duration) -> Self {
        Self {
            seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: duration.subsec_nanos().into(),
        }
    }
}

/// Milliseconds for `epoll_wait`, rounded up: waking before the deadline would make the caller
/// spin.
fn timeout_ms(timeout: Option<Duration>) -> c_int {
    timeout.map_or(-1, |timeout| {
        c_int::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    })
}

/// Events taken per call; more wait for the next one.
const EVENTS_MAX: usize = 256;

/// Set once the kernel has answered that it does not know `epoll_pwait2`.
static FINE_TIMEOUT_MISSING: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_up_and_saturate() {
        for (timeout, expected) in [
            (None, -1),
            (Some(Duration::ZERO), 0),
            (Some(Duration::from_nanos(1)), 1),
            (Some(Duration::from_millis(1)), 1),
            (Some(Duration::from_nanos(1_000_001)), 2),
            (Some(Duration::MAX), c_int::MAX),
        ] {
            assert_eq!(timeout_ms(timeout), expected, "{timeout:?}");
        }
    }

    /// The way old kernels go gives the same answers.
    #[test]
    fn the_coarse_wait_reports_readiness_and_keeps_to_its_timeout() {
        let (epoll, event) = (
            Epoll::new().expect("epoll"),
            EventFd::new().expect("eventfd"),
        );
        epoll.add(&event, 7, Interest::READ).expect("add");
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let before = crate::clock::monotonic_ns();

        assert_eq!(
            epoll
                .wait_ms(&mut events, Some(Duration::from_micros(200)))
                .expect("wait"),
            0
        );
        assert!(crate::clock::monotonic_ns() - before >= 200_000);
        event.signal();
        assert_eq!(epoll.wait_ms(&mut events, None).expect("wait"), 1);
        assert_eq!(Ready::from_epoll(&events[0]).token, 7);
    }
}
