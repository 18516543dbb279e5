//! Parts of a record's report that belong to a product.

use linerate_model::finding::Diagnosis;
use linerate_model::record::RunRecord;

use crate::blocks::Block;

/// The report of what a product measured, as parts of the report of its record. Each is `None` of a
/// record of another kind.
#[derive(Debug, Clone, Copy)]
pub struct ProductReport {
    /// The kind of the run for its title.
    pub name: fn(&RunRecord) -> Option<String>,
    /// The answers.
    pub answers: fn(&RunRecord) -> Option<Vec<String>>,
    /// The report but its title; the second argument is true for a page with charts.
    pub blocks: fn(&RunRecord, bool) -> Option<Vec<Block>>,
    /// The limit of the run and what to do about it.
    pub diagnosis: fn(&Diagnosis) -> Vec<Block>,
}

impl ProductReport {
    /// Report of a record that belongs to no product.
    pub const NONE: Self = Self {
        name: |_| None,
        answers: |_| None,
        blocks: |_, _| None,
        diagnosis: |_| Vec::new(),
    };
}
