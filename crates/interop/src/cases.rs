//! Tables of independent cases, several at a time, and observations that a busy host can spoil.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Cases at a time. Most of a one-second test is waiting, so this exceeds the cores; more would make the rates of the
/// tests depend on each other.
const AT_A_TIME: usize = 6;

/// Times an observation is made before its failure is believed, see [`patiently`].
const ATTEMPTS: usize = 3;

/// Runs `check` on every case, several at a time, and fails at the end with the names of all that failed. A case that
/// failed beside others is looked at again alone: what the others did to its rates says nothing about the program.
///
/// # Panics
/// When a case failed.
pub fn run_cases<C: Sync>(cases: &[C], name: impl Fn(&C) -> String + Sync, check: impl Fn(&C) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let worker = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if outcome(|| check(case)).is_err() {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(case);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(cases.len()) {
            scope.spawn(worker);
        }
    });
    let disturbed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let again = |case: &&C| {
        let reason = attempt(ATTEMPTS - 1, || check(case)).err()?;
        Some(format!("{}: {}", name(case), first_line(reason.as_ref())))
    };
    let failed: Vec<String> = disturbed.iter().filter_map(again).collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases failed: {failed:#?}",
        failed.len(),
        cases.len()
    );
}

/// Makes an observation that other work of the host can spoil, such as a rate or the order of two programs, and makes
/// it again when it failed. A program that is wrong is wrong every time.
///
/// # Panics
/// When every attempt failed, with the last one's reason.
pub fn patiently(check: impl Fn()) {
    if let Err(reason) = attempt(ATTEMPTS, check) {
        resume_unwind(reason);
    }
}

fn attempt(times: usize, check: impl Fn()) -> thread::Result<()> {
    let mut last = Ok(());
    for _ in 0..times {
        last = outcome(&check);
        if last.is_ok() {
            break;
        }
    }
    last
}

fn outcome(check: impl Fn()) -> thread::Result<()> {
    catch_unwind(AssertUnwindSafe(check))
}

/// The message of a panic, which is a `String` or a `&str` whenever it came from an assertion.
fn first_line(reason: &(dyn Any + Send)) -> &str {
    let text = reason
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| reason.downcast_ref().copied());
    text.and_then(|text| text.lines().next()).unwrap_or("no reason given")
}

/// Says why a test is not run here. The reason is a fact about the host, never about the program under test.
#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see what was not tested"
)]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// For a test that judges or takes what the whole host has: none of its file that asks for the same runs beside it.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has left nothing behind that matters here.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
