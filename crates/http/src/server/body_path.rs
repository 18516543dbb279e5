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
use linerate_sys::{OsError, Result, clock, sockopt};

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
    /// The kernel paces what connections send, because their congestion control wants that.
    is_paced: bool,
}

impl BodyPaths {
    /// Everything is copied.
    pub(crate) const fn copying() -> Self {
        Self {
            large: Path::Copy,
            large_from_bytes: None,
            is_paced: false,
        }
    }

    /// What was asked for; `Auto` takes up to a fifth of a second to find out. `congestion` is the algorithm of the
    /// connections; `None` for the host's.
    pub(crate) fn choose(wanted: BodyPath, congestion: Option<&str>, content: &Content) -> Self {
        let large = |large, from| Self {
            large,
            large_from_bytes: Some(from),
            is_paced: is_paced(congestion),
        };
        match wanted {
            BodyPath::Copy => Self::copying(),
            BodyPath::Sendfile => large(Path::Sendfile, SMALL_BYTES_MAX),
            BodyPath::Zerocopy => large(Path::Zerocopy, SMALL_BYTES_MAX),
            // Without a measurement copying is what always works.
            BodyPath::Auto => match measured(content.block(Filling::Pattern)) {
                Some(from) => large(Path::Sendfile, from),
                None => Self::copying(),
            },
        }
    }

    /// The way of a body of this size.
    pub(crate) fn of(self, body_bytes: u64) -> Path {
        match self.large_from_bytes {
            Some(from) if body_bytes >= from => match self.large {
                Path::Sendfile if self.is_paced && body_bytes >= SEGMENT_BYTES => Path::SendfileApart,
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

/// Whether new connections are paced by a timer of the kernel (`bbr`, in all its versions). An answer of several segments
/// then waits for that timer between them, and its interrupts cost more than the sending. A head that leaves by itself
/// shows the algorithm how fast the path is, and nothing waits; it costs a segment. `congestion` is the algorithm the
/// connections get, if not the host's.
fn is_paced(congestion: Option<&str>) -> bool {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let of_host = || socket::open(&any, Protocol::Tcp).and_then(sockopt::congestion).ok();
    let algorithm = congestion.map(str::to_owned).or_else(of_host);
    algorithm.is_some_and(|name| name.starts_with("bbr"))
}

/// Sends bodies over loopback in both ways and compares the time inside the calls. Large are those from the smallest
/// size on from which the file is not slower at any size, within a tolerance.
fn measured(block: &Block) -> Option<u64> {
    let (senders, receivers) = connected_pairs().ok()?;
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

fn large_from(mut crowd: Crowd<'_>, block: &Block) -> Option<u64> {
    let mut from_bytes = None;
    for size in CLASSES.into_iter().rev() {
        let [copy, sendfile] = typical_of_both(&mut crowd, block, size)?;
        if sendfile > copy + copy / TOLERATED_PART {
            break;
        }
        from_bytes = Some(size as u64);
    }
    from_bytes
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
    let mut buffer = vec![0; 64 * 1024];
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

/// Bodies below this are copied whatever was asked for: setting up anything else costs more.
const SMALL_BYTES_MAX: u64 = 4096;
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
    use super::*;

    #[test]
    fn small_bodies_are_copied_whatever_was_asked_for() {
        let content = Content::default();
        let paths = BodyPaths::choose(BodyPath::Sendfile, None, &content);
        assert_eq!((paths.of(4095), paths.of(4096)), (Path::Copy, Path::Sendfile));
        assert_eq!(
            BodyPaths::choose(BodyPath::Copy, None, &content).of(u64::MAX),
            Path::Copy
        );
        assert!(BodyPaths::choose(BodyPath::Zerocopy, None, &content).lends());
        assert_eq!(paths.to_string(), "copy, sendfile from 4 KiB on");
    }

    #[test]
    fn only_an_answer_of_several_segments_is_paced() {
        let paths = |is_paced| BodyPaths {
            large: Path::Sendfile,
            large_from_bytes: Some(4096),
            is_paced,
        };
        assert_eq!(paths(false).of(1 << 20), Path::Sendfile);
        assert_eq!(paths(true).of(1 << 20), Path::SendfileApart);
        assert_eq!(paths(true).of(32 << 10), Path::Sendfile);
        assert_eq!(paths(true).of(4095), Path::Copy);
    }

    #[test]
    fn the_algorithm_of_the_connections_decides_and_not_the_hosts() {
        let content = Content::default();
        for (congestion, path) in [("bbr", Path::SendfileApart), ("cubic", Path::Sendfile)] {
            let paths = BodyPaths::choose(BodyPath::Sendfile, Some(congestion), &content);
            assert_eq!(paths.of(1 << 20), path, "{congestion}");
        }
    }

    #[test]
    fn the_measurement_comes_to_an_end() {
        let paths = BodyPaths::choose(BodyPath::Auto, None, &Content::default());
        assert_eq!(paths.of(100), Path::Copy);
    }
}
