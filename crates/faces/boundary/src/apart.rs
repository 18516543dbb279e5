//! Panics end at the boundary, and tests run in threads of their own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use linerate_sys::signal;

/// A panic that was caught, with its message. It is a defect of this library.
#[derive(Debug)]
pub struct Panicked(pub String);

/// The result of `work`, or `otherwise` after a panic.
pub fn guard<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    // What a panic leaves half done is behind locks, which are poisoned or hold plain values.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// Runs `work` in a thread of its own and waits for it.
///
/// All signals are blocked in it, and in the threads that it starts: handlers of the program run in
/// the program's threads, and a write to a closed pipe or socket is an error instead of a
/// `SIGPIPE`.
///
/// # Errors
/// The panic of `work`, or that there can be no thread.
pub fn run_apart<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, Panicked> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("linerate".to_owned())
            .spawn_scoped(scope, || {
                signal::block_all();
                work()
            });
        let thread =
            thread.map_err(|error| Panicked(format!("unable to start a thread: {error}")))?;
        thread.join().map_err(|panic| Panicked(message(&*panic)))
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_of_the_work_is_its_result() {
        let panicked = run_apart(|| -> i32 { panic!("number {}", 7) }).expect_err("it panics");
        assert_eq!(panicked.0, "number 7");
        assert_eq!(run_apart(|| 7).expect("it does not panic"), 7);
        assert_eq!(guard(3, || panic!("caught")), 3);
    }
}
