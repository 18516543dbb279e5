//! `i_errno` and the texts of its values.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use linerate_boundary::Panicked;
use linerate_iperf3::wire::ErrorCode;
use linerate_model::{Failure, FailureKind};

/// Number of the last failure of any test of the process, 0 before the first; a plain `int` to C.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static i_errno: AtomicI32 = AtomicI32::new(0);

/// The last failure with its cause, which the number lacks.
static LAST: Mutex<Option<Failure>> = Mutex::new(None);

/// Stores a failure; reports alone have other words for the end of a connection. Returns what a
/// function that failed returns.
pub(crate) fn fail(mut failure: Failure) -> i32 {
    if failure.kind == FailureKind::PeerClosed {
        failure.message = ErrorCode::CtrlClose.message(None);
    }

    i_errno.store(number(&failure), Ordering::Relaxed);
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    -1
}

/// As [`fail`], for a failure without a cause.
pub(crate) fn fail_with(code: ErrorCode) -> i32 {
    fail(code.failure(None))
}

/// A defect of this library.
pub(crate) fn panicked(panic: &Panicked) -> Failure {
    ErrorCode::InitTest.failure(Some(&panic.0))
}

/// The text of a number, with the cause if it is the last failure's.
pub(crate) fn text(number_of: i32) -> String {
    if number_of == 0 {
        return "no error".to_owned();
    }

    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        // The stored failure has the cause; a number of another failure has the general text.
        Some(failure) if number(failure) == number_of => failure.message.clone(),
        _ => ErrorCode::from_number(number_of).message(None),
    }
}

fn number(failure: &Failure) -> i32 {
    // These kinds have no number of their own in a report, but `i_errno` needs one.
    let unnumbered = match failure.kind {
        FailureKind::Interrupted => ErrorCode::ClientTerm,
        FailureKind::PeerTerminated => ErrorCode::ServerTerm,
        FailureKind::PeerClosed => ErrorCode::CtrlClose,
        _ => ErrorCode::InitTest,
    };
    failure.code.unwrap_or(unnumbered.number())
}
