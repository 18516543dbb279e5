//! Answers of the kernel: whatever the bytes, reading ends and stays inside.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = linerate_host::fuzzing::decode_anything(bytes);
});
