//! Sizes of frames, drawn from a lognormal distribution.

use linerate_iperf2::wire::burst::BURST_LEN_MAX;
use linerate_model::workload::Isochronous;

use crate::random::Sequence;

/// Draws one size after the other. Nothing depends on their unpredictability, so a small generator
/// with a fixed start does, and two runs of a test send the same frames.
pub(super) struct FrameSizes {
    mean: f64,
    deviation: f64,
    min: usize,
    random: Sequence,
}

impl FrameSizes {
    pub(super) fn fixed(size: usize) -> Self {
        Self {
            mean: size as f64,
            deviation: 0.0,
            min: size,
            random: Sequence::new(SEED),
        }
    }

    /// Frames of this many bytes per second, none shorter than `min`.
    pub(super) fn of_frames(frames: &Isochronous, min: usize) -> Self {
        let bytes_per_frame = 1.0 / (8.0 * frames.frames_per_s.max(1e-3));
        Self {
            mean: frames.mean_bps * bytes_per_frame,
            deviation: frames.deviation_bps * bytes_per_frame,
            min,
            random: Sequence::new(SEED),
        }
    }

    pub(super) fn next(&mut self) -> usize {
        let size = if self.deviation > 0.0 && self.mean > 0.0 {
            let spread = (1.0 + (self.deviation / self.mean).powi(2)).ln();
            (self.mean.ln() - spread / 2.0 + self.normal() * spread.sqrt()).exp()
        } else {
            self.mean
        };
        // Conversions of floats saturate.
        (size as usize).clamp(self.min, BURST_LEN_MAX as usize)
    }

    /// A number of the standard normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let u = self.uniform();
        let v = self.uniform();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.random.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    }
}

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_requested_mean_and_deviation() {
        let frames = Isochronous {
            frames_per_s: 60.0,
            mean_bps: 20e6,
            deviation_bps: 4e6,
            gap: std::time::Duration::ZERO,
        };
        let mut sizes = FrameSizes::of_frames(&frames, 92);
        let drawn: Vec<f64> = (0..20_000).map(|_| sizes.next() as f64).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance =
            drawn.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / drawn.len() as f64;

        assert!((mean / (20e6 / 480.0) - 1.0).abs() < 0.01, "{mean}");
        assert!(
            (variance.sqrt() / (4e6 / 480.0) - 1.0).abs() < 0.03,
            "{}",
            variance.sqrt()
        );
    }

    #[test]
    fn without_deviation_all_frames_are_alike() {
        let mut sizes = FrameSizes::fixed(5000);
        assert_eq!([sizes.next(), sizes.next()], [5000, 5000]);
    }
}
