//! Conclusions without input and output: what the network allows, what held a cell back, what a
//! study shows. Verdicts come from the rules that the caller passes in (`study::Setup::judge`).

pub(crate) mod c10k;
pub(crate) mod ceiling;
pub(crate) mod changes;
mod knee;
mod medians;
pub(crate) mod study;
pub(crate) mod trials;

pub use changes::study_differences;

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod fixture;
}
