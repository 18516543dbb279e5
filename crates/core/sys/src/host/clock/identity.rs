//! Which clock a reading is of, and how far the wall clock may be wrong.

use std::fs;

use super::RealtimeOffset;
use crate::error::{During, Result};
use crate::syscall::syscall;

/// Identity of the running kernel, new at every boot: a UUID as text
/// (`/proc/sys/kernel/random/boot_id`, random(4)).
///
/// Two processes with the same one read the same monotonic clock, unless they are in different time
/// namespaces (time_namespaces(7), Linux 5.6), which shift it.
///
/// # Errors
/// The operating system's, reading the file.
pub fn boot_id() -> Result<String> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(PATH)
        .during("read", PATH)?
        .trim()
        .to_owned())
}

/// Largest error of the wall clock as the program that keeps it to a time source states it, ns
/// (adjtimex(2), `maxerror`, read only). The kernel lets it grow between that program's updates.
/// `None` while no time source keeps the clock.
///
/// # Errors
/// The operating system's; `EPERM` where a container may not even read it.
pub fn realtime_error_max_ns() -> Result<Option<u64>> {
    // SAFETY: all-zero bytes are a valid timex; no mode is set, so that nothing is changed.
    let mut time: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `time` is writable during the call.
    let state = syscall(unsafe { libc::adjtimex(&raw mut time) }).during("adjtimex", "")?;
    let is_kept = state != libc::TIME_ERROR && time.status & libc::STA_UNSYNC == 0;

    // The field counts microseconds, also where others of the structure count nanoseconds.
    let error_us = u64::try_from(time.maxerror).ok();
    Ok(error_us
        .filter(|_| is_kept)
        .map(|us| us.saturating_mul(1000)))
}

/// Wall clock minus monotonic clock, ns: what turns a time of the one into one of the other until
/// the wall clock is set.
pub fn realtime_offset_ns() -> i64 {
    RealtimeOffset::reading().offset_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{monotonic_ns, unix_ns};

    #[test]
    fn the_offset_turns_the_monotonic_clock_into_the_wall_clock() {
        let now_ns = i128::from(monotonic_ns()) + i128::from(realtime_offset_ns());
        let late_ns = i128::from(unix_ns()) - now_ns;
        assert!(
            (-1_000_000_000..1_000_000_000).contains(&late_ns),
            "{late_ns}"
        );
    }

    #[test]
    fn a_boot_has_one_identity_in_the_form_of_a_uuid() {
        let id = boot_id().expect("proc is mounted");
        assert_eq!(id, boot_id().expect("proc is mounted"));
        let groups: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
    }

    #[test]
    fn the_error_is_within_the_kernels_bounds_where_a_time_source_keeps_the_clock() {
        match realtime_error_max_ns() {
            // NTP_PHASE_LIMIT of the kernel: beyond 16 s the clock counts as not kept.
            Ok(error_ns) => assert!(
                error_ns.is_none_or(|ns| ns <= 16_000_000_000),
                "{error_ns:?}"
            ),
            Err(error) => assert_eq!(error.errno(), Some(libc::EPERM), "{error}"),
        }
    }
}
