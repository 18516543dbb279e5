//! Reports of a sweep: text with a plot, one line per run, and one HTML file. All of them write the
//! same [`Sweep`](linerate_lab::sweep::Sweep) and compute nothing.

mod document;
mod sentences;
mod values;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::charset::Glyphs;
pub use crate::numbers::clock;
pub(crate) use document::blocks;
pub use document::{csv, html, text};
pub(crate) use sentences::verdict;
pub use values::value;
