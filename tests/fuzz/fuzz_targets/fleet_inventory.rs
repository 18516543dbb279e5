#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| linerate_fuzz::fleet::inventories(text));
