//! Cheap random numbers where nothing depends on their being unpredictable.

/// Numbers without a visible pattern: xorshift64* (Vigna, 2016).
pub(crate) struct Sequence(u64);

impl Sequence {
    pub(crate) fn new(seed: u64) -> Self {
        // 0 would stay 0.
        Self(seed | 1)
    }

    /// A sequence that differs from process to process.
    pub(crate) fn seeded() -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        Self::new(RandomState::new().build_hasher().finish())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// The low bits are the weakest ones; this is the highest.
    pub(crate) fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}
