//! Reports of a sweep: text with a plot, JSON, one line per run, and one HTML file. All of them write the same [`Sweep`]
//! and compute nothing.

mod csv;
mod html;
mod json;
mod plot;
mod sentences;
mod text;
mod values;

#[cfg(test)]
mod tests;

pub use crate::figures::clock;
pub use crate::glyphs::Glyphs;
pub use csv::csv;
pub use html::html;
pub use json::json;
pub use text::text;
