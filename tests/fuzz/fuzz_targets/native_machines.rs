//! Client and server machine of the native dialect under any events.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::native::machines(data));
