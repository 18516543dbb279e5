//! CPU time and placement.

use std::time::Duration;
use std::{fs, io};

use libc::{c_int, pid_t};

use crate::clock::ns;
use crate::error::{During, Result};
use crate::syscall::syscall;

/// CPU time used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// In our own code.
    pub user: Duration,
    /// In the kernel on our behalf; not what interrupts took.
    pub system: Duration,
}

/// CPU time of all threads of this process so far (`RUSAGE_SELF`, getrusage(2)).
pub fn process_time() -> CpuTime {
    usage(libc::RUSAGE_SELF)
}

/// CPU time of the calling thread so far (`RUSAGE_THREAD`, Linux 2.6.26).
pub fn thread_time() -> CpuTime {
    usage(libc::RUSAGE_THREAD)
}

/// CPU time of all threads of any process so far, those that ended included, in nanoseconds
/// (clock_getcpuclockid(3)).
///
/// # Errors
/// The operating system's; `ESRCH` for a process that does not exist.
pub fn time_of_process_ns(pid: u32) -> Result<u64> {
    const OPERATION: &str = "clock_gettime of process";

    let number = pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH));
    let number = number.during(OPERATION, pid)?;
    let mut clock = 0;

    // SAFETY: `clock` is writable during the call.
    let code = unsafe { libc::clock_getcpuclockid(number, &raw mut clock) };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code)).during(OPERATION, pid);
    }

    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable during the call.
    syscall(unsafe { libc::clock_gettime(clock, &raw mut time) }).during(OPERATION, pid)?;
    Ok(ns(time))
}

fn usage(who: c_int) -> CpuTime {
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable during the call, which cannot fail for a valid `who`.
    unsafe { libc::getrusage(who, &raw mut usage) };
    CpuTime {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
    }
}

fn duration(time: libc::timeval) -> Duration {
    let us = u32::try_from(time.tv_usec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), 0)
        + Duration::from_micros(us.into())
}

/// Confines every thread of the process to one CPU; threads to come inherit it
/// (sched_setaffinity(2)).
///
/// # Errors
/// The operating system's; `EINVAL` for a CPU that does not exist or is forbidden to us.
pub fn pin_process(cpu: usize) -> Result<()> {
    set_process_mask(&single(cpu)).during("sched_setaffinity", format_args!("cpu {cpu}"))
}

/// Confines the calling thread to one CPU.
///
/// # Errors
/// As [`pin_process`].
pub fn pin_thread(cpu: usize) -> Result<()> {
    set_mask(CALLING_THREAD, &single(cpu)).during("sched_setaffinity", format_args!("cpu {cpu}"))
}

/// The CPUs a thread may run on, saved to be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Affinity {
    mask: Mask,
}

/// The CPUs the calling thread may run on (sched_getaffinity(2)).
///
/// # Errors
/// The operating system's.
pub fn affinity() -> Result<Affinity> {
    let mut mask = [0; MASK_WORDS];
    // SAFETY: the mask is as long as its size and writable; the call takes any length that holds
    // all CPUs.
    syscall(unsafe {
        libc::sched_getaffinity(CALLING_THREAD, MASK_BYTES, mask.as_mut_ptr().cast())
    })
    .during("sched_getaffinity", "")?;
    Ok(Affinity { mask })
}

impl Affinity {
    /// Lets the calling thread run on these CPUs again.
    ///
    /// # Errors
    /// The operating system's.
    pub fn restore(&self) -> Result<()> {
        set_mask(CALLING_THREAD, &self.mask).during("sched_setaffinity", "restore")
    }

    /// Lets every thread of the process run on these CPUs again.
    ///
    /// # Errors
    /// The operating system's.
    pub fn restore_process(&self) -> Result<()> {
        set_process_mask(&self.mask).during("sched_setaffinity", "restore")
    }

    /// Number of these CPUs.
    pub fn count(&self) -> usize {
        self.mask
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The numbers of the CPUs, ascending.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MASK_WORDS * 64).filter(|cpu| self.mask[cpu / 64] & (1 << (cpu % 64)) != 0)
    }

    /// The number of the CPU, if it is one.
    pub fn only(&self) -> Option<usize> {
        self.cpus().next().filter(|_| self.count() == 1)
    }
}

/// True if the calling thread may run on this CPU; true when the kernel does not report it.
pub fn allows(cpu: usize) -> bool {
    affinity().map_or(true, |affinity| affinity.cpus().any(|known| known == cpu))
}

/// Number of CPUs that the calling thread may run on, at least one.
pub fn online_cpus() -> usize {
    affinity().map_or(1, |affinity| affinity.count().max(1))
}

/// Idle time so far of the CPUs that the calling thread may run on, together: idle or waiting
/// for I/O, in ticks of 10 ms (`/proc/stat`, proc_stat(5)).
///
/// # Errors
/// The operating system's.
pub fn idle_time() -> Result<Duration> {
    const FILE: &str = "/proc/stat";

    let allowed = affinity()?;
    let text = fs::read_to_string(FILE).during("read", FILE)?;
    let ticks = allowed
        .cpus()
        .filter_map(|cpu| idle_ticks(&text, cpu))
        .sum::<u64>();

    Ok(Duration::from_millis(ticks.saturating_mul(TICK_MS)))
}

/// The kernel's unit of time in files (`USER_HZ` is 100).
const TICK_MS: u64 = 10;

/// Fields 4 and 5 of the line of a CPU in `/proc/stat`.
fn idle_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu} ");
    let fields = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let mut fields = fields
        .split_ascii_whitespace()
        .skip(3)
        .map(str::parse::<u64>);
    let (idle, io_wait) = (fields.next()?.ok()?, fields.next()?.ok()?);

    Some(idle.saturating_add(io_wait))
}

fn set_process_mask(mask: &Mask) -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/task")? {
        let Some(thread) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        match set_mask(thread, mask) {
            // A thread that ended meanwhile needs no placement.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            other => other?,
        }
    }

    Ok(())
}

fn set_mask(thread: pid_t, mask: &Mask) -> io::Result<()> {
    // SAFETY: the mask is as long as its size; the kernel only reads it.
    syscall(unsafe { libc::sched_setaffinity(thread, MASK_BYTES, mask.as_ptr().cast()) })?;
    Ok(())
}

/// A mask of one CPU; an empty one, which the kernel refuses, for a number beyond every machine.
fn single(cpu: usize) -> Mask {
    let mut mask = [0; MASK_WORDS];
    if let Some(word) = mask.get_mut(cpu / 64) {
        *word = 1 << (cpu % 64);
    }
    mask
}

/// One bit per CPU. The C library's type ends at 1024 CPUs, and a kernel built for more refuses so
/// short a mask.
type Mask = [u64; MASK_WORDS];

const MASK_WORDS: usize = 128;
const MASK_BYTES: usize = size_of::<Mask>();
const CALLING_THREAD: pid_t = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_of_a_cpu_includes_its_waits_for_io() {
        let stat = "cpu  9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 1 2 3 70 0 6 7 8 0 0\nintr 1\n";
        assert_eq!(
            [0, 1, 2].map(|cpu| idle_ticks(stat, cpu)),
            [Some(45), Some(70), None]
        );
        assert!(idle_time().expect("every kernel has the file") > Duration::ZERO);
    }

    #[test]
    fn a_process_has_a_clock_that_runs_and_a_missing_one_has_none() {
        let own = || time_of_process_ns(std::process::id()).expect("our own");
        let before = own();
        while own() == before {
            std::hint::spin_loop();
        }

        assert!(time_of_process_ns(1).is_ok(), "a process of another user");
        for none in [u32::MAX, 0x3fff_fff0] {
            assert!(time_of_process_ns(none).is_err(), "{none}");
        }
    }
}
