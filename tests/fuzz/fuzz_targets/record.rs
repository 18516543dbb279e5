//! A record as text: reading ends, a record that is accepted is read back unchanged, and playing it
//! back ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_store::{playback, text};

fuzz_target!(|typed: &str| {
    let Ok(record) = text::read(typed) else {
        return;
    };
    assert_eq!(text::read(&text::write(&record)).as_ref(), Ok(&record));
    for trial in &record.trials {
        let _ = playback(trial);
    }
});
