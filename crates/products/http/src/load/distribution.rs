//! Latency histogram with bounded memory and a fixed number of significant digits.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use linerate_model::http::{Latency, Quantile};
use serde::{Deserialize, Serialize};

/// Times in nanoseconds, clamped to 1 µs to 60 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub(crate) struct Distribution<const DIGITS: u8 = 3> {
    histogram: Histogram<u64>,
    /// Smallest value that is a lower bound.
    censored_from_ns: Option<u64>,
}

impl<const DIGITS: u8> Distribution<DIGITS> {
    /// Adds a time.
    pub(crate) fn record(&mut self, ns: u64) {
        // A time outside the bounds counts at the bound, so that no request is lost.
        self.histogram.saturating_record(ns);
    }

    /// Adds the age of an unfinished request as a lower bound.
    pub(crate) fn record_censored(&mut self, ns: u64) {
        self.record(ns);
        let smallest = self.censored_from_ns.map_or(ns, |other| other.min(ns));
        self.censored_from_ns = Some(smallest);
    }

    /// Adds the times of another one.
    pub(crate) fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so every value fits.
        let _ = self.histogram.add(&other.histogram);
        self.censored_from_ns = match (self.censored_from_ns, other.censored_from_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Number of values.
    pub(crate) fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// True if there are no values.
    pub(crate) fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// Arithmetic mean in nanoseconds, 0 when empty.
    pub(crate) fn mean_ns(&self) -> f64 {
        self.histogram.mean()
    }

    /// The quantile `q`, where at least ten values lie above it.
    pub(crate) fn quantile(&self, q: f64) -> Option<Quantile> {
        // The subtraction has a rounding error.
        let above = self.len() as f64 * (1.0 - q) + 1e-6;
        (above >= ABOVE_MIN).then(|| self.at(self.histogram.value_at_quantile(q)))
    }

    /// Values for reports, and the encoded histogram.
    pub(crate) fn summary(&self) -> Latency {
        Latency {
            n: self.len(),
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: (!self.is_empty()).then(|| self.at(self.histogram.max())),
            mean_ns: self.mean_ns(),
            hdr: self.encode(),
        }
    }

    /// HdrHistogram's V2 compressed form, base64.
    fn encode(&self) -> String {
        let mut bytes = Vec::new();
        match V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes) {
            Ok(_) => BASE64.encode(bytes),
            Err(_) => String::new(),
        }
    }

    fn at(&self, ns: u64) -> Quantile {
        let mut quantile = Quantile::new(ns);
        // The value represents its bucket.
        quantile.is_lower_bound = self
            .censored_from_ns
            .is_some_and(|from| self.histogram.equivalent(from, ns) || from < ns);
        quantile
    }
}

/// Form between processes.
#[derive(Serialize, Deserialize)]
struct Encoded {
    hdr: String,
    censored_from_ns: Option<u64>,
}

impl<const DIGITS: u8> From<Distribution<DIGITS>> for Encoded {
    fn from(times: Distribution<DIGITS>) -> Self {
        Self {
            hdr: times.encode(),
            censored_from_ns: times.censored_from_ns,
        }
    }
}

impl<const DIGITS: u8> TryFrom<Encoded> for Distribution<DIGITS> {
    type Error = &'static str;

    fn try_from(encoded: Encoded) -> Result<Self, &'static str> {
        Ok(Self {
            histogram: read(&encoded.hdr).ok_or("no encoded histogram")?,
            censored_from_ns: encoded.censored_from_ns,
        })
    }
}

impl<const DIGITS: u8> Default for Distribution<DIGITS> {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS);
        Self {
            histogram: histogram.expect("the bounds are constants that fit together"),
            censored_from_ns: None,
        }
    }
}

const LOWEST_NS: u64 = 1_000;
const HIGHEST_NS: u64 = 60_000_000_000;
/// Values above a quantile without which it is not reported.
const ABOVE_MIN: f64 = 10.0;

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

/// Reads a stored histogram (HdrHistogram, encoding V2 compressed, base64); `None` where the text
/// is empty or no histogram.
///
/// The file is untrusted, and the decoder allocates what a header announces. So it gets inflated
/// bytes of limited length, which must be as many as announced.
pub(crate) fn read(base64: &str) -> Option<Histogram<u64>> {
    if base64.len() > ENCODED_BYTES_MAX {
        return None;
    }

    let packed = BASE64.decode(base64).ok()?;
    let mut bytes = Vec::new();
    let inflated = flate2::read::ZlibDecoder::new(packed.get(COMPRESSED_HEAD_BYTES..)?);
    inflated
        .take(INFLATED_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;

    unpacked(&bytes)
}

fn unpacked(mut bytes: &[u8]) -> Option<Histogram<u64>> {
    let cookie = bytes.get(..4)?;
    let announced = bytes.get(4..8)?;
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
    use super::*;

    type Distribution = super::Distribution;

    #[test]
    fn quantiles_need_ten_values_above_them() {
        let mut times = Distribution::default();
        for ns in 1..=999 {
            times.record(ns * 10_000);
        }

        assert_eq!(times.quantile(0.99), None);
        times.record(10_000_000);
        let p99 = times
            .quantile(0.99)
            .expect("ten of a thousand lie above")
            .ns;
        assert!((9_890_000..=9_920_000).contains(&p99), "{p99}");
    }

    #[test]
    fn quantile_at_or_above_an_unfinished_request_is_a_lower_bound() {
        let mut times = Distribution::default();
        for _ in 0..980 {
            times.record(1_000_000);
        }

        for _ in 0..20 {
            times.record_censored(5_000_000_000);
        }

        let p50 = times.quantile(0.5).expect("enough values");
        let p99 = times.quantile(0.99).expect("enough values");
        assert!(!p50.is_lower_bound);
        assert!(p99.is_lower_bound);
        assert!(p99.ns >= 4_990_000_000, "{p99:?}");
    }

    #[test]
    fn encoding_preserves_quantiles() {
        let mut times = Distribution::default();
        for ns in 1..5_000_u64 {
            times.record(ns * 7_919);
        }

        times.record_censored(5_000_000);
        let text = serde_json::to_string(&times).expect("JSON");
        let back: Distribution = serde_json::from_str(&text).expect("what was written is read");
        assert_eq!(back.summary(), times.summary());
    }

    #[test]
    fn invalid_text_is_rejected() {
        for hdr in ["", "?", "AAAA"] {
            let text = format!("{{\"hdr\":\"{hdr}\",\"censored_from_ns\":null}}");
            assert!(
                serde_json::from_str::<Distribution>(&text).is_err(),
                "{hdr}"
            );
        }
    }

    #[test]
    fn merged_parts_are_the_whole() {
        let (mut odd, mut even, mut all) = (
            Distribution::default(),
            Distribution::default(),
            Distribution::default(),
        );
        for ns in 1..=2_000_u64 {
            if ns % 2 == 0 { &mut even } else { &mut odd }.record(ns * 1_000);
            all.record(ns * 1_000);
        }

        odd.merge(&even);
        assert_eq!(odd.summary(), all.summary());
    }

    fn encoded(histogram: &Histogram<u64>) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .expect("a vector takes all");
        BASE64.encode(bytes)
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
        let good = BASE64.decode(encoded(&sample())).expect("base64");
        for cut in 0..good.len() {
            assert!(read(&BASE64.encode(&good[..cut])).is_none(), "cut at {cut}");
        }

        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x55;
            // Whatever comes of it, it must not fail.
            let _ = read(&BASE64.encode(bad)).map(|histogram| histogram.value_at_quantile(0.5));
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
