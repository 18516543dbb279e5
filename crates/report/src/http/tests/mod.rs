//! Studies whose numbers are known, in every form.

mod around;
mod forms;
mod runs;
mod study;

use linerate_model::http::Study;

use super::Style;
use super::fixtures::{client_limited, full, hostile, idle_only, interrupted, large, without_agent};
use crate::glyphs::Glyphs;

const BLOCKS: Style = Style {
    glyphs: Glyphs::Blocks,
    is_coloured: false,
};

fn all() -> [(&'static str, Study); 7] {
    [
        ("full", full()),
        ("without agent", without_agent()),
        ("interrupted", interrupted()),
        ("client-limited", client_limited()),
        ("idle only", idle_only()),
        ("hostile", hostile()),
        ("large", large(20, 50)),
    ]
}

/// Commands to copy may be longer than a line.
fn check_lines(name: &str, text: &str) {
    for line in text.lines() {
        let is_command = line.trim_start().starts_with("fix: ");
        assert!(is_command || line.chars().count() <= 120, "{name}: {line}");
        assert!(
            line.chars().all(|c| !crate::printable::is_hostile(c)),
            "{name}: {line:?}"
        );
        assert_eq!(line, line.trim_end(), "{name}");
    }
}
