//! Finds amounts and times that print as recorded rows do: rows show rounded bytes, a rounded rate and rounded times.

/// What a printed number may have been.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    low: f64,
    high: f64,
}

/// The numbers of one printed row.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    /// Half a unit of the last digit of the times.
    pub(crate) rounding_s: f64,
    pub(crate) bytes: Range,
    pub(crate) bits_per_s: Range,
}

/// Seconds and bytes of each row that print as the rows do. All rows and the sum share their time.
pub(crate) fn solve(rows: &[Shown], sum: Option<&Shown>) -> Vec<(f64, u64)> {
    let first = rows.first().expect("a group has rows");
    let found = first.durations().into_iter().find_map(|seconds| {
        let ranges: Option<Vec<Range>> = rows.iter().map(|row| row.possible_bytes(seconds)).collect();
        let ranges = ranges?;
        let all = Range {
            low: ranges.iter().map(|range| range.low).sum(),
            high: ranges.iter().map(|range| range.high).sum(),
        };
        let total = match sum {
            Some(sum) => sum.possible_bytes(seconds)?.within(all)?.middle(),
            None => all.middle(),
        };
        let share = if all.high > all.low {
            (total - all.low) / (all.high - all.low)
        } else {
            0.5
        };
        let bytes = ranges.iter().map(|range| range.low + share * (range.high - range.low));
        Some(bytes.map(|bytes| (seconds, bytes.round() as u64)).collect())
    });
    found.unwrap_or_else(|| panic!("no numbers print as {rows:?} with sum {sum:?}"))
}

impl Shown {
    /// The duration as shown, the one that fits amount and rate best, and those in between.
    fn durations(&self) -> Vec<f64> {
        let shown_s = self.end_s - self.start_s;
        // A test starts at exactly 0; otherwise both times are rounded.
        let slack_s = self.rounding_s * if self.start_s > 0.0 { 1.99 } else { 0.998 };
        let fitting_s = self.bytes.middle() * 8.0 / self.bits_per_s.middle();
        let steps = (0..=400).map(|step| shown_s - slack_s + slack_s * f64::from(step) / 200.0);
        let all = [shown_s, fitting_s].into_iter().chain(steps);
        all.filter(|seconds| *seconds > 0.0 && (seconds - shown_s).abs() <= slack_s)
            .collect()
    }

    fn possible_bytes(&self, seconds: f64) -> Option<Range> {
        let by_rate = Range {
            low: self.bits_per_s.low * seconds / 8.0,
            high: self.bits_per_s.high * seconds / 8.0,
        };
        self.bytes.within(by_rate)
    }

    /// A start that prints as shown and so does the end that is `seconds` later.
    pub(crate) fn start_s(&self, seconds: f64) -> f64 {
        if self.start_s > 0.0 {
            self.start_s + (self.end_s - self.start_s - seconds) / 2.0
        } else {
            0.0
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.bytes.low <= 0.0
    }
}

impl Range {
    /// Reads `1.25 MBytes` or `101 Mbits/sec` (in bytes or bits).
    pub(crate) fn parse(number: &str, unit: &str) -> Self {
        let value: f64 = number.parse().expect("a number");
        let decimals = number.split_once('.').map_or(0, |(_, d)| d.len());
        let half = 0.499 * f64::powi(10.0, -i32::try_from(decimals).expect("few digits"));
        let is_bytes = unit.contains("Byte");
        let base: f64 = if is_bytes { 1024.0 } else { 1000.0 };
        let power = "KMGTP".find(&unit[..1]).map_or(0, |at| at as i32 + 1);
        // A unit that fits is chosen when there is at least one of it, and digits are dropped when there are enough.
        let is_fitting = power > 0 && (1.0..=base).contains(&value);
        let least: f64 = [99.95, 9.995, 0.9995, 0.0].get(decimals).copied().unwrap_or(0.0);
        let (least, most) = if is_fitting {
            (least.max(1.0), base)
        } else {
            (0.0, f64::INFINITY)
        };
        let scale = base.powi(power) * if is_bytes && unit.contains("/sec") { 8.0 } else { 1.0 };
        Self {
            low: (value - half).max(least) * scale,
            high: (value + half).min(most) * scale,
        }
    }

    fn within(self, other: Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then_some(Self { low, high })
    }

    fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}
