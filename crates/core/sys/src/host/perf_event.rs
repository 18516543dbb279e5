//! Events of the kernel on one CPU, in a ring of memory (perf_event_open(2)).
//!
//! A [`PerfEvent`] counts; a [`Ring`] keeps the records of one or several events of a CPU until
//! [`Ring::drain`] reads them. A ring has a fixed size: what does not fit is lost, and the kernel
//! counts it.

mod attributes;
mod record;
mod ring;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{fmt, io};

use crate::error::{During, OsError};
use crate::syscall::{syscall, syscall_len};
use attributes::Attributes;
pub use attributes::Source;
pub use record::{Record, Stack};
pub use ring::Ring;

/// Why there is no event.
#[derive(Debug)]
pub enum EventError {
    /// This process lacks the right.
    NotPermitted,
    /// The kernel has no such events, or not this one.
    Unsupported,
    /// Anything else.
    System(OsError),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted => {
                f.write_str("needs CAP_PERFMON (root), or kernel.perf_event_paranoid=-1")
            }
            Self::Unsupported => f.write_str("the kernel has no such events"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EventError {}

impl From<OsError> for EventError {
    fn from(error: OsError) -> Self {
        match error.errno() {
            // A kernel reports `EACCES` by its setting, `EPERM` by a security module or seccomp(2).
            Some(libc::EACCES | libc::EPERM) => Self::NotPermitted,
            Some(libc::ENOENT | libc::ENODEV) => Self::Unsupported,
            _ if error.is_unsupported() => Self::Unsupported,
            _ => Self::System(error),
        }
    }
}

/// An event on one CPU, of all processes.
#[derive(Debug)]
pub struct PerfEvent {
    fd: OwnedFd,
    /// Its records are stacks.
    has_stacks: bool,
}

impl PerfEvent {
    /// Opens an event, which counts from now on.
    ///
    /// # Errors
    /// Why it is refused: the right that is missing, or a kernel without it.
    pub fn open(source: Source, cpu: u32) -> Result<Self, EventError> {
        const EVERY_PROCESS: libc::pid_t = -1;
        const NO_GROUP: libc::c_int = -1;

        let attributes = Attributes::of(source);
        // The kernel has fewer CPUs than an `i32` has values; a number that does not fit is refused.
        let cpu_number = i32::try_from(cpu).unwrap_or(i32::MAX);
        // SAFETY: `attributes` outlives the call, has the size that its field `size` states, and is
        // only read.
        let fd = syscall(unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                EVERY_PROCESS,
                cpu_number,
                NO_GROUP,
                FLAG_CLOEXEC,
            )
        })
        .during("perf_event_open", format!("CPU {cpu}"))?;

        // A descriptor fits into the type that the kernel returns it in.
        let fd = libc::c_int::try_from(fd).unwrap_or(-1);
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self {
            fd,
            has_stacks: matches!(source, Source::CpuClock { .. }),
        })
    }

    /// Events so far, those without a record included.
    ///
    /// # Errors
    /// The operating system's.
    pub fn count(&self) -> io::Result<u64> {
        let mut count = [0_u8; 8];
        // SAFETY: with an empty `read_format` the kernel writes eight bytes, for which `count` has
        // room.
        syscall_len(unsafe {
            libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len())
        })?;
        Ok(u64::from_ne_bytes(count))
    }

    /// Records every `period`-th event from now on; 0 is refused.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        // SAFETY: the request reads a `u64`, which outlives the call.
        syscall(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_PERIOD, &raw const period) })?;
        Ok(())
    }

    /// Stops counting.
    ///
    /// # Errors
    /// The operating system's.
    pub fn disable(&self) -> io::Result<()> {
        self.control(IOC_DISABLE, 0)
    }

    /// Requests of `perf_event_open(2)` with a number.
    fn control(&self, request: libc::Ioctl, argument: libc::c_int) -> io::Result<()> {
        // SAFETY: these requests take a number, not a pointer.
        syscall(unsafe { libc::ioctl(self.fd.as_raw_fd(), request, argument) })?;
        Ok(())
    }
}

/// `PERF_FLAG_FD_CLOEXEC` of `linux/perf_event.h`.
const FLAG_CLOEXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_DISABLE`, `_IO('$', 1)`.
const IOC_DISABLE: libc::Ioctl = 0x2401;
/// `PERF_EVENT_IOC_PERIOD`, `_IOW('$', 4, __u64)`.
const IOC_PERIOD: libc::Ioctl = 0x4008_2404;
/// `PERF_EVENT_IOC_SET_OUTPUT`, `_IO('$', 5)`.
const IOC_SET_OUTPUT: libc::Ioctl = 0x2405;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn errors_name_the_right_or_the_missing_event() {
        let of = |errno| {
            EventError::from(OsError::new("x", "", io::Error::from_raw_os_error(errno))).to_string()
        };
        for errno in [libc::EACCES, libc::EPERM] {
            assert!(of(errno).contains("CAP_PERFMON"), "{errno}");
        }
        for errno in [libc::ENOSYS, libc::ENOENT, libc::ENODEV, libc::EOPNOTSUPP] {
            assert!(of(errno).contains("no such events"), "{errno}");
        }
        assert_eq!(of(libc::EMFILE), "x: Too many open files");
    }

    /// Uses CPU time until the ring of CPU 0 has a stack of this thread, which runs there.
    #[test]
    fn clock_samples_have_the_stack_of_the_running_thread() {
        let Some(event) = opened(Source::CpuClock { hz: 999 }) else {
            return;
        };
        let before = crate::cpu::affinity().expect("a set of CPUs");
        crate::cpu::pin_thread(0).expect("CPU 0 exists");
        let mut ring = Ring::new(event, 16).expect("a ring");
        let own = std::process::id();
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut stacks = Vec::new();

        while stacks.is_empty() {
            assert!(Instant::now() < deadline, "no sample of this thread");
            let _work = std::hint::black_box(std::fs::read("/proc/self/stat"));
            ring.drain(|record| match record {
                Record::Stack(stack) if stack.process == own && !stack.kernel.is_empty() => {
                    stacks.push(stack);
                }
                _ => {}
            });
        }

        before.restore().expect("the former CPUs");
        assert!(stacks[0].kernel.len() > 2, "{stacks:?}");
    }

    #[test]
    fn a_ring_without_a_reader_counts_what_it_loses() {
        let Some(event) = opened(Source::CpuClock { hz: 20_000 }) else {
            return;
        };
        let mut ring = Ring::new(event, 1).expect("a ring");
        let deadline = Instant::now() + Duration::from_secs(20);
        let (mut lost, mut read) = (0, 0);

        while lost == 0 {
            assert!(Instant::now() < deadline, "a page holds 20 s of samples");
            std::thread::sleep(Duration::from_millis(200));
            ring.drain(|record| match record {
                Record::Lost(records) => lost += records,
                _ => read += 1,
            });
        }

        assert!(
            read > 10,
            "{read} records were read around those that were lost"
        );
        ring.event().disable().expect("it counts");
        let count = ring.event().count().expect("a counter");
        assert!(count > 0);
        assert_eq!(
            ring.event().count().expect("a counter"),
            count,
            "it stopped"
        );
    }

    #[test]
    fn a_tracepoint_that_does_not_exist_is_refused() {
        match PerfEvent::open(Source::Tracepoint(u64::from(u32::MAX)), 0) {
            Err(EventError::NotPermitted) => {}
            Err(EventError::System(error)) => assert_eq!(error.errno(), Some(libc::EINVAL)),
            other => panic!("{other:?}"),
        }
    }

    /// An event on CPU 0; `None` where this process may not open one.
    #[expect(
        clippy::print_stderr,
        reason = "the reader of the test log must see what was skipped"
    )]
    fn opened(source: Source) -> Option<PerfEvent> {
        PerfEvent::open(source, 0)
            .inspect_err(|error| eprintln!("skipped: {error}"))
            .ok()
    }
}
