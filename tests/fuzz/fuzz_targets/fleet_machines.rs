//! Agent and coordinator under any events.
#![no_main]

use linerate_fuzz::{fleet, one_of};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[&fleet::agent, &fleet::coordinator, &fleet::kept,]
));
