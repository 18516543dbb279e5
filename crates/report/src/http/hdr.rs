//! Quantiles of a stored histogram (HdrHistogram, encoding V2 compressed, base64).
//!
//! The file is untrusted, and the crate that writes histograms allocates by the file's header. So it is
//! read here with bounds, and only what a curve needs.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Values with how often each was found, from small to large.
pub(super) struct Counts {
    counts: Vec<(u64, u64)>,
    total: u64,
}

/// Cookies of the encoding with the word size of varints.
const V2_COMPRESSED: u32 = 0x1c84_9314;
const V2: u32 = 0x1c84_9313;
const HEAD_BYTES: usize = 40;
/// Three digits from 1 ns to a day are 51,200 counters of at most 9 bytes.
const INFLATED_BYTES_MAX: u64 = 1 << 20;
const ENCODED_BYTES_MAX: usize = 2 << 20;

impl Counts {
    /// Reads a histogram; none where the text is empty or no histogram.
    pub(super) fn read(base64: &str) -> Option<Self> {
        if base64.is_empty() || base64.len() > ENCODED_BYTES_MAX {
            return None;
        }
        let packed = STANDARD.decode(base64).ok()?;
        if word(&packed, 0)? != V2_COMPRESSED {
            return None;
        }
        let mut bytes = Vec::new();
        let inflated = flate2::read::ZlibDecoder::new(packed.get(8..)?);
        inflated.take(INFLATED_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Self::unpacked(&bytes)
    }

    fn unpacked(bytes: &[u8]) -> Option<Self> {
        if word(bytes, 0)? != V2 {
            return None;
        }
        let scale = Scale::new(word(bytes, 12)?, long(bytes, 16)?)?;
        let length = usize::try_from(word(bytes, 4)?).ok()?;
        let payload = bytes.get(HEAD_BYTES..)?.get(..length)?;
        let (mut counts, mut total, mut index) = (Vec::new(), 0_u64, 0_u64);
        let mut rest = payload;
        while !rest.is_empty() {
            let (number, after) = varint(rest)?;
            rest = after;
            if number < 0 {
                index = index.checked_add(number.unsigned_abs())?;
                continue;
            }
            if number > 0 {
                let count = number.unsigned_abs();
                counts.push((scale.highest_ns(index)?, count));
                total = total.checked_add(count)?;
            }
            index = index.checked_add(1)?;
        }
        Some(Self { counts, total })
    }

    /// How many values there are.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The smallest value that at least `share` of all do not exceed.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((share * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (value, count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return Some(*value);
            }
        }
        self.counts.last().map(|(value, _)| *value)
    }
}

/// From a place in the array to the values counted there.
struct Scale {
    half_magnitude: u32,
    unit_magnitude: u32,
}

impl Scale {
    fn new(digits: u32, lowest: u64) -> Option<Self> {
        if !(1..=5).contains(&digits) || lowest == 0 {
            return None;
        }
        let needed = 2 * 10_u64.pow(digits);
        Some(Self {
            half_magnitude: needed.next_power_of_two().ilog2().max(1) - 1,
            unit_magnitude: lowest.ilog2(),
        })
    }

    /// The largest value that falls there.
    fn highest_ns(&self, index: u64) -> Option<u64> {
        let half = 1_u64 << self.half_magnitude;
        let (bucket, place) = match index >> self.half_magnitude {
            0 => (0, index),
            above => (u32::try_from(above - 1).ok()?, (index & (half - 1)) + half),
        };
        let shift = bucket.checked_add(self.unit_magnitude)?;
        let next = (place + 1).checked_mul(1_u64.checked_shl(shift)?)?;
        Some(next - 1)
    }
}

/// A signed number in zigzag form of at most nine bytes, the last of which counts whole.
fn varint(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0_u64;
    for (place, byte) in bytes.iter().enumerate().take(9) {
        let is_last = place == 8 || byte & 0x80 == 0;
        let bits = if place == 8 { *byte } else { byte & 0x7f };
        value |= u64::from(bits) << (7 * place);
        if is_last {
            let number = (value >> 1) as i64 ^ -((value & 1) as i64);
            return Some((number, bytes.get(place + 1..)?));
        }
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    use super::*;

    fn encoded(histogram: &Histogram<u64>) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .expect("a vector takes all");
        STANDARD.encode(bytes)
    }

    #[test]
    fn quantiles_are_those_of_the_crate_that_wrote_it() {
        for (low, high, digits) in [(1, 60_000_000_000, 3), (1_000, 60_000_000_000, 3), (1, 1 << 40, 2)] {
            let mut histogram = Histogram::new_with_bounds(low, high, digits).expect("bounds");
            let mut value = 1_u64;
            for step in 0..10_000_u64 {
                value = (value * 48_271 + step) % 20_000_000_000;
                histogram.record(value).expect("within bounds");
            }
            let counts = Counts::read(&encoded(&histogram)).expect("a histogram");
            assert_eq!(counts.total(), 10_000);
            for share in [0.001, 0.5, 0.9, 0.99, 0.999, 1.0] {
                assert_eq!(
                    counts.quantile(share),
                    Some(histogram.value_at_quantile(share)),
                    "{share} of {low} to {high}"
                );
            }
        }
    }

    #[test]
    fn a_broken_or_hostile_histogram_is_none() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).expect("bounds");
        for value in 1..5000 {
            histogram.record(value * 1000).expect("within bounds");
        }
        let good = STANDARD.decode(encoded(&histogram)).expect("base64");
        for cut in 0..good.len() {
            assert!(Counts::read(&STANDARD.encode(&good[..cut])).is_none(), "cut at {cut}");
        }
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x55;
            // Whatever comes of it, it must not fail.
            let _ = Counts::read(&STANDARD.encode(bad)).map(|counts| counts.quantile(0.5));
        }
        for text in ["", "!", "AAAA", "HISTFAAAA"] {
            assert!(Counts::read(text).is_none(), "{text}");
        }
        assert!(Counts::unpacked(&[0xff; 4096]).is_none());
    }

    #[test]
    fn numbers_of_a_hostile_file_do_not_overflow() {
        let mut bytes = Vec::new();
        for number in [V2, 27, 0, 3] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(1_u64.to_be_bytes());
        bytes.extend(u64::MAX.to_be_bytes());
        bytes.extend(1.0_f64.to_be_bytes());
        // The smallest number there is skips most of the array; then the largest count, twice.
        bytes.extend([0xff; 9]);
        let mut largest = [0xff; 9];
        largest[0] = 0xfe;
        bytes.extend(largest);
        bytes.extend(largest);
        assert!(Counts::unpacked(&bytes).is_none());
    }
}
