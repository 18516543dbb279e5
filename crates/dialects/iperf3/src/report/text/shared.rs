//! Facts of a test that its rows share.

use linerate_model::Direction;
use linerate_model::event::TestHeader;
use linerate_model::units::UnitFormat;

use super::row::Columns;

/// Facts of the test once the parameters are agreed.
pub(super) struct Test {
    pub(super) header: TestHeader,
    pub(super) columns: Columns,
    pub(super) has_interval: bool,
}

impl Test {
    pub(super) fn new(header: &TestHeader, format: UnitFormat) -> Self {
        Self {
            header: header.clone(),
            columns: Columns::new(header.endpoint, &header.spec, format),
            has_interval: false,
        }
    }

    pub(super) fn is_bidirectional(&self) -> bool {
        self.header.spec.direction == Direction::Bidirectional
    }
}

/// Line between the intervals of several streams, and before the summary.
pub(super) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";
