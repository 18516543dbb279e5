//! Body content: one block, repeated.

use std::sync::OnceLock;

use linerate_sys::PageBuffer;
use linerate_sys::sendfile_source::SourceFile;

/// Content of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum BodyPattern {
    /// One line, repeated.
    #[default]
    Text,
    /// Incompressible bytes.
    Random,
}

/// Blocks shared by all threads, created on first use.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pattern: OnceLock<Block>,
    random: OnceLock<Block>,
}

/// A block in memory and in a file.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: PageBuffer,
    /// `None` where the file could not be created; bodies are copied then.
    file: Option<SourceFile>,
}

/// Size of a block, a multiple of every page size.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

impl Content {
    /// The block of a pattern.
    pub(crate) fn block(&self, pattern: BodyPattern) -> &Block {
        match pattern {
            BodyPattern::Text => self
                .pattern
                // The 64 bytes of the line divide the block, so the repetition has no seam.
                .get_or_init(|| Block::new(&LINE.repeat(BLOCK_BYTES / LINE.len()))),
            BodyPattern::Random => self.random.get_or_init(|| Block::new(&noise(BLOCK_BYTES))),
        }
    }
}

impl Block {
    fn new(bytes: &[u8]) -> Self {
        Self {
            // A file on a disk: its pages come in large folios, and a file in memory costs a third
            // more per body (docs/decisions/022-http-loops.md).
            file: SourceFile::filled("linerate-http-body", bytes).ok(),
            bytes: PageBuffer::repeated(bytes, 1).expect("memory for one block"),
        }
    }

    /// The longest contiguous range of the endless repetition from `offset` on, at most `len_max`
    /// bytes.
    pub(crate) fn run(&self, offset: u64, len_max: u64) -> &[u8] {
        let start = Self::position(offset);
        let rest = self.bytes.get(start..).unwrap_or_default();
        let len = len_max.min(rest.len() as u64) as usize;
        rest.get(..len).unwrap_or_default()
    }

    /// Position in the block of byte `offset` of the endless repetition.
    pub(crate) fn position(offset: u64) -> usize {
        // The remainder is below the size of the block, so it fits.
        usize::try_from(offset % BLOCK_BYTES as u64).unwrap_or_default()
    }

    /// The block as a file.
    pub(crate) fn file(&self) -> Option<&SourceFile> {
        self.file.as_ref()
    }
}

/// 64 bytes, so that a missing part of a body is visible.
pub(super) const LINE: &[u8; 64] =
    b"0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Bytes that cannot be compressed, equal in every run.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(0).fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sys::page_buffer::PAGE_ALIGNMENT;

    #[test]
    fn a_body_is_the_block_repeated() {
        let content = Content::default();
        let block = content.block(BodyPattern::Text);
        assert_eq!(block.run(0, 64), LINE);
        assert_eq!(block.run(BLOCK_BYTES as u64 + 3, 2), b"34");
        assert_eq!(
            block.run(BLOCK_BYTES as u64 - 2, 64).len(),
            2,
            "a run ends at the seam"
        );
        assert_eq!(block.run(0, u64::MAX).len(), BLOCK_BYTES);
    }

    #[test]
    fn block_begins_at_a_page_boundary() {
        let content = Content::default();
        for pattern in [BodyPattern::Text, BodyPattern::Random] {
            let start = content.block(pattern).run(0, 1).as_ptr();
            assert_eq!(start.addr() % PAGE_ALIGNMENT, 0, "{pattern:?}");
        }
    }

    #[test]
    fn noise_has_every_byte_about_equally_often() {
        let mut counts = [0_u32; 256];
        for byte in noise(BLOCK_BYTES) {
            counts[usize::from(byte)] += 1;
        }

        // 4096 expected, standard deviation 64.
        assert!(
            counts.iter().all(|count| (3_700..4_500).contains(count)),
            "{counts:?}"
        );
    }
}
