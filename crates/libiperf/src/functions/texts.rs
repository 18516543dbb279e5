//! Versions, error texts and what the system can do.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::ptr;

use linerate::command_line::iperf3::{FOLLOWS, PROGRAM_VERSION};
use linerate_boundary::{Kept, guard};

use crate::error::text;

/// Name and version of the program as its reports show them; a `char` array to C.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static version: [u8; TEXT_LEN] = array(PROGRAM_VERSION);

/// The release of iperf3 that this library follows.
static RELEASE: [u8; TEXT_LEN] = array(FOLLOWS);

/// Callers copy as many bytes as they expect at most, so there are some behind the text.
const TEXT_LEN: usize = 64;

/// The text, ended by NULs.
const fn array(text: &str) -> [u8; TEXT_LEN] {
    let text = text.as_bytes();
    let mut array = [0; TEXT_LEN];
    let mut index = 0;
    while index < text.len() && index < TEXT_LEN - 1 {
        array[index] = text[index];
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
