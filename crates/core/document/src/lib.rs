//! Writers: they turn results into text, JSON and HTML.
//!
//! Nothing here measures, connects or decides; events of [`linerate_model`] or finished results go
//! in, text comes out.
//!
//! * [`sparkline`]: points over time as characters
//! * [`service`]: logs and numbers of a server
//! * [`record`]: records of runs as HTML, text and Markdown
//! * [`trial`]: the closing line of `linerate try`
//! * [`Output`]: where lines go, shared by all writers of a process

#![forbid(unsafe_code)]

pub mod blocks;
pub mod boxes;
mod charset;
pub mod chart;
pub mod expected;
pub mod exposition;
mod figure;
pub mod frame;
pub mod heat;
pub mod live;
pub mod log_rate_limit;
pub mod number;
pub mod page;
pub mod plot;
pub mod pretty;
pub mod progress;
pub mod record;
pub mod seconds;
pub mod service;
pub mod short;
pub mod sparkline;
pub mod style;
pub mod table;
pub mod trial;
pub mod wrap;

mod draw;
mod memory_output;
mod output;
mod write_queue;

pub use blocks::{Block, Document, Download, Entry};
pub use charset::Glyphs;
use linerate_model::numbers;
use linerate_model::printable::printable_json;
pub use memory_output::MemoryOutput;
pub use output::{DroppedNotice, Output};
pub use style::Style;

/// A value as indented JSON with a line end. Only one type is indented, so that no other is
/// compiled for it.
pub fn pretty_json(value: &impl serde::Serialize) -> String {
    let plain = serde_json::to_string(value).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&plain).unwrap_or_default();
    let mut text = printable_json(&serde_json::to_string_pretty(&value).unwrap_or_default());
    text.push('\n');
    text
}

/// As [`members`], without those that are `null`.
pub fn present(object: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    let mut members = members(object);
    members.retain(|_, value| !value.is_null());
    members
}

/// The members of an object that `json!` just made.
pub fn members(object: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    match object {
        serde_json::Value::Object(members) => members,
        _ => serde_json::Map::new(),
    }
}
