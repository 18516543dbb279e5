//! Reports of other programs: any text is imported or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_model::EventSink;
use linerate_store::Builder;
use linerate_history::readers::{Command, import, import_output};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    // Pasted text begins with a command.
    let (command, output) = text.split_once('\n').unwrap_or_default();
    let _ = import_output(Command::parse(command).as_ref(), output);

    let Ok(contents) = import(Some("fuzz"), &text, &|_| 0) else {
        return;
    };
    for test in contents.tests {
        let mut builder = Builder::default();
        test.events
            .iter()
            .for_each(|event| builder.event(event).expect("a builder takes every event"));
        let _ = builder.finish();
    }
});
