//! Integers at fixed places: a writer and a reader over a buffer whose length the caller has
//! checked.

/// Writes fields one behind the other. What does not fit is cut off.
pub(crate) struct Writer<'a>(pub(crate) &'a mut [u8]);

impl Writer<'_> {
    pub(crate) fn put(&mut self, field: &[u8]) {
        let rest = std::mem::take(&mut self.0);
        let (target, rest) = rest.split_at_mut(field.len().min(rest.len()));
        target.copy_from_slice(field.get(..target.len()).unwrap_or_default());
        self.0 = rest;
    }
}

/// Reads fields one behind the other. `None` at the end of the buffer.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    pub(crate) fn half(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub(crate) fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}
