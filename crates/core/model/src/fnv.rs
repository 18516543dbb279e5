//! The hash of Fowler, Noll and Vo, variant 1a (RFC 9923). It never changes: names of runs, grids
//! and tasks outlive versions of this program. It resists no attacker; what is hashed is chosen
//! where the hash is computed.

const BASIS_64: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME_64: u64 = 0x0000_0100_0000_01b3;
const BASIS_128: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME_128: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// Hash of 64 bits.
pub fn fnv64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(BASIS_64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME_64)
    })
}

/// Hash of 128 bits, over several values.
pub struct Fnv128(u128);

impl Default for Fnv128 {
    /// The hash of no bytes.
    fn default() -> Self {
        Self(BASIS_128)
    }
}

impl Fnv128 {
    /// Adds bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| {
            (hash ^ u128::from(*byte)).wrapping_mul(PRIME_128)
        }))
    }

    /// Adds the 16 bytes of a number, little end first.
    #[must_use]
    pub fn number(self, number: u128) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Adds a text with its length, so that no two lists of texts are the same bytes.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.number(text.len() as u128).bytes(text.as_bytes())
    }

    /// The hash.
    pub fn value(&self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_have_the_published_values() {
        assert_eq!(fnv64(b""), BASIS_64);
        assert_eq!(fnv64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv64(b"foobar"), 0x8594_4171_f739_67e8);

        let wide = |text: &str| Fnv128::default().bytes(text.as_bytes()).value();
        assert_eq!(wide(""), BASIS_128);
        assert_eq!(wide("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(wide("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
