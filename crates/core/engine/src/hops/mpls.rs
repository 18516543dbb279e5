//! MPLS labels in the extensions of an ICMP message (RFC 4884, RFC 4950).

/// Labels with which the probe arrived, outermost first, at most [`LABELS_MAX`]; empty of
/// extensions without labels, and of damaged ones.
pub(super) fn labels(extensions: &[u8]) -> Vec<u32> {
    // RFC 4884 section 7: a header of four bytes with the version in its first four bits.
    let Some((header, mut rest)) = extensions.split_first_chunk::<4>() else {
        return Vec::new();
    };
    if header[0] >> 4 != VERSION {
        return Vec::new();
    }

    // Section 8: objects of a length, a class and a type, the length with this head.
    while let Some(([l0, l1, class, kind], _)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([*l0, *l1]));
        let Some(object) = rest.get(4..length) else {
            return Vec::new();
        };
        if (*class, *kind) == MPLS_STACK {
            // RFC 3032: the label is the first 20 of 32 bits.
            let entries = object.as_chunks::<4>().0.iter();
            return entries
                .take(LABELS_MAX)
                .map(|entry| u32::from_be_bytes(*entry) >> 12)
                .collect();
        }

        rest = rest.get(length..).unwrap_or_default();
    }

    Vec::new()
}

const VERSION: u8 = 2;
/// Class and type of an incoming label stack (RFC 4950 section 3).
const MPLS_STACK: (u8, u8) = (1, 1);
/// Labels that are kept: deeper stacks are rare.
const LABELS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_the_stack_and_damage_has_none() {
        // Version 2; an object of another class; a stack of the labels 24001 and 16, by hand.
        let mut whole = vec![0x20, 0, 0, 0, 0, 8, 2, 1, 9, 9, 9, 9, 0, 12, 1, 1];
        whole.extend((24_001_u32 << 12 | 1).to_be_bytes());
        whole.extend((16_u32 << 12 | 0x1ff).to_be_bytes());
        assert_eq!(labels(&whole), [24_001, 16]);

        for cut in 0..whole.len() {
            let found = labels(whole.get(..cut).unwrap_or_default());
            assert!(found.is_empty(), "{cut} bytes: {found:?}");
        }
        for (at, value) in [(0, 0x10), (5, 0), (5, 3)] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            assert!(labels(&damaged).is_empty(), "byte {at}");
        }
    }
}
