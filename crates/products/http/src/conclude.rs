//! Conclusions without input and output: what the network allows, what held a cell back, what a
//! study shows. Verdicts come from the rules that the caller passes in (`study::Setup::judge`).

pub(crate) mod c10k;
pub(crate) mod ceiling;
mod facts;
mod knee;
mod medians;
pub(crate) mod start_record;
pub(crate) mod study;
mod study_differences;
pub(crate) mod trials;

pub use study_differences::study_differences;

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod fixture;
}
