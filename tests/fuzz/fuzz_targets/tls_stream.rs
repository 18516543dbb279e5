#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = linerate_engine::dialect::native::fuzzing::tls_stream(data);
});
