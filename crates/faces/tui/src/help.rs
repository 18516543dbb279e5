//! The keys.

use crate::page::{Page, Tone};

pub(crate) fn draw(page: &mut Page) {
    let title = page.piece(Tone::Title, "Keys");
    page.line(vec![title]);

    let keys = [
        ("q, Ctrl-C", "end it, as Ctrl-C does without a view"),
        ("p", "pause and continue the picture; tests continue"),
        ("?", "this text, and back"),
        ("Ctrl-Z", "stop; fg continues"),
    ];
    for (key, text) in keys {
        let line = vec![page.word(format!(" {key:<10}")), page.word(text)];
        page.line(line);
    }

    let note = page.word("A curve begins at 0 and ends at its highest point.");
    page.flow(vec![note]);
}
