//! Signals as readable events instead of handlers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, sigset_t};

use crate::error::{During, Result};
use crate::syscall::{syscall, syscall_len};

/// A signal (signal(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `SIGHUP`: the terminal went away.
    Hangup,
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGQUIT`: Ctrl-\.
    Quit,
    /// `SIGTERM`: a polite end.
    Terminate,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
    /// `SIGTSTP`: Ctrl-Z.
    Stop,
    /// `SIGCONT`: the process continues.
    Continue,
    /// `SIGWINCH`: the terminal has another size.
    WindowChange,
}

impl Signal {
    /// Each with its number on this architecture and the name that strsignal(3) of glibc gives it.
    const ALL: [(Self, c_int, &str); 9] = [
        (Self::Hangup, libc::SIGHUP, "Hangup"),
        (Self::Interrupt, libc::SIGINT, "Interrupt"),
        (Self::Quit, libc::SIGQUIT, "Quit"),
        (Self::Terminate, libc::SIGTERM, "Terminated"),
        (Self::User1, libc::SIGUSR1, "User defined signal 1"),
        (Self::User2, libc::SIGUSR2, "User defined signal 2"),
        (Self::Stop, libc::SIGTSTP, "Stopped"),
        (Self::Continue, libc::SIGCONT, "Continued"),
        (Self::WindowChange, libc::SIGWINCH, "Window changed"),
    ];

    /// The signal's number on this architecture.
    pub fn number(self) -> i32 {
        Self::ALL[self as usize].1
    }

    /// The signal as strsignal(3) of glibc names it: `Interrupt`, `Terminated`.
    pub fn description(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    fn from_number(number: u32) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, _)| u32::try_from(*known) == Ok(number))
            .map(|(signal, ..)| signal)
    }
}

/// Signals that arrive as events on a descriptor (signalfd(2)) instead of ending the process. They
/// stay blocked when this is dropped.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the signals and opens the descriptor. Call before any thread starts: threads inherit
    /// the block, and a thread without it would still be killed.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(signals: &[Signal]) -> Result<Self> {
        block(signals)?;
        let set = signal_set(signals);
        // SAFETY: `set` is initialised and outlives the call.
        let fd = syscall(unsafe {
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        })
        .during("signalfd", "")?;

        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Takes one signal that came; `None` when none waits. Several of a kind that came together
    /// count as one.
    ///
    /// # Errors
    /// The operating system's.
    pub fn take(&self) -> io::Result<Option<Signal>> {
        // SAFETY: all-zero bytes are a valid signalfd_siginfo.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        // SAFETY: pointer and size describe `info`, which is writable during the call and valid
        // with any content.
        let read = syscall_len(unsafe {
            libc::read(
                self.0.as_raw_fd(),
                (&raw mut info).cast(),
                size_of_val(&info),
            )
        });
        match read {
            Ok(_) => Ok(Signal::from_number(info.ssi_signo)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Blocks signals in this thread. One that starts before [`Signals`] needs it, or it would be
/// killed in place of them.
///
/// # Errors
/// The operating system's.
pub fn block(signals: &[Signal]) -> Result<()> {
    let set = signal_set(signals);
    // pthread functions return the error instead of setting errno.
    // SAFETY: `set` is initialised and outlives the call; the old mask may be null.
    let code =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(code))
    }
    .during("pthread_sigmask", "")
}

/// Blocks all signals in this thread, and in those that it starts.
pub fn block_all() {
    // SAFETY: all-zero bytes are a valid sigset_t.
    let mut set: sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is writable and outlives both calls, which cannot fail for a valid set and
    // operation; the old mask may be null.
    unsafe {
        libc::sigfillset(&raw mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Lets signals that [`Signals`] blocked act on this thread again.
pub fn unblock(signals: &[Signal]) {
    let set = signal_set(signals);
    // SAFETY: `set` is initialised and outlives the call, which cannot fail for a valid operation;
    // the old mask may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Sends a signal to the calling thread (raise(3)). Returns when the signal is blocked or ignored.
pub fn raise(signal: Signal) {
    // SAFETY: the call has no memory operands.
    unsafe { libc::raise(signal.number()) };
}

/// Sends a signal to this process (kill(2)): whichever of its [`Signals`] contains it takes it.
pub fn send_to_self(signal: Signal) {
    // SAFETY: neither call has memory operands.
    unsafe { libc::kill(libc::getpid(), signal.number()) };
}

/// Stops this process (`SIGSTOP`). Returns when it is continued.
pub fn stop_self() {
    // To this thread, which stops before the call returns. One to the process may go to another
    // thread, and this one continues until that one has run (signal(7)). SAFETY: the call has no
    // memory operands.
    unsafe { libc::raise(libc::SIGSTOP) };
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn signal_set(signals: &[Signal]) -> sigset_t {
    // SAFETY: all-zero bytes are a valid sigset_t.
    let mut set: sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is writable; neither call can fail for a valid set and valid numbers.
    unsafe { libc::sigemptyset(&raw mut set) };

    for signal in signals {
        let number: c_int = signal.number();
        // SAFETY: as above.
        unsafe { libc::sigaddset(&raw mut set, number) };
    }

    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Interest, wait_fd};

    /// Sends a signal to the calling thread alone, so that tests running beside this one are not
    /// hit.
    fn raise(signal: Signal) {
        // SAFETY: the signal is blocked by the test, so no handler and no default action runs.
        let returned = unsafe { libc::pthread_kill(libc::pthread_self(), signal.number()) };
        assert_eq!(returned, 0);
    }

    #[test]
    fn a_blocked_signal_becomes_an_event() {
        let signals = Signals::new(&[Signal::User1, Signal::User2]).expect("signalfd");
        assert_eq!(signals.take().expect("take"), None);
        raise(Signal::User2);
        assert!(wait_fd(&signals, Interest::READ, None).expect("poll"));
        assert_eq!(signals.take().expect("take"), Some(Signal::User2));
        assert_eq!(signals.take().expect("take"), None, "taken once");
    }

    #[test]
    fn descriptions_are_the_c_librarys() {
        for (signal, ..) in Signal::ALL {
            // SAFETY: strsignal returns a NUL-terminated string valid until the next call in this
            // thread.
            let text = unsafe { std::ffi::CStr::from_ptr(libc::strsignal(signal.number())) };
            assert_eq!(text.to_str(), Ok(signal.description()));
        }
    }
}
