//! Wake-up latency of a thread (sched(7)).

use std::io;

use libc::{c_long, c_uint};

use crate::error::{During, Result};
use crate::syscall::syscall;

/// Lets the calling thread run soon after it is woken, at the cost of others that compute without a
/// pause: it asks for short turns (Linux 6.12), and for precedence where the process may have it.
/// Threads it starts do not inherit this.
///
/// # Errors
/// The operating system's, when it grants neither.
pub fn wake_soon() -> Result<()> {
    set(PRECEDENCE)
        .or_else(|_| set(0))
        .during("sched_setattr", "")
}

fn set(nice: i32) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: RESET_ON_FORK,
        nice,
        priority: 0,
        runtime_ns: TURN_NS,
        deadline_ns: 0,
        period_ns: 0,
    };

    const CALLING_THREAD: c_long = 0;
    const NO_FLAGS: c_uint = 0;

    // SAFETY: the kernel reads as many bytes of the structure as its first field states.
    syscall(unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            CALLING_THREAD,
            &raw const attributes,
            NO_FLAGS,
        )
    })?;
    Ok(())
}

/// `struct sched_attr` in its first version (include/uapi/linux/sched/types.h).
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// The shortest turn the kernel grants.
const TURN_NS: u64 = 100_000;
/// Nice value (setpriority(2)), granted to privileged processes only.
const PRECEDENCE: i32 = -10;
/// `SCHED_FLAG_RESET_ON_FORK`.
const RESET_ON_FORK: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_precedence_to_itself() {
        let nice = || {
            // SAFETY: plain numbers; 0 is the calling thread.
            unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
        };
        let before = nice();
        std::thread::spawn(move || {
            wake_soon().expect("short turns are granted to everybody");
            assert!(nice() == PRECEDENCE || nice() == 0);
            let child = std::thread::spawn(nice).join().expect("no panic");
            assert!(child == 0 || child == before, "{child}");
        })
        .join()
        .expect("no panic");
    }
}
