#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = linerate_engine::fuzzing::sessions(data);
    linerate_engine::fuzzing::independence(data);
});
