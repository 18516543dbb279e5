#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_iperf3::fuzzing::client_control(data));
