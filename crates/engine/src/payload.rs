//! What the blocks contain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use linerate_model::spec::Payload;

/// One block of payload. All streams of a test send the same one: the content is never looked at, and a shared block
/// stays in the processor's cache.
pub(crate) fn block(payload: Payload, len: usize) -> Arc<[u8]> {
    match payload {
        Payload::Repeating => (0..len).map(|i| b'0' + (i % 10) as u8).collect(),
        Payload::Random => random(len),
    }
}

/// A block of the repeating payload of `len` bytes or more. Blocks of all tests of this process that are nearly as long
/// are one: a client that names a long block costs memory once, however often it connects.
pub(crate) fn shared_block(len: usize) -> Arc<[u8]> {
    static BLOCKS: Mutex<BTreeMap<usize, Weak<[u8]>>> = Mutex::new(BTreeMap::new());
    let len = len.next_power_of_two();
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = blocks.get(&len).and_then(Weak::upgrade) {
        return known;
    }
    let block = block(Payload::Repeating, len);
    blocks.insert(len, Arc::downgrade(&block));
    block
}

/// Incompressible bytes. Nothing depends on their unpredictability, so a small generator seeded by the kernel does.
fn random(len: usize) -> Arc<[u8]> {
    let mut state = seed() | 1;
    let mut block = vec![0u8; len];
    for chunk in block.chunks_mut(8) {
        // xorshift64*, Vigna 2016.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let word = state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    block.into()
}

fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeating_payload_counts_up() {
        assert_eq!(&block(Payload::Repeating, 12)[..], b"012345678901");
    }

    #[test]
    fn blocks_of_about_one_length_are_one_block_while_it_is_used() {
        let (one, other) = (shared_block(3_000_000), shared_block(4 << 20));
        assert!(Arc::ptr_eq(&one, &other) && one.len() == 4 << 20);
        assert!(!Arc::ptr_eq(&one, &shared_block(2 << 20)));
        let first = Arc::downgrade(&one);
        drop((one, other));
        assert!(first.upgrade().is_none());
    }

    #[test]
    fn random_payload_does_not_repeat() {
        let block = block(Payload::Random, 4096);
        let mut words: Vec<&[u8]> = block.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 512);
    }
}
