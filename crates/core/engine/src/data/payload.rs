//! Content of the blocks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use linerate_model::spec::Payload;
use linerate_sys::{PageBuffer, Result};

use crate::lock::lock;
use crate::random::Sequence;

/// One block of payload. All streams of a test send the same one: the content is never examined,
/// and a shared block stays in the CPU's cache.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn block(payload: Payload, len: usize) -> Result<PageBuffer> {
    let mut block = PageBuffer::zeroed(len)?;
    match payload {
        Payload::Repeating => Payload::fill_repeating(&mut block),
        _ => fill_random(&mut block),
    }

    Ok(block)
}

/// A block of the repeating payload of `len` bytes or more, with `more` bytes behind it. Blocks of
/// all tests of this process that are nearly as long are one: a client that names a long block
/// costs memory once, however often it connects.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn shared_block(len: usize, more: usize) -> Result<Arc<PageBuffer>> {
    static BLOCKS: Mutex<BTreeMap<usize, Weak<PageBuffer>>> = Mutex::new(BTreeMap::new());

    let len = len.next_power_of_two().saturating_add(more);
    let mut blocks = lock(&BLOCKS);
    if let Some(known) = blocks.get(&len).and_then(Weak::upgrade) {
        return Ok(known);
    }

    let block = Arc::new(block(Payload::Repeating, len)?);
    blocks.insert(len, Arc::downgrade(&block));
    Ok(block)
}

/// Incompressible bytes.
fn fill_random(block: &mut [u8]) {
    let mut sequence = Sequence::seeded();
    for chunk in block.chunks_mut(8) {
        chunk.copy_from_slice(&sequence.next().to_le_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeating_payload_counts_up() {
        for len in [0, 9, 10, 12, 4096] {
            let block = block(Payload::Repeating, len).expect("memory");
            let expected: Vec<u8> = (b'0'..=b'9').cycle().take(len).collect();
            assert_eq!(&block[..], expected);
        }
    }

    #[test]
    fn block_begins_at_a_page_boundary() {
        for payload in [Payload::Repeating, Payload::Random] {
            let block = block(payload, 128 * 1024 + 1).expect("memory");
            assert_eq!(
                block.as_ptr().addr() % linerate_sys::page_buffer::PAGE_ALIGNMENT,
                0
            );
        }
    }

    #[test]
    fn blocks_of_about_one_length_are_one_block_while_it_is_used() {
        let shared = |len| shared_block(len, 0).expect("memory");
        let (one, other) = (shared(3_000_000), shared(4 << 20));
        assert!(Arc::ptr_eq(&one, &other) && one.len() == 4 << 20);
        assert!(!Arc::ptr_eq(&one, &shared(2 << 20)));
        assert_eq!(
            shared_block(3_000_000, 100).expect("memory").len(),
            (4 << 20) + 100
        );

        let first = Arc::downgrade(&one);
        drop((one, other));
        assert!(first.upgrade().is_none());
    }

    #[test]
    fn random_payload_does_not_repeat() {
        let block = block(Payload::Random, 4096).expect("memory");
        let mut words: Vec<&[u8]> = block.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 512);
    }
}
