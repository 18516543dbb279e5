//! Arbitrary bytes and events: the checks of the fuzz targets, on small random input.

use proptest::prelude::*;

use crate::fuzzing;

/// The beginning of a header, so that random bytes get past the first checks.
fn header_like() -> impl Strategy<Value = Vec<u8>> {
    (any::<[u8; 4]>(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(word, tail)| {
        let first = [0x40 | (word[0] & 0x96), 0x01, word[2] & 1, word[3] | 0x78];
        let mut bytes = [&first[..], &tail].concat();

        for (at, version) in [(36, [0, 2, 0, 1 + (word[1] & 1)]), (40, [0, 8, 0, 3])] {
            if let Some(target) = bytes.get_mut(at..at + 4) {
                target.copy_from_slice(&version);
            }
        }

        bytes
    })
}

proptest! {
    #[test]
    fn any_header_is_survived(bytes: Vec<u8>) {
        fuzzing::header(&bytes);
    }

    #[test]
    fn any_plausible_header_is_survived(bytes in header_like()) {
        fuzzing::header(&bytes);
        let datagram = [&[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0][..], &bytes].concat();
        fuzzing::header(&datagram);
        fuzzing::datagram(&datagram);
    }

    #[test]
    fn any_datagram_is_survived(bytes: Vec<u8>) {
        fuzzing::datagram(&bytes);
    }

    #[test]
    fn any_data_are_survived(bytes: Vec<u8>) {
        fuzzing::stream_data(&bytes);
    }

    #[test]
    fn any_events_end_every_machine_exactly_once(script in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzzing::machines(&script);
    }
}
