//! The terminal as a screen (termios(3), ioctl_tty(2), console_codes(4)): keys arrive one by one,
//! and what was on it before comes back.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::syscall::syscall;

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Characters per line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// Size of the terminal behind a descriptor (`TIOCGWINSZ`); `None` where there is no terminal, or
/// it does not know.
pub fn size(fd: impl AsFd) -> Option<Size> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: this ioctl writes one winsize through its argument.
    syscall(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) })
        .ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size {
        columns: size.ws_col,
        rows: size.ws_row,
    })
}

/// Alternate screen, cursor hidden, empty.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Attributes off, cursor shown, the screen of before.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The screen that is in use, and the modes of its terminal before. It outlives the [`Screen`], so
/// that a panic hook reaches it.
static ACTIVE: Mutex<Option<Before>> = Mutex::new(None);

fn active() -> MutexGuard<'static, Option<Before>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Before {
    output: File,
    input: OwnedFd,
    modes: libc::termios,
}

/// A full screen on the terminal of standard error.
#[derive(Debug)]
pub struct Screen {
    output: File,
    input: File,
}

impl Screen {
    /// The terminal of standard error. Keys are read from the controlling terminal, because
    /// standard error may be open for writing only. Nothing changes before [`Self::enter`].
    ///
    /// # Errors
    /// The operating system's.
    pub fn open() -> io::Result<Self> {
        let output = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let input = match OpenOptions::new().read(true).open("/dev/tty") {
            Ok(input) => input,
            Err(_) => output.try_clone()?,
        };
        Ok(Self { output, input })
    }

    /// Shows an empty screen. Keys are neither shown nor collected into lines; Ctrl-C, Ctrl-Z and
    /// Ctrl-\ remain signals.
    ///
    /// # Errors
    /// The operating system's.
    pub fn enter(&mut self) -> io::Result<()> {
        let mut active = self::active();
        if active.is_some() {
            return Ok(());
        }

        let mut modes = modes(&self.input)?;
        let before = Before {
            output: self.output.try_clone()?,
            input: self.input.try_clone()?.into(),
            modes,
        };
        modes.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ECHONL);

        // Ctrl-S would stop the thread that draws.
        modes.c_iflag &= !libc::IXON;
        set_modes(&self.input, libc::TCSADRAIN, &modes)?;
        *active = Some(before);

        self.output.write_all(ENTER)
    }

    /// Puts the terminal back as [`leave`] does.
    pub fn leave(&mut self) {
        leave();
    }

    /// Size now; `None` when the terminal does not know.
    pub fn size(&self) -> Option<Size> {
        size(&self.output)
    }

    /// Reads keys that wait; an empty answer is a terminal that went away.
    ///
    /// # Errors
    /// The operating system's.
    pub fn read_keys(&mut self, keys: &mut [u8]) -> io::Result<usize> {
        self.input.read(keys)
    }
}

impl Write for Screen {
    /// Fails with `NotConnected` where the screen is not in use: a picture would cover the screen
    /// of before, and the message of a panic with it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let active = self::active();
        if active.is_none() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl AsFd for Screen {
    /// Readable when keys wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Puts the terminal back to what it was before [`Screen::enter`]; nothing where no screen is in
/// use. For panic hooks, too: a program that aborts drops nothing.
pub fn leave() {
    let mut active = self::active();
    if let Some(Before {
        mut output,
        input,
        modes,
    }) = active.take()
    {
        // A terminal that went away needs no restoring.
        let _ = output.write_all(LEAVE);
        let _ = set_modes(&input, libc::TCSADRAIN, &modes);
    }
}

/// True if a screen is in use.
pub fn is_in_use() -> bool {
    active().is_some()
}

/// Modes of a terminal (termios(3)).
pub(super) fn modes(terminal: impl AsFd) -> io::Result<libc::termios> {
    // SAFETY: all-zero bytes are a valid termios.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `modes` is writable during the call.
    syscall(unsafe { libc::tcgetattr(terminal.as_fd().as_raw_fd(), &raw mut modes) })?;
    Ok(modes)
}

/// Sets the modes of a terminal; `when` is that of tcsetattr(3).
pub(super) fn set_modes(
    terminal: impl AsFd,
    when: libc::c_int,
    modes: &libc::termios,
) -> io::Result<()> {
    // SAFETY: `modes` outlives the call, which only reads it.
    syscall(unsafe { libc::tcsetattr(terminal.as_fd().as_raw_fd(), when, modes) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_has_no_size() {
        let (reader, _writer) = io::pipe().expect("a pipe");
        assert_eq!(size(&reader), None);
    }
}
