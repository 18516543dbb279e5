//! Outputs of other programs, and records.
#![no_main]

use linerate_fuzz::{as_text, one_of, texts};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &texts::host_tools,
        &texts::test_reports,
        &as_text(texts::record),
    ]
));
