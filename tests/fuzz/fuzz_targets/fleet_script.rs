//! Output of a shell and messages of a coordinator, in any order.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fleet::run::fuzzing::script(data));
