//! Error classes of system errors.

use std::io;

use linerate_model::http::ErrorClass;
use linerate_sys::errno;

/// Class of a connect(2) error.
pub(crate) fn of_connect(error: &io::Error) -> ErrorClass {
    match error.raw_os_error() {
        Some(errno::ECONNREFUSED | errno::ECONNRESET) => ErrorClass::ConnectRefused,
        Some(errno::ETIMEDOUT) => ErrorClass::ConnectTimeout,
        Some(errno::EADDRNOTAVAIL | errno::EADDRINUSE) => ErrorClass::AddrNotAvail,
        Some(errno::EMFILE | errno::ENFILE) => ErrorClass::FdLimit,
        Some(errno::ENOBUFS | errno::ENOMEM) => ErrorClass::NoBuffers,
        _ => ErrorClass::Unreachable,
    }
}

/// Class of an error on an open connection; `has_begun`: part of the response had arrived;
/// `is_idle`: no request was outstanding.
pub(crate) fn of_exchange(error: &io::Error, has_begun: bool, is_idle: bool) -> ErrorClass {
    match error.raw_os_error() {
        Some(errno::ETIMEDOUT) => ErrorClass::Timeout,
        Some(errno::ENOBUFS | errno::ENOMEM) => ErrorClass::NoBuffers,
        Some(errno::EHOSTUNREACH | errno::ENETUNREACH | errno::EPERM) => ErrorClass::Unreachable,
        _ if is_idle => ErrorClass::ResetIdle,
        _ if has_begun => ErrorClass::ResetMidAnswer,
        _ => ErrorClass::ResetBeforeAnswer,
    }
}
