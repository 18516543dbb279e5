#![no_main]

libfuzzer_sys::fuzz_target!(|data: (Vec<u8>, Vec<u8>)| {
    linerate_fuzz::native::stream_frames(&data.0, &data.1);
});
