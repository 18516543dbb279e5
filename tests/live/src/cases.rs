//! Tables of independent cases, and tests that this host cannot run.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Cases at a time. Most of a one-second test is waiting, so this exceeds the cores; more would
/// make the rates of the tests depend on each other.
const AT_A_TIME: usize = 6;

/// Runs `check` on every case, several at a time. The output of the test shows each case that
/// panicked.
pub fn each_case<C: Sync + Debug>(cases: &[C], check: impl Fn(&C) + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _named = NamedCase(format!("{case:?}"));
            check(case);
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(cases.len()) {
            scope.spawn(worker);
        }
    });
}

struct NamedCase(String);

impl Drop for NamedCase {
    #[allow(
        clippy::print_stderr,
        reason = "the reader of the test log must see which case failed"
    )]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failed case: {:.300}", self.0);
        }
    }
}

/// Prints a figure that a test measured, beside its outcome.
#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log compares values of several runs"
)]
pub fn report(figure: &str) {
    eprintln!("{figure}");
}

/// Reports that a test does not run, because this host is missing a program, rights or a setting
/// that its administrator can provide.
///
/// # Panics
///
/// With `LINERATE_NO_SKIPS` set, as in CI: a test that does not run protects nothing.
pub fn skip(reason: &str) {
    assert!(
        std::env::var_os("LINERATE_NO_SKIPS").is_none(),
        "not tested: {reason}"
    );
    unsupported(reason);
}

/// Reports that a test does not run, because this kernel or hardware lacks what it is about.
#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see what was not tested"
)]
pub fn unsupported(reason: &str) {
    eprintln!("skipped: {reason}");
}
