//! What a sweep varies, as typed behind `--over`: whatever the text, reading ends, and what is accepted is read back as it
//! is printed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = linerate_lab::fuzzing::factors_from_anything(text);
});
