//! Pasted text: any text becomes snapshots that can be judged and compared.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_doctor::{Observed, compare, diagnose};
use linerate_host::import::import;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let observed: Vec<Observed> = import("fuzz", &text)
        .snapshots
        .into_iter()
        .map(Observed::once)
        .collect();
    let _ = diagnose(&observed, &[]);
    if let [a, b, ..] = observed.as_slice() {
        let _ = compare(a, b, &[]);
    }
});
