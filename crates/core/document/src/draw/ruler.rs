//! Axes: the values that are written at them, and places of values.

use super::{Anchor, CHAR, Drawing, GAP, TEXT, widest, width_of};
use crate::chart::{Axis, Scale};

/// Fewest units between two values of a horizontal axis.
const X_STEP: f64 = 48.0;

/// The horizontal axis between two places of the drawing.
pub(super) fn horizontal(axis: &Axis, values: (f64, f64), place: (f64, f64)) -> Ruler {
    let texts = axis.ticks.iter().chain([&values.1]);
    let longest = widest(texts.map(|tick| round_text(axis, *tick)));
    // Labels keep the room of two characters between them.
    let gap = X_STEP.max(longest + 2.0 * CHAR) / (place.1 - place.0);
    Ruler {
        place,
        ..Ruler::new(axis, values, gap)
    }
}

/// An axis with its ends and the values that are written at it.
pub(super) struct Ruler {
    pub scale: Scale,
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<f64>,
    /// Where both ends are in the drawing.
    pub place: (f64, f64),
}

impl Ruler {
    /// Labels are at least the share `gap` of the axis apart.
    pub(super) fn new(axis: &Axis, values: (f64, f64), gap: f64) -> Self {
        let (low, high) = match (axis.range, axis.scale) {
            (Some(range), _) => range,
            (None, Scale::Linear) if values.1 > 0.0 => (0.0, values.1 * 1.05),
            // An axis without a length has no scale.
            (None, Scale::Linear) => (0.0, 1.0),
            (None, Scale::Log) => (values.0 / 1.15, values.1 * 1.15),
        };
        let mut ruler = Self {
            scale: axis.scale,
            low,
            high,
            ticks: Vec::new(),
            place: (0.0, 1.0),
        };

        let mut candidates = match (axis.ticks.as_slice(), axis.scale) {
            ([], Scale::Linear) => round_steps(low, high, (1.0 / gap).clamp(2.0, 8.0)),
            ([], Scale::Log) => decades(low, high),
            (given, _) => given.to_vec(),
        };
        candidates.retain(|value| (low..=high).contains(value));
        if candidates.is_empty() && axis.scale == Scale::Log {
            // No round value lies on so short an axis.
            candidates.push((low * high).sqrt());
        }

        for value in candidates {
            let last = ruler.ticks.last();
            if last.is_none_or(|last| ruler.at(value) - ruler.at(*last) >= gap) {
                ruler.ticks.push(value);
            }
        }
        ruler
    }

    /// Place of a value; what lies beyond an end is there.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        let (from, to) = self.place;
        from + share.clamp(0.0, 1.0) * (to - from)
    }
}

/// Multiples of 1, 2 or 5 times a power of ten, at most `count` of them.
fn round_steps(low: f64, high: f64, count: f64) -> Vec<f64> {
    let least = (high - low) / count;
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= least * 0.999);
    let step = step.unwrap_or(high - low);

    let first = (low / step).ceil();
    let steps = (0..=count.ceil() as u32).map(|number| (first + f64::from(number)) * step);
    steps.collect()
}

/// Powers of ten; between them 2 and 5 where there are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let factors: &[f64] = if last.saturating_sub(first) <= 3 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let powers = (first..=last).map(|power| 10_f64.powi(power));
    powers
        .flat_map(|power| factors.iter().map(move |factor| factor * power))
        .collect()
}

/// A value at an axis, without the zeros that round values end with: `50 Mbit/s`.
pub(super) fn round_text(axis: &Axis, value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = (axis.text)(value);
    let (number, unit) = text.split_at(text.find(' ').unwrap_or(text.len()));
    if !number.contains('.') || number.parse::<f64>().is_err() {
        return text;
    }
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number}{unit}")
}

impl Drawing {
    /// Values and name of the horizontal axis below `bottom`, where the drawing ends.
    pub(super) fn foot(&mut self, axis: &Axis, x: &Ruler, bottom: f64) {
        for tick in &x.ticks {
            let text = round_text(axis, *tick);
            let half = width_of(&text) / 2.0;
            let at = x.at(*tick).min(self.width - half).max(half);
            self.label(at, bottom + TEXT + 2.0, Anchor::Middle, "", &text);
        }

        let middle = f64::midpoint(x.place.0, x.place.1);
        let base = bottom + 2.0 * TEXT + 4.0;
        self.label(middle, base, Anchor::Middle, "soft", &axis.label);
        self.height = base + GAP;
    }
}
