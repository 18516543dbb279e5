#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate::fleet::fuzzing::results(data));
