//! Plan files of the HTTP lab, in TOML and YAML: whatever the bytes, reading ends, and what is accepted is read back as it
//! was written.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = linerate_lab::fuzzing::plan_from_anything(bytes);
});
