//! Which way a body takes into the socket, and the measurement that decides it.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::stream_io;
use linerate_sys::{OsError, PageBuffer, Result, clock, sockopt};

use super::content::{Block, Content, Filling};
use super::spec::BodyPath;

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    /// The kernel copies.
    Copy,
    /// From a file, the head with it.
    Sendfile,
    /// From a file, behind a head that has left.
    SendfileApart,
    /// Lent to the kernel.
    Zerocopy,
}

/// The ways of a server: bodies below a size are copied, the others not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyPaths {
    large: Path,
    /// Smallest body that is large; `None` when none is.
    large_from_bytes: Option<u64>,
}

impl BodyPaths {
    /// Everything is copied.
    pub(crate) const fn copying() -> Self {
        Self {
            large: Path::Copy,
            large_from_bytes: None,
        }
    }

    /// What was asked for; `Auto` takes up to a fifth of a second to find out.
    pub(crate) fn choose(wanted: BodyPath, content: &Content) -> Self {
        let large = |large, from| Self {
            large,
            large_from_bytes: Some(from),
        };
        match wanted {
            BodyPath::Copy => Self::copying(),
            BodyPath::Sendfile => large(Path::Sendfile, SMALL_BYTES_MAX),
            BodyPath::Zerocopy => large(Path::Zerocopy, SMALL_BYTES_MAX),
            BodyPath::Auto => match measured(content.block(Filling::Pattern)) {
                Ok(Some(from)) => large(Path::Sendfile, from),
                Ok(None) | Err(Unmeasured::NoFile) => Self::copying(),
                Err(Unmeasured::NoLoopback) => large(Path::Sendfile, UNMEASURED_BYTES),
            },
        }
    }

    /// The way of a body of this size on a connection that is paced or not; see [`is_paced`].
    pub(crate) fn of(self, body_bytes: u64, is_paced: bool) -> Path {
        match self.large_from_bytes {
            Some(from) if body_bytes >= from => match self.large {
                Path::Sendfile if is_paced && body_bytes >= SEGMENT_BYTES => Path::SendfileApart,
                large => large,
            },
            _ => Path::Copy,
        }
    }

    /// Whether anything is sent from a file.
    pub(crate) fn prints(self) -> bool {
        self.large == Path::Sendfile
    }

    /// Whether sockets have to lend memory.
    pub(crate) fn lends(self) -> bool {
        self.large == Path::Zerocopy
    }
}

impl std::fmt::Display for BodyPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.large {
            Path::Copy => "copy",
            Path::Sendfile | Path::SendfileApart => "sendfile",
            Path::Zerocopy => "zerocopy",
        };
        match self.large_from_bytes {
            Some(from) => write!(f, "copy, {name} from {} KiB on", from / 1024),
            None => f.write_str("copy"),
        }
    }
}

/// Whether what a connection sends in large segments, as over loopback, is paced by a timer of the kernel: `bbr` wants
/// that, in all its versions. An answer of several segments then waits for the timer between them, and its interrupts cost
/// more than the sending. A head that leaves by itself shows the algorithm how fast the path is, and nothing waits. It
/// costs a segment, which is more than it saves where segments are small: there the timer rings while they arrive.
pub(crate) fn is_paced(connection: &OwnedFd) -> bool {
    sockopt::get_mss(connection).is_ok_and(|mss_bytes| mss_bytes >= LARGE_MSS_BYTES)
        && sockopt::congestion(connection).is_ok_and(|algorithm| algorithm.starts_with("bbr"))
}

/// Why nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unmeasured {
    /// Nothing can be sent from a file.
    NoFile,
    /// Nothing comes back over loopback: the interface is down, as in a new network namespace, or something filters it.
    NoLoopback,
}

/// Sends bodies over loopback in both ways and compares the time inside the calls. Large are those from the smallest
/// size on from which the file is not slower at any size, within a tolerance.
fn measured(block: &Block) -> std::result::Result<Option<u64>, Unmeasured> {
    if block.file().is_none() {
        return Err(Unmeasured::NoFile);
    }
    let (senders, receivers) = connected_pairs().map_err(|_| Unmeasured::NoLoopback)?;
    let crowd = Crowd {
        senders,
        sent_bytes: 0,
        received_bytes: &AtomicU64::new(0),
    };
    thread::scope(|scope| {
        // Another thread reads, so that the memory that is copied to is in another processor's cache, as with real
        // clients.
        scope.spawn(|| count_all(receivers, crowd.received_bytes));
        // Whatever it finds, its end closes the senders, which ends the reader.
        large_from(crowd, block)
    })
}

fn large_from(mut crowd: Crowd<'_>, block: &Block) -> std::result::Result<Option<u64>, Unmeasured> {
    let mut from_bytes = None;
    for size in CLASSES.into_iter().rev() {
        let [copy, sendfile] = typical_of_both(&mut crowd, block, size).ok_or(Unmeasured::NoLoopback)?;
        if sendfile > copy + copy / TOLERATED_PART {
            break;
        }
        from_bytes = Some(size as u64);
    }
    Ok(from_bytes)
}

/// Picoseconds per byte each way; the ways take turns, so that a disturbance hits both.
fn typical_of_both(crowd: &mut Crowd<'_>, block: &Block, size: usize) -> Option<[u64; 2]> {
    let end_ns = clock::monotonic_ns() + CLASS_NS;
    let (mut copies, mut sendfiles) = (Vec::new(), Vec::new());
    while copies.is_empty() || clock::monotonic_ns() < end_ns {
        copies.push(crowd.send_to_all(block, size, Path::Copy)?);
        sendfiles.push(crowd.send_to_all(block, size, Path::Sendfile)?);
    }
    Some([typical(copies)?, typical(sendfiles)?])
}

/// The first quartile: what other work of the host interrupted is longer, and there may be much of it.
fn typical(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 4).copied()
}

/// Connections that are sent to one after the other. One alone would be copied to the same memory again and again.
struct Crowd<'a> {
    senders: Vec<OwnedFd>,
    sent_bytes: u64,
    received_bytes: &'a AtomicU64,
}

impl Crowd<'_> {
    /// Sends as much of a body as each connection takes at once, and waits until it is read; picoseconds per byte inside
    /// the calls.
    fn send_to_all(&mut self, block: &Block, size: usize, path: Path) -> Option<u64> {
        let (mut spent_ns, mut taken_bytes) = (0, 0);
        for sender in &self.senders {
            let before_ns = clock::monotonic_ns();
            let taken = match path {
                Path::Sendfile => stream_io::send_file(sender, block.file()?, &mut 0, size),
                _ => stream_io::send(sender, block.run(0, size as u64)),
            };
            spent_ns += clock::monotonic_ns() - before_ns;
            taken_bytes += taken.ok()? as u64;
        }
        self.sent_bytes += taken_bytes;
        self.wait_for_reader()?;
        (spent_ns * 1000).checked_div(taken_bytes)
    }

    fn wait_for_reader(&self) -> Option<()> {
        let end_ns = clock::monotonic_ns() + PATIENCE_NS;
        while self.received_bytes.load(Ordering::Relaxed) < self.sent_bytes {
            if clock::monotonic_ns() > end_ns {
                return None;
            }
            thread::yield_now();
        }
        Some(())
    }
}

/// Reads as clients would, up to the end of the connections, and counts. It never sleeps: waking it would cost the sender
/// more than what is compared.
fn count_all(mut receivers: Vec<OwnedFd>, received_bytes: &AtomicU64) {
    let Ok(mut buffer) = PageBuffer::zeroed(64 * 1024) else {
        return;
    };
    while !receivers.is_empty() {
        receivers.retain(|receiver| match stream_io::recv(receiver, &mut buffer) {
            Ok(read) => {
                received_bytes.fetch_add(read as u64, Ordering::Relaxed);
                read > 0
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        });
        thread::yield_now();
    }
}

fn connected_pairs() -> Result<(Vec<OwnedFd>, Vec<OwnedFd>)> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = socket::open(&any, Protocol::Tcp)?;
    socket::bind(&listener, &any)?;
    // The kernel's simplest algorithm, without pacing: timers are not what is compared. Every kernel has it.
    sockopt::set_congestion(&listener, "reno")?;
    sockopt::set_no_delay(&listener, true)?;
    socket::listen(&listener, 1)?;
    let server = socket::local_addr(&listener)?;
    let failed = |source| OsError::new("accept", server, source);
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for _ in 0..CROWD {
        let client = socket::open(&server, Protocol::Tcp)?;
        socket::connect(&client, &server)?;
        wait_fd(&listener, Interest::READ, Some(Duration::from_nanos(PATIENCE_NS))).map_err(failed)?;
        let accepted = socket::accept(&listener).map_err(failed)?;
        let (sender, _) = accepted.ok_or_else(|| failed(ErrorKind::TimedOut.into()))?;
        senders.push(sender);
        receivers.push(client);
    }
    Ok((senders, receivers))
}

/// Larger than any network's but that of loopback, which carries 64 KiB.
const LARGE_MSS_BYTES: u32 = 16 * 1024;
/// Bodies below this are copied whatever was asked for: setting up anything else costs more.
const SMALL_BYTES_MAX: u64 = 4096;
/// Without a measurement, bodies are large from here on: copying them costs more on every machine that was looked at.
const UNMEASURED_BYTES: u64 = 32 * 1024;
/// What one segment takes on its way through the kernel (`GSO_LEGACY_MAX_SIZE`), less room for a head.
const SEGMENT_BYTES: u64 = 63 * 1024;
/// Sizes that are measured.
const CLASSES: [usize; 5] = [4 << 10, 10 << 10, 32 << 10, 100 << 10, 512 << 10];
/// Time for one size.
const CLASS_NS: u64 = 40_000_000;
/// The file may seem slower by a quarter: on a single processor a copy stays in its cache, and that of a real client does
/// not. With wrk on another processor it was faster at 10 KiB where this measured it to be slower by a fifth.
const TOLERATED_PART: u64 = 4;
/// Connections a busy server may have answers in at a time.
const CROWD: usize = 32;
const PATIENCE_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn small_bodies_are_copied_whatever_was_asked_for() {
        let content = Content::default();
        let paths = BodyPaths::choose(BodyPath::Sendfile, &content);
        assert_eq!(
            (paths.of(4095, false), paths.of(4096, false)),
            (Path::Copy, Path::Sendfile)
        );
        let copying = BodyPaths::choose(BodyPath::Copy, &content);
        assert_eq!(copying.of(u64::MAX, true), Path::Copy);
        assert!(BodyPaths::choose(BodyPath::Zerocopy, &content).lends());
        assert_eq!(paths.to_string(), "copy, sendfile from 4 KiB on");
    }

    #[test]
    fn only_an_answer_of_several_segments_is_paced() {
        let paths = BodyPaths {
            large: Path::Sendfile,
            large_from_bytes: Some(4096),
        };
        assert_eq!(paths.of(1 << 20, false), Path::Sendfile);
        assert_eq!(paths.of(1 << 20, true), Path::SendfileApart);
        assert_eq!(paths.of(32 << 10, true), Path::Sendfile);
        assert_eq!(paths.of(4095, true), Path::Copy);
    }

    #[test]
    fn what_a_connection_has_got_decides_and_not_the_hosts_setting() {
        for (algorithm, is_so) in [("bbr", true), ("reno", false)] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            if sockopt::set_congestion(&listener, algorithm).is_err() {
                // Not every kernel has it, and some allow it to root alone.
                assert_eq!(algorithm, "bbr");
                continue;
            }
            let _client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
            let (accepted, _) = listener.accept().expect("a client");
            assert_eq!(is_paced(&OwnedFd::from(accepted)), is_so, "{algorithm}");
        }
    }

    #[test]
    fn the_measurement_comes_to_an_end() {
        let paths = BodyPaths::choose(BodyPath::Auto, &Content::default());
        assert_eq!(paths.of(100, false), Path::Copy);
    }
}
