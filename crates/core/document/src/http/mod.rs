//! Reports of the HTTP lab: a run of the load generator, a whole study, two studies side by side,
//! the checks and the plan before one, and what is seen while it runs. They write
//! [`linerate_model::http`] and judge nothing.

mod compare;
mod grid;
mod hdr;
mod labels;
mod load;
pub(crate) mod numbers;
mod plan;
mod plots;
mod preflight;
mod progress;
pub(crate) mod study;
mod tables;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use compare::{comparison_html, comparison_json, comparison_text};
pub(crate) use load::load_blocks;
pub use load::{LoadReport, load_text};
pub use plan::{Needs, plan_json, plan_text};
pub use preflight::{preflight, preflight_json};
pub use progress::{
    Progress, Stage, answers, block, cell_words, end_line, end_words, event, finished_line,
    run_words, second_words,
};
pub use study::{html, json, text};

pub use crate::style::Style;
