//! Readers of one kind of output, line by line.

use linerate_model::snapshot::Snapshot;

/// Reads the lines of one kind of output.
pub(super) trait LineReader {
    /// Reads a line; true if it was understood.
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool;

    /// Records what is known at the end of the block.
    fn finish(&mut self, _: &mut Snapshot) {}
}
