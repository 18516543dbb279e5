//! Hash of plans and tasks.

/// FNV-1a of 128 bits (draft-eastlake-fnv, section 2). It never changes: a run is resumed by later versions of this program.
/// It resists no attacker; ids are computed where the plan is, and not taken from other hosts.
pub(super) struct Fnv128(u128);

const OFFSET_BASIS: u128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;

impl Fnv128 {
    pub(super) fn new() -> Self {
        Self(OFFSET_BASIS)
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME)))
    }

    pub(super) fn number(self, number: u128) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    /// With its length, so that no two lists of texts are the same bytes.
    pub(super) fn text(self, text: &str) -> Self {
        self.number(text.len() as u128).bytes(text.as_bytes())
    }

    pub(super) fn value(&self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_has_the_published_values() {
        let hash = |text: &str| Fnv128::new().bytes(text.as_bytes()).value();
        assert_eq!(hash(""), OFFSET_BASIS);
        assert_eq!(hash("a"), 0xD228_CB69_6F1A_8CAF_7891_2B70_4E4A_8964);
        assert_eq!(hash("foobar"), 0x343E_1662_793C_64BF_6F0D_3597_BA44_6F18);
    }
}
