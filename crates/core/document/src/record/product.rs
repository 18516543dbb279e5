//! Parts of a record's report that belong to a product.

use linerate_model::finding::Diagnosis;
use linerate_model::record::RunRecord;

use crate::blocks::{Block, Document};
use crate::frame::Head;

/// The report of what a product measured, as parts of the report of its record. Each is `None` of a
/// record of another kind.
#[derive(Debug, Clone, Copy)]
pub struct ProductReport {
    /// The kind of the run for its title.
    pub name: fn(&RunRecord) -> Option<String>,
    /// The answers.
    pub answers: fn(&RunRecord) -> Option<Vec<String>>,
    /// The report but its title.
    pub blocks: fn(&RunRecord) -> Option<Vec<Block>>,
    /// The limit of the run and what to do about it.
    pub diagnosis: fn(&Diagnosis) -> Vec<Block>,
    /// The limit in one sentence, and the first step.
    pub limit: fn(&Diagnosis) -> (String, Option<String>),
    /// The same as evidence and cards of a page.
    pub findings: fn(&Diagnosis) -> Vec<Block>,
    /// The parts of a page.
    pub page: fn(&RunRecord) -> Option<RunPage>,
}

impl RunPage {
    /// The page of a result that is in no record.
    #[must_use]
    pub fn document(self, name: &'static str) -> Document {
        let mut blocks = vec![Block::Head(self.head)];
        blocks.extend(self.blocks);
        if !self.details.is_empty() {
            blocks.push(Block::Heading("Details".to_owned()));
        }
        blocks.extend(self.details);

        Document { name, blocks }
    }
}

/// Parts of the page of one run; the frame adds date, hosts, command line and raw data.
#[derive(Default)]
pub struct RunPage {
    /// The answer. The frame has a title for one without.
    pub head: Head,
    /// Pictures, from top to bottom.
    pub blocks: Vec<Block>,
    /// What a reader unfolds.
    pub details: Vec<Block>,
}

impl ProductReport {
    /// Report of a record that belongs to no product.
    pub const NONE: Self = Self {
        name: |_| None,
        answers: |_| None,
        blocks: |_| None,
        diagnosis: |_| Vec::new(),
        limit: |_| (String::new(), None),
        findings: |_| Vec::new(),
        page: |_| None,
    };
}
