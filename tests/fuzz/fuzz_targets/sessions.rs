//! Sessions of several clients of iperf3's dialect, together and one alone.
#![no_main]

use linerate_engine::fuzzing::{independence, sessions};
use linerate_fuzz::one_of;

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(data, &[&sessions, &independence,]));
