//! An HTTP load or experiment: how far it is, the last second, both hosts, and every cell so far.

use linerate_model::live::LiveHttp;
use linerate_model::numbers::clock;

use crate::page::{Page, Tone};
use crate::sweep::levels;
use linerate_document::seconds::{end_words, second_words};
use linerate_document::sparkline;

pub(crate) fn draw(page: &mut Page, http: &LiveHttp) {
    let mut pieces = vec![
        page.piece(Tone::Title, "linerate http"),
        page.word(&http.target),
    ];
    if http.runs > 0 {
        pieces.push(page.piece(Tone::Good, format!("run {}/{}", http.run.max(1), http.runs)));
    }

    if let Some(left_s) = http.left_s {
        pieces.push(page.word(format!("left {}", clock(left_s))));
    }

    page.flow(pieces);

    let errors = if http.errors > 0 {
        Tone::Bad
    } else {
        Tone::Plain
    };
    let running = page.word(if http.running.is_empty() {
        "no run has begun yet"
    } else {
        &http.running
    });
    page.flow(vec![running]);

    let pieces = vec![
        page.word(second_words(http)),
        page.piece(errors, format!("{} errors", http.errors)),
        page.word(format!("{} open", http.open)),
        page.piece(
            Tone::Curve,
            sparkline::row(http.ok_per_s.values(), page.width() / 3, page.view.glyphs),
        ),
    ];
    page.flow(pieces);

    if !page.is_small() {
        for (name, end) in [("client", &http.client), ("server", &http.server)] {
            let line = page.word(end_words(name, end.as_ref()));
            page.line(vec![line]);
        }
        page.blank();
    }

    // A load is one run, and has no cells.
    if http.runs > 0 {
        levels(
            page,
            "CELL",
            &http.cells.values().collect::<Vec<_>>(),
            "cells",
        );
    }
}
