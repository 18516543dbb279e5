//! Functions that make, reset and free tests.

use std::ffi::c_int;

use linerate_boundary::guard;
use linerate_iperf3::wire::ErrorCode;

use crate::error::fail_with;
use crate::settings::{SCTP, Settings, TCP, UDP};
use crate::test::{Test, change};

#[unsafe(no_mangle)]
extern "C" fn iperf_new_test() -> Option<Box<Test>> {
    guard(None, || Some(Box::new(Test::new())))
}

#[unsafe(no_mangle)]
extern "C" fn iperf_defaults(test: Option<&Test>) -> c_int {
    change(test, |settings| {
        let role = settings.role;
        *settings = Settings {
            role,
            ..Settings::defaults()
        };
    });
    0
}

#[unsafe(no_mangle)]
extern "C" fn iperf_free_test(test: Option<Box<Test>>) {
    guard((), || drop(test));
}

#[unsafe(no_mangle)]
extern "C" fn iperf_reset_test(test: Option<&Test>) {
    change(test, Settings::reset);
}

/// Each run has its own totals.
#[unsafe(no_mangle)]
extern "C" fn iperf_reset_stats(_: Option<&Test>) {}

/// Ends a test that runs in another thread; nothing is left open after a run.
#[unsafe(no_mangle)]
extern "C" fn iperf_client_end(test: Option<&Test>) -> c_int {
    guard((), || {
        if let Some(test) = test {
            test.stop();
        }
    });
    0
}

#[unsafe(no_mangle)]
extern "C" fn set_protocol(test: Option<&Test>, protocol: c_int) -> c_int {
    if ![TCP, UDP, SCTP].contains(&protocol) {
        return fail_with(ErrorCode::Protocol);
    }
    change(test, |settings| settings.protocol = protocol);
    0
}
