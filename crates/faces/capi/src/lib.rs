//! `liblinerate.so`: tests and servers of the iperf3 dialect for programs in C and other languages.
//!
//! `include/linerate.h` is made from this file. The options are those of the command line, so both
//! have one parser, one set of defaults and one wording of errors.

// Exported names are unsafe attributes; blocks of unsafe code are in `linerate-boundary`.
#![allow(unsafe_code)]

mod events;
mod test;

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use linerate_boundary::{Callback, Text, guard};

pub use test::Test;

/// The test has ended by itself.
pub const LINERATE_DONE: c_int = 0;
/// linerate_stop() ended the test.
pub const LINERATE_STOPPED: c_int = 1;
/// The test has failed, or an argument was not accepted; linerate_error() has the reason.
pub const LINERATE_FAILED: c_int = -1;

/// A test without options; null when there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_new() -> Option<Box<Test>> {
    guard(None, || Some(Box::default()))
}

/// Frees a test, which must not run.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_free(test: Option<Box<Test>>) {
    guard((), || drop(test));
}

/// Adds an option: a long name of `linerate iperf3` without the dashes, and its value, or null for
/// an option without one. `client` with the name of a host makes the test a client, `server` makes
/// it a server.
///
/// Options act in the order in which they are added; linerate_run() checks them. Options about the
/// output have no effect. Returns LINERATE_DONE, or LINERATE_FAILED for a name that is null or
/// empty.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_set(test: Option<&Test>, option: Text, value: Text) -> c_int {
    guard(LINERATE_FAILED, || {
        test.map_or(LINERATE_FAILED, |test| {
            test.set(option.read(), value.read())
        })
    })
}

/// Registers the function that receives each event of the test as a JSON object with the members
/// `event` and `data`, and the pointer it is called with; null for no function. Events are those of
/// `--json-stream`: `start`, `interval`, `end`, `error`; and `listening` with the address of a
/// server, and `warning`.
///
/// linerate_run() calls the function in another thread, one event at a time. The function must not
/// free the test.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_on_event(
    test: Option<&Test>,
    function: Option<extern "C" fn(event: *const c_char, user: *mut c_void)>,
    user: *mut c_void,
) {
    guard((), || {
        if let Some(test) = test {
            test.observe(function.map(|function| Callback::new(function, user)));
        }
    });
}

/// Runs the test and waits for its end: a client for one test, a server until linerate_stop() or as
/// its options state. Returns LINERATE_DONE, LINERATE_STOPPED or LINERATE_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_run(test: Option<&Test>) -> c_int {
    guard(LINERATE_FAILED, || test.map_or(LINERATE_FAILED, Test::run))
}

/// Ends the test that linerate_run() runs in another thread; the report has what was measured until
/// then. Without a test that runs, the next one ends at once.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_stop(test: Option<&Test>) {
    guard((), || {
        if let Some(test) = test {
            test.stop();
        }
    });
}

/// The report of the last test as a JSON document in the form of iperf3; null before there is one.
/// The string is valid until the test runs again or is freed.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_result(test: Option<&Test>) -> *const c_char {
    guard(ptr::null(), || test.map_or(ptr::null(), Test::result))
}

/// Why the last run did not end with LINERATE_DONE; null after one that did. The string is valid
/// until the test runs again or is freed.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_error(test: Option<&Test>) -> *const c_char {
    guard(ptr::null(), || test.map_or(ptr::null(), Test::error))
}

/// The number that iperf3 has for that reason (`i_errno` of its library), 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_error_number(test: Option<&Test>) -> c_int {
    guard(0, || test.map_or(0, Test::error_number))
}

/// The version of the library; a string that is always valid.
#[unsafe(no_mangle)]
pub extern "C" fn linerate_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
