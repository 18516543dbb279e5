//! The process and its surroundings: daemons, limits, identity, terminals.

use std::ffi::c_int;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::Child;

use crate::error::{During, Result};
use crate::poll::{self, Interest};
use crate::signal::{self, Signal, Signals};
use crate::syscall::{narrow, syscall, wide};
use crate::terminal;
pub use crate::uname::{Uname, uname};

/// Goes to the background as `daemon(3)` does: no terminal, its own session, standard streams on
/// `/dev/null`, but in the same working directory. The caller's process ends; a child of its child
/// returns from here.
///
/// Call before any thread starts: only the calling thread survives.
///
/// # Errors
/// The operating system's. After the first fork only the child is left to see them.
pub fn daemonize() -> Result<()> {
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .during("open", "/dev/null")?;
    fork_and_leave()?;

    // SAFETY: no pointers are passed.
    syscall(unsafe { libc::setsid() }).during("setsid", "")?;
    // A process that is not the leader of its session cannot acquire a terminal by accident.
    fork_and_leave()?;

    for standard in 0..=2 {
        // SAFETY: the source is open, and the targets are the standard streams, which are ours to
        // replace.
        syscall(unsafe { libc::dup2(null.as_raw_fd(), standard) }).during("dup2", standard)?;
    }

    Ok(())
}

/// Forks and ends the parent.
fn fork_and_leave() -> Result<()> {
    // SAFETY: the documented contract of `daemonize` is that no other thread exists, so the child
    // may do anything.
    if syscall(unsafe { libc::fork() }).during("fork", "")? != 0 {
        // SAFETY: ends the process at once; exit handlers belong to the child.
        unsafe { libc::_exit(0) };
    }
    Ok(())
}

/// True if a process of this number exists (kill(2) with signal 0), of any user. Numbers below 1
/// name groups and are not alive.
pub fn pid_is_alive(pid: i32) -> bool {
    // SAFETY: signal 0 checks and delivers nothing.
    pid > 0
        && syscall(unsafe { libc::kill(pid, 0) })
            .map_or_else(|e| e.raw_os_error() == Some(libc::EPERM), |_| true)
}

/// Asks every process of the group that a child leads to end (`SIGTERM`). A group that has ended is
/// not an error.
///
/// # Errors
/// The operating system's.
pub fn terminate_group(leader: &Child) -> Result<()> {
    signal_group(leader, libc::SIGTERM)
}

/// Ends every process of the group that a child leads (`SIGKILL`). A group that has ended is not an
/// error.
///
/// # Errors
/// The operating system's.
pub fn kill_group(leader: &Child) -> Result<()> {
    signal_group(leader, libc::SIGKILL)
}

fn signal_group(leader: &Child, number: c_int) -> Result<()> {
    let group = leader.id().cast_signed();
    // SAFETY: the call takes numbers only.
    match syscall(unsafe { libc::kill(-group, number) }) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        sent => sent
            .map(drop)
            .during("kill", format_args!("process group {group}")),
    }
}

/// Locks an open file until it is closed (flock(2)); `false` where another process holds the lock.
///
/// # Errors
/// The operating system's.
pub fn lock(file: impl AsFd) -> Result<bool> {
    // SAFETY: no pointers are passed.
    match syscall(unsafe { libc::flock(file.as_fd().as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        locked => locked.map(|_| true).during("flock", ""),
    }
}

/// Raises the limit of open descriptors to what the process may (`RLIMIT_NOFILE`, getrlimit(2)) and
/// returns it.
///
/// # Errors
/// The operating system's.
pub fn raise_fd_limit() -> Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is writable during the call.
    syscall(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })
        .during("getrlimit RLIMIT_NOFILE", "")?;

    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` outlives the call, which only reads it.
        syscall(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })
            .during("setrlimit RLIMIT_NOFILE", limit.rlim_max)?;
    }

    Ok(wide(limit.rlim_cur))
}

/// Raises the limit of open descriptors to `wanted`, beyond the hard limit where the process may
/// (`CAP_SYS_RESOURCE`, capped by `fs.nr_open`), and returns what it is then: less where it may
/// not.
///
/// # Errors
/// As [`raise_fd_limit`].
pub fn raise_fd_limit_to(wanted: u64) -> Result<u64> {
    let granted = raise_fd_limit()?;
    if granted >= wanted {
        return Ok(granted);
    }

    let limit = libc::rlimit {
        rlim_cur: narrow(wanted, libc::RLIM_INFINITY),
        rlim_max: narrow(wanted, libc::RLIM_INFINITY),
    };
    // SAFETY: `limit` outlives the call, which only reads it.
    let raised = syscall(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) });
    Ok(if raised.is_ok() { wanted } else { granted })
}

/// Number of open descriptors of the process.
///
/// # Errors
/// The operating system's, where `/proc` is not mounted.
pub fn open_fd_count() -> Result<usize> {
    let entries = fs::read_dir("/proc/self/fd")
        .during("read", "/proc/self/fd")?
        .count();
    // Reading the directory took one of them.
    Ok(entries.saturating_sub(1))
}

/// Bytes of a page of memory (sysconf(3)).
pub fn page_bytes() -> u64 {
    // SAFETY: no pointers are passed; every system has a page size.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Makes the allocator give large blocks back to the system when they are freed
/// (`M_MMAP_THRESHOLD`, mallopt(3)).
///
/// glibc raises its threshold as it goes and then keeps megabytes of freed buffers for each thread
/// that ever ran; a server would seem to grow. Other allocators need no such advice.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        const THRESHOLD_BYTES: i32 = 128 * 1024;
        // SAFETY: mallopt only stores a number; a refusal changes nothing.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, THRESHOLD_BYTES) };
    }
}

/// True if the descriptor is a terminal (isatty(3)).
pub fn isatty(fd: impl AsFd) -> bool {
    fd.as_fd().is_terminal()
}

/// Columns of the terminal behind a descriptor (ioctl_tty(2), `TIOCGWINSZ`); `None` where there is
/// no terminal, or it does not know.
pub fn terminal_columns(fd: impl AsFd) -> Option<usize> {
    terminal::size(fd).map(|size| usize::from(size.columns))
}

/// Prompts for a password on the controlling terminal without showing it, or on standard error and
/// input when there is none. The line ends at a newline or end of file and has at most 4096 bytes.
/// A signal that ends the process does so after the terminal shows again what is typed.
///
/// # Errors
/// The operating system's; `UnexpectedEof` when the input ended before a line began, `InvalidData`
/// for a line that is too long or not UTF-8.
pub fn read_password(prompt: &str) -> Result<String> {
    match OpenOptions::new().read(true).write(true).open("/dev/tty") {
        Ok(terminal) => ask(prompt, &mut &terminal, &mut &terminal),
        Err(_) => ask(prompt, &mut io::stdin().lock(), &mut io::stderr()),
    }
    .during("read password", "")
}

fn ask(
    prompt: &str,
    input: &mut (impl Read + AsFd),
    output: &mut impl Write,
) -> io::Result<String> {
    let signals = Signals::new(&ENDING).map_err(|error| error.source)?;
    let answer = ask_hidden(prompt, input, output, &signals);
    drop(signals);
    signal::unblock(&ENDING);

    match answer? {
        Answer::Line(line) => Ok(line),
        Answer::Signal(signal) => {
            // The process ends here as it would have without the prompt.
            signal::raise(signal);
            Err(io::ErrorKind::Interrupted.into())
        }
    }
}

/// Signals that end the process. During the prompt they wait: the terminal would be left without
/// echo.
const ENDING: [Signal; 4] = [
    Signal::Interrupt,
    Signal::Terminate,
    Signal::Hangup,
    Signal::Quit,
];

enum Answer {
    Line(String),
    Signal(Signal),
}

fn ask_hidden(
    prompt: &str,
    input: &mut (impl Read + AsFd),
    output: &mut impl Write,
    signals: &Signals,
) -> io::Result<Answer> {
    // Hidden before the prompt, so that an early answer is not shown either.
    let hidden = HiddenInput::begin(input.as_fd())?;
    output.write_all(prompt.as_bytes())?;
    output.flush()?;

    let answer = match wait_for_line(input.as_fd(), signals) {
        Ok(None) => read_line(input).map(Answer::Line),
        Ok(Some(signal)) => Ok(Answer::Signal(signal)),
        Err(error) => Err(error),
    };
    drop(hidden);

    // The user's own newline was not shown.
    output.write_all(b"\n")?;
    answer
}

/// Waits until a line can be read, or for the signal that came instead.
///
/// # Errors
/// The operating system's.
pub fn wait_for_line(input: BorrowedFd<'_>, signals: &Signals) -> io::Result<Option<Signal>> {
    loop {
        let watched = [(input, Interest::READ), (signals.as_fd(), Interest::READ)];
        let [is_readable, is_signalled] = poll::wait_fds(watched, None)?;
        if is_signalled && let Some(signal) = signals.take()? {
            return Ok(Some(signal));
        }
        if is_readable {
            return Ok(None);
        }
    }
}

/// Reads byte by byte, so that nothing behind the line is taken from the next reader.
fn read_line(input: &mut impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];

    loop {
        match input.read(&mut byte) {
            Ok(0) if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() == PASSWORD_LEN_MAX => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
            }
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }

    String::from_utf8(line)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not valid UTF-8"))
}

/// A terminal that does not show what is typed (termios(3)), as long as this lives. Anything else
/// is left alone.
struct HiddenInput {
    terminal: Option<(OwnedFd, libc::termios)>,
}

impl HiddenInput {
    fn begin(input: BorrowedFd<'_>) -> io::Result<Self> {
        if !input.is_terminal() {
            return Ok(Self { terminal: None });
        }

        let terminal = input.try_clone_to_owned()?;
        let before = terminal::modes(&terminal)?;
        let mut hidden = before;
        hidden.c_lflag &= !(libc::ECHO | libc::ECHONL);

        // What was typed before the prompt was shown, and seen, is not the password.
        terminal::set_modes(&terminal, libc::TCSAFLUSH, &hidden)?;
        Ok(Self {
            terminal: Some((terminal, before)),
        })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some((terminal, before)) = &self.terminal {
            // A terminal that went away meanwhile needs no restoring.
            let _ = terminal::set_modes(terminal, libc::TCSANOW, before);
        }
    }
}

/// Longest password line in bytes.
const PASSWORD_LEN_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::FromRawFd;

    use super::*;

    #[test]
    fn processes_are_alive_until_they_are_reaped() {
        assert!(pid_is_alive(std::process::id().cast_signed()));
        let mut child = std::process::Command::new("true").spawn().expect("start");
        let pid = child.id().cast_signed();
        assert!(pid_is_alive(pid), "at least as a zombie");
        child.wait().expect("wait");
        assert!(!pid_is_alive(pid));

        for group in [0, -1, i32::MIN] {
            assert!(!pid_is_alive(group), "{group}");
        }
    }

    #[test]
    fn a_password_is_read_from_a_pipe_up_to_the_newline() {
        let mut input = pipe(b"secret \xc3\xa9\nnext");
        let mut output = Vec::new();
        assert_eq!(
            ask("Password: ", &mut input, &mut output).expect("line"),
            "secret \u{e9}"
        );
        assert_eq!(output, b"Password: \n");

        let mut rest = String::new();
        input.read_to_string(&mut rest).expect("read");
        assert_eq!(rest, "next", "nothing behind the line was taken");
    }

    #[test]
    fn password_lines_may_be_empty_but_not_absent_endless_or_garbled() {
        assert_eq!(
            ask("", &mut pipe(b"\n"), &mut Vec::new()).expect("line"),
            ""
        );
        assert_eq!(
            ask("", &mut pipe(b"no newline"), &mut Vec::new()).expect("line"),
            "no newline"
        );
        let longest = [vec![b'x'; PASSWORD_LEN_MAX], b"\n".to_vec()].concat();
        assert_eq!(
            ask("", &mut pipe(&longest), &mut Vec::new())
                .expect("line")
                .len(),
            PASSWORD_LEN_MAX
        );

        for (input, kind) in [
            (b"".to_vec(), io::ErrorKind::UnexpectedEof),
            (vec![b'x'; PASSWORD_LEN_MAX + 1], io::ErrorKind::InvalidData),
            (b"\xff\n".to_vec(), io::ErrorKind::InvalidData),
        ] {
            let error = ask("", &mut pipe(&input), &mut Vec::new()).expect_err("refused");
            assert_eq!(error.kind(), kind);
        }
    }

    /// Types a password on a pseudo terminal, and checks the terminal's output.
    #[test]
    fn a_password_is_not_shown_on_a_terminal_and_what_follows_is() {
        let (mut user, program) = terminal();
        assert!(isatty(&program));
        assert!(!isatty(File::open("/dev/null").expect("open")));

        let asking = program.try_clone().expect("clone");
        let thread = std::thread::spawn(move || ask("Password: ", &mut &asking, &mut &asking));
        assert_eq!(read_exactly(&mut user, 10), "Password: ");
        assert!(!echo_is_on(&program), "hidden as soon as the prompt shows");
        user.write_all(b"secret\n").expect("type");
        assert_eq!(thread.join().expect("thread").expect("line"), "secret");
        assert!(echo_is_on(&program), "restored");
        user.write_all(b"shown\n").expect("type");
        assert_eq!(read_exactly(&mut user, 9), "\r\nshown\r\n");
    }

    fn pipe(content: &[u8]) -> io::PipeReader {
        let (reader, mut writer) = io::pipe().expect("pipe");
        writer.write_all(content).expect("fits into the pipe");
        reader
    }

    fn terminal() -> (File, File) {
        let (mut user, mut program) = (-1, -1);
        let null = std::ptr::null_mut();
        // SAFETY: both numbers are writable; name, settings and size may be null.
        syscall(unsafe {
            libc::openpty(
                &raw mut user,
                &raw mut program,
                null,
                null.cast(),
                null.cast(),
            )
        })
        .expect("pseudo terminal");

        // SAFETY: both descriptors are new and have no other owner.
        unsafe { (File::from_raw_fd(user), File::from_raw_fd(program)) }
    }

    fn echo_is_on(terminal: &File) -> bool {
        // SAFETY: all-zero bytes are a valid termios.
        let mut mode: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: `mode` is writable during the call.
        syscall(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut mode) })
            .expect("a terminal");
        mode.c_lflag & libc::ECHO != 0
    }

    fn read_exactly(terminal: &mut File, len: usize) -> String {
        let mut bytes = vec![0; len];
        terminal.read_exact(&mut bytes).expect("read");
        String::from_utf8(bytes).expect("text")
    }
}
