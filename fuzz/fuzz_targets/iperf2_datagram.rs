#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_iperf2::fuzzing::datagram(data));
