//! A stored histogram (HdrHistogram, encoding V2 compressed, base64).
//!
//! The file is untrusted, and the decoder allocates what a header announces. So it gets inflated
//! bytes of limited length, which must be as many as announced.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// Cookie of the inflated part.
const V2: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// Bytes before the inflated part: cookie and length.
const COMPRESSED_HEAD_BYTES: usize = 8;
const HEAD_BYTES: usize = 40;
/// The smallest signed number of 64 bits as the encoding writes it.
const SMALLEST_NUMBER: [u8; 9] = [0xff; 9];
/// Three digits from 1 ns to a day are 51,200 counters of at most 9 bytes.
const INFLATED_BYTES_MAX: u64 = 1 << 20;
const ENCODED_BYTES_MAX: usize = 2 << 20;

/// Reads a histogram; `None` where the text is empty or no histogram.
pub(crate) fn read(base64: &str) -> Option<Histogram<u64>> {
    if base64.len() > ENCODED_BYTES_MAX {
        return None;
    }

    let packed = STANDARD.decode(base64).ok()?;
    let mut bytes = Vec::new();
    let inflated = flate2::read::ZlibDecoder::new(packed.get(COMPRESSED_HEAD_BYTES..)?);
    inflated
        .take(INFLATED_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;

    unpacked(&bytes)
}

fn unpacked(mut bytes: &[u8]) -> Option<Histogram<u64>> {
    let (cookie, announced) = (bytes.get(..4)?, bytes.get(4..8)?);
    let announced = u32::from_be_bytes(announced.try_into().ok()?);
    if cookie != V2 {
        return None;
    }

    let payload = bytes
        .get(HEAD_BYTES..)?
        .get(..usize::try_from(announced).ok()?)?;
    // The decoder negates it.
    if payload
        .windows(SMALLEST_NUMBER.len())
        .any(|number| number == SMALLEST_NUMBER)
    {
        return None;
    }

    Deserializer::new().deserialize(&mut bytes).ok()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    use super::*;

    fn encoded(histogram: &Histogram<u64>) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .expect("a vector takes all");
        STANDARD.encode(bytes)
    }

    fn sample() -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds");
        for value in 1..5000 {
            histogram.record(value * 1000).expect("within bounds");
        }
        histogram
    }

    #[test]
    fn a_histogram_is_read_as_it_was_written() {
        assert_eq!(read(&encoded(&sample())), Some(sample()));
    }

    #[test]
    fn a_broken_or_hostile_histogram_is_none() {
        let good = STANDARD.decode(encoded(&sample())).expect("base64");
        for cut in 0..good.len() {
            assert!(
                read(&STANDARD.encode(&good[..cut])).is_none(),
                "cut at {cut}"
            );
        }

        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x55;
            // Whatever comes of it, it must not fail.
            let _ = read(&STANDARD.encode(bad)).map(|histogram| histogram.value_at_quantile(0.5));
        }

        for text in ["", "!", "AAAA", "HISTFAAAA"] {
            assert!(read(text).is_none(), "{text}");
        }

        // The smallest number, between nine others so that either loop of the decoder finds it.
        let mut bad = vec![0; HEAD_BYTES];
        bad[..4].copy_from_slice(&V2);
        bad[4..8].copy_from_slice(&27_u32.to_be_bytes());
        bad[15] = 3;
        bad[23] = 1;
        bad[24..32].copy_from_slice(&60_000_000_000_u64.to_be_bytes());
        bad[32..40].copy_from_slice(&1_f64.to_be_bytes());
        bad.extend([[0; 9], SMALLEST_NUMBER, [0; 9]].concat());
        assert!(unpacked(&bad).is_none());

        // More is announced than there is.
        assert!(unpacked(&[0xff; 4096]).is_none());
    }
}
