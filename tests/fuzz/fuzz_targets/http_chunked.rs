#![no_main]

libfuzzer_sys::fuzz_target!(|data: (Vec<u8>, Vec<u8>)| {
    linerate_http::fuzzing::decode_chunks(&data.0, &data.1);
});
