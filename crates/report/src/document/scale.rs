//! From values to places on paper, and the values to write at an axis.

use super::chart::{Axis, Scale};

/// An axis in the units of the drawing.
pub(crate) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    begin: f64,
    end: f64,
}

impl Ruler {
    /// An axis for values from `low` to `high`, with some air, from place `begin` to place `end`.
    pub(crate) fn new(axis: &Axis, (low, high): (f64, f64), (begin, end): (f64, f64)) -> Self {
        let (low, high) = match axis.scale {
            Scale::Linear if high > 0.0 => (0.0, high * 1.05),
            Scale::Linear => (0.0, 1.0),
            Scale::Log => (low / 1.15, high * 1.15),
        };
        Self { scale: axis.scale, low, high, begin, end }
    }

    /// Where a value lies.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.begin + share.clamp(0.0, 1.0) * (self.end - self.begin)
    }

    /// Values to write, at least `gap` units apart.
    pub(crate) fn ticks(&self, axis: &Axis, gap: f64) -> Vec<f64> {
        let candidates = match (axis.ticks.as_slice(), self.scale) {
            ([], Scale::Linear) => self.round_steps(),
            ([], Scale::Log) => self.decades(),
            (given, _) => given.to_vec(),
        };
        let mut ticks: Vec<f64> = Vec::new();
        for value in candidates {
            let is_within = value >= self.low && value <= self.high;
            let is_apart = |last: &f64| (self.place(value) - self.place(*last)).abs() >= gap;
            if is_within && ticks.last().is_none_or(is_apart) {
                ticks.push(value);
            }
        }
        if ticks.is_empty() && self.scale == Scale::Log {
            // No round value lies on so short an axis.
            ticks.push((self.low * self.high).sqrt());
        }
        ticks
    }

    /// Four to eight steps of 1, 2 or 5 times a power of ten.
    fn round_steps(&self) -> Vec<f64> {
        let rough = self.high / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(rough);
        (0..=8).map(|number| f64::from(number) * step).collect()
    }

    /// Powers of ten; between them 2 and 5 where there are few.
    fn decades(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let factors: &[f64] = if last.saturating_sub(first) <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_lie_within() {
        let text = |value: f64| value.to_string();
        let linear = Ruler::new(&Axis::linear("x", text), (3.0, 117.5), (0.0, 100.0));
        assert_eq!(linear.ticks(&Axis::linear("x", text), 5.0), [0.0, 50.0, 100.0]);
        let log = Ruler::new(&Axis::log("x", text), (0.9, 1200.0), (0.0, 100.0));
        assert_eq!(log.ticks(&Axis::log("x", text), 20.0), [1.0, 10.0, 100.0, 1000.0]);
        assert!((log.place(0.9 / 1.15)).abs() < 1e-9 && (log.place(1e9) - 100.0).abs() < 1e-9);
        let short = Ruler::new(&Axis::log("x", text), (2.5, 2.5), (0.0, 100.0));
        let ticks = short.ticks(&Axis::log("x", text), 20.0);
        assert!(ticks.len() == 1 && (ticks[0] - 2.5).abs() < 1e-9, "{ticks:?}");
        let nothing = Ruler::new(&Axis::linear("x", text), (0.0, 0.0), (0.0, 100.0));
        assert!(nothing.place(0.0).abs() < 1e-9);
    }
}
