//! Tables of independent cases, several at a time.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Cases at a time. Most of a one-second test is waiting, so this exceeds the cores; more would make the rates of the
/// tests depend on each other.
const AT_A_TIME: usize = 6;

/// Runs `check` on every case and fails at the end with the names of all that failed.
///
/// # Panics
/// When a case failed.
pub fn run_cases<C: Sync>(cases: &[C], name: impl Fn(&C) -> String + Sync, check: impl Fn(&C) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let worker = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(reason) = catch_unwind(AssertUnwindSafe(|| check(case))) {
                let row = format!("{}: {}", name(case), first_line(reason.as_ref()));
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(row);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(cases.len()) {
            scope.spawn(worker);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        failed.is_empty(),
        "{} of {} cases failed: {failed:#?}",
        failed.len(),
        cases.len()
    );
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
