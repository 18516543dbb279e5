//! Conclusions without input and output: what the network allows, what held a cell back, what a
//! study shows. Verdicts come from the rules that the caller passes in ([`study::Setup::judge`]).

pub(crate) mod c10k;
pub mod ceiling;
mod facts;
#[cfg(test)]
pub(crate) mod fixture;
mod knee;
mod medians;
pub mod start_record;
pub mod study;
mod study_differences;
pub mod trials;

pub use study_differences::study_differences;
