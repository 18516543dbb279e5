//! Times of probes: comparing two clocks ends, and the true offset is within the bounds.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_path::fuzzing::clock_bounds(bytes));
