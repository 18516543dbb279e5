//! JSON objects among the lines of a text.

use serde_json::Value;

use super::sections::Block;

/// JSON objects among the lines of a block.
pub(super) struct Documents {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl Documents {
    pub(super) fn of(block: &Block<'_>) -> Self {
        let mut text = String::new();
        let mut starts = Vec::new();
        if block
            .lines
            .iter()
            .any(|(_, line)| line.trim_start().starts_with('{'))
        {
            for (_, line) in &block.lines {
                starts.push(text.len());
                text.extend([line, "\n"]);
            }
        }

        Self { text, starts }
    }

    /// The object that begins in a line, and the number of its lines.
    pub(super) fn at(&self, line: usize) -> Option<(Value, usize)> {
        let text = self.text.get(*self.starts.get(line)?..)?;
        text.trim_start().strip_prefix('{')?;
        // A stream of values ends at the object's last brace; lines of other output may follow it.
        let mut values = serde_json::Deserializer::from_str(text).into_iter();
        let value = values.next()?.ok()?;
        Some((value, text.get(..values.byte_offset())?.lines().count()))
    }
}
