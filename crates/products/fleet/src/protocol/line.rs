//! Lines from bytes: the end of a line is `\n`, and a line has a bound before it is stored.

pub(crate) mod limits;
mod opening;

pub use limits::{ELEMENTS_MAX, Excess, LINE_MAX_BYTES, NESTING_MAX, STRING_MAX_BYTES};
pub use opening::{NOISE_MAX_BYTES, Opening, OpeningError, OpeningReader};

/// Collects lines. Memory grows with the bytes of one line, at most [`LINE_MAX_BYTES`].
#[derive(Debug, Default)]
pub struct LineReader {
    line: Vec<u8>,
    is_skipping: bool,
}

impl LineReader {
    /// Takes bytes from the front of `input` up to the end of a line and returns the line without
    /// its end. Empty lines are passed over.
    ///
    /// # Errors
    /// [`Excess::Line`] once per line that is too long, when its bound is reached. The rest of it is
    /// skipped.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, Excess> {
        while !input.is_empty() {
            let end = input.iter().position(|byte| *byte == b'\n');
            let (piece, rest) = input.split_at(end.unwrap_or(input.len()));
            // The bound is checked before the bytes are kept, so memory never exceeds it.
            let is_too_long =
                !self.is_skipping && self.line.len().saturating_add(piece.len()) > LINE_MAX_BYTES;
            if is_too_long {
                // The buffer is freed at once, not at the end of a line that may never come.
                self.line = Vec::new();
                self.is_skipping = true;
                return Err(Excess::Line);
            }

            if !self.is_skipping {
                self.line.extend_from_slice(piece);
            }

            // The end of the line is one byte; at the end of the input there is none.
            *input = rest.get(1..).unwrap_or_default();
            if end.is_none() {
                continue;
            }

            self.is_skipping = false;
            if !self.line.is_empty() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }

        Ok(None)
    }

    /// Bytes of an unfinished line.
    pub fn buffered_bytes(&self) -> usize {
        self.line.len()
    }
}

#[cfg(test)]
mod tests;
