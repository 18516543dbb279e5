//! Reports of the HTTP lab: a run of the load generator, a whole study, the checks and the plan
//! before one, and what is seen while it runs. They write [`linerate_model::http`] and judge
//! nothing.

mod grid;
mod labels;
mod load;
mod plots;
mod preflight;
mod progress;
mod record;
mod study;
mod tables;

#[cfg(test)]
mod tests;

pub use load::{LoadReport, load_text};
pub use preflight::{Needs, plan_json, plan_text, preflight, preflight_json};
pub(crate) use progress::{
    Stage, answers, block, cell_words, event, finished_line, load_event, load_line, run_words,
};
pub use record::RECORDS;
pub use study::{html, json, text};
