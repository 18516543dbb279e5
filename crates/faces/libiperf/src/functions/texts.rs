//! Versions, error texts and what the system can do.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::ptr;

use linerate::command_line::iperf3::FOLLOWS;
use linerate_boundary::{Kept, guard};

use crate::error::text;

/// Name and release of the program that this library follows; a `char` array to C. Its size is the
/// one of the original's, because programs that use it contain a copy of that size.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static version: [u8; NAME.len() + FOLLOWS.len() + 1] = joined(NAME, FOLLOWS);

/// The release alone.
static RELEASE: [u8; FOLLOWS.len() + 1] = joined("", FOLLOWS);

const NAME: &str = "iperf ";

/// Both texts and a NUL.
const fn joined<const LEN: usize>(first: &str, second: &str) -> [u8; LEN] {
    let first = first.as_bytes();
    let second = second.as_bytes();
    let mut array = [0; LEN];

    let mut index = 0;
    // The last byte stays 0 as the end of the string in C.
    while index < LEN - 1 {
        array[index] = if index < first.len() {
            first[index]
        } else {
            second[index - first.len()]
        };
        index += 1;
    }

    array
}

#[unsafe(no_mangle)]
extern "C" fn iperf_get_iperf_version() -> *const c_char {
    RELEASE.as_ptr().cast()
}

thread_local! {
    /// The last text of `iperf_strerror`, valid until the thread calls it again.
    static TEXT: RefCell<Kept> = RefCell::default();
}

/// The text of an error number. It is valid until the thread calls this again.
#[unsafe(no_mangle)]
extern "C" fn iperf_strerror(number: c_int) -> *const c_char {
    guard(ptr::null(), || {
        TEXT.with_borrow_mut(|kept| {
            kept.set(Some(&text(number)));
            kept.as_ptr()
        })
    })
}

/// Exports functions that state what every supported system can do.
macro_rules! present {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> c_int {
                1
            }
        )*
    };
}

present! { iperf_has_zerocopy has_sendfile has_tcpinfo has_tcpinfo_retransmits }
