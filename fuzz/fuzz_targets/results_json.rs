#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_iperf3::fuzzing::results_json(data));
