#![no_main]

libfuzzer_sys::fuzz_target!(
    |data: (u8, Vec<u8>, Vec<u8>)| linerate_http::fuzzing::response(data.0, &data.1, &data.2)
);
