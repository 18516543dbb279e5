//! Reports of a sweep: text with a plot, JSON, one line per run, and one HTML file. All of them write the same [`Sweep`](linerate_lab::sweep::Sweep)
//! and compute nothing.

mod document;
mod json;
mod sentences;
mod values;

#[cfg(test)]
mod tests;

pub use crate::glyphs::Glyphs;
pub use crate::numbers::clock;
pub use document::{csv, html, text};
pub use json::json;
pub use values::value;
