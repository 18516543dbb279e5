//! Texts that users type or keep: plans, factors of a sweep, inventories, known hosts.
#![no_main]

use linerate_fuzz::{as_text, fleet, one_of, texts};
use linerate_trust::fuzzing::known_hosts;

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &as_text(texts::http_plan),
        &as_text(texts::sweep_over),
        &as_text(fleet::inventories),
        &known_hosts,
    ]
));
