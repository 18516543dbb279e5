#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = linerate_trust::fuzzing::known_hosts(data);
});
