//! Reports of other programs: any text is imported or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_model::EventSink;
use linerate_record::Builder;
use linerate_record::import::import;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(contents) = import(Some("fuzz"), &text, &|_| 0) else { return };
    for test in contents.tests {
        let mut builder = Builder::default();
        test.events.iter().for_each(|event| builder.event(event).expect("a builder takes every event"));
        let _ = builder.finish();
    }
});
