//! Mean, extremes and spread of a series, without keeping it.

/// A series of numbers. The unit is the caller's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    /// Numbers seen.
    pub count: u64,
    /// Their mean, 0 before the first.
    pub mean: f64,
    /// The smallest, 0 before the first.
    pub min: f64,
    /// The largest, 0 before the first.
    pub max: f64,
    /// Sum of the squared distances from the mean (Welford's recurrence).
    pub squares: f64,
    /// The last one.
    pub last: f64,
}

impl Spread {
    /// Takes one number.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        if self.count == 1 {
            self.min = value;
            self.max = value;
        } else {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }

        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        // Welford (1962): squares of distances to the mean, whose digits do not cancel out.
        self.squares += distance * (value - self.mean);
        self.last = value;
    }

    /// Standard deviation of a sample; 0 for fewer than two numbers.
    pub fn deviation(&self) -> f64 {
        match self.count {
            0 | 1 => 0.0,
            // The deviation of a sample; rounding can leave a sum of squares below 0.
            n => (self.squares / (n - 1) as f64).max(0.0).sqrt(),
        }
    }

    /// Sum of the numbers.
    pub fn sum(&self) -> f64 {
        self.mean * self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_summed_up() {
        let mut spread = Spread::default();
        assert_eq!(spread.deviation(), 0.0);

        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            spread.add(value);
        }

        assert_eq!(
            (spread.count, spread.min, spread.max, spread.last),
            (8, 2.0, 9.0, 9.0)
        );
        assert!((spread.mean - 5.0).abs() < 1e-12 && (spread.sum() - 40.0).abs() < 1e-9);
        assert!((spread.deviation() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }
}
