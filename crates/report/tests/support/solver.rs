//! Finds amounts and times that print as a recorded row does.
//!
//! A row shows rounded bytes, a rounded rate and rounded times. The real run had values that fit all of them and the
//! sum below; this looks for some that do.

/// The numbers of one printed row.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    pub(crate) bytes: Range,
    pub(crate) bits_per_second: Range,
}

/// What a printed number may have been.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Seconds and bytes of each row that print as the rows do. The sum shares its time with the first row.
pub(crate) fn solve(rows: &[Shown], sum: Option<&Shown>) -> Vec<(f64, u64)> {
    let first = rows.first().expect("a group has rows");
    let with_same_time = || {
        durations(first).find_map(|seconds| {
            let ranges: Option<Vec<Range>> = rows.iter().map(|row| row.possible_bytes(seconds)).collect();
            let bytes = amounts(&ranges?, sum, seconds)?;
            Some(bytes.into_iter().map(|bytes| (seconds, bytes)).collect())
        })
    };
    // Intervals of some microseconds: the time between reading two streams shows.
    let with_own_times = || {
        durations(first).find_map(|seconds| {
            let ranges: Vec<Range> = std::iter::once(first.possible_bytes(seconds)?)
                .chain(rows[1..].iter().map(|row| row.bytes))
                .collect();
            let bytes = amounts(&ranges, sum, seconds)?;
            let own_time = |row: &Shown, bytes: u64| bytes as f64 * 8.0 / row.bits_per_second.middle();
            let others = rows.iter().zip(&bytes).skip(1).map(|(row, b)| (own_time(row, *b), *b));
            Some(std::iter::once((seconds, bytes[0])).chain(others).collect())
        })
    };
    with_same_time()
        .or_else(with_own_times)
        .unwrap_or_else(|| panic!("no numbers print as {rows:?} with sum {sum:?}"))
}

/// Durations whose end prints as shown, from coarse to fine.
fn durations(row: &Shown) -> impl Iterator<Item = f64> {
    let shown_s = row.end_s - row.start_s;
    // Both times are rounded, but a test starts at exactly 0.
    let range = if row.start_s > 0.0 { 980 } else { 490 };
    let steps = (-range..=range).map(move |step| shown_s + f64::from(step) * 1e-5);
    let small = (1..5000).map(|step| f64::from(step) * 1e-6);
    steps.chain(small).filter(|seconds| *seconds > 0.0)
}

fn amounts(ranges: &[Range], sum: Option<&Shown>, seconds: f64) -> Option<Vec<u64>> {
    let low: f64 = ranges.iter().map(|r| r.low).sum();
    let high: f64 = ranges.iter().map(|r| r.high).sum();
    let share = match sum {
        Some(sum) => {
            let total = sum.possible_bytes(seconds)?.within(Range { low, high })?;
            if high > low {
                (total.middle() - low) / (high - low)
            } else {
                0.5
            }
        }
        None => 0.5,
    };
    Some(
        ranges
            .iter()
            .map(|r| (r.low + share * (r.high - r.low)).round() as u64)
            .collect(),
    )
}

impl Shown {
    fn possible_bytes(&self, seconds: f64) -> Option<Range> {
        let by_rate = Range {
            low: self.bits_per_second.low * seconds / 8.0,
            high: self.bits_per_second.high * seconds / 8.0,
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
    fn within(self, other: Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then_some(Self { low, high })
    }

    fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// Reads `1.25 MBytes` or `101 Mbits/sec` (in bytes or bits). `adaptive`: the unit was chosen to fit.
    pub(crate) fn parse(number: &str, unit: &str, adaptive: bool) -> Self {
        let value: f64 = number.parse().expect("a number");
        let decimals = number.split_once('.').map_or(0, |(_, d)| d.len());
        let half = 0.5 * f64::powi(10.0, -i32::try_from(decimals).expect("few digits"));
        let is_bytes = unit.contains("Byte");
        let base: f64 = if is_bytes { 1024.0 } else { 1000.0 };
        let power = match unit.as_bytes()[0] {
            b'K' => 1,
            b'M' => 2,
            b'G' => 3,
            b'T' => 4,
            _ => 0,
        };
        let (mut low, mut high) = ((value - half).max(0.0), value + half);
        if adaptive {
            low = low.max(if power > 0 { 1.0 } else { 0.0 });
            high = high.min(base);
        }
        let slack = (high - low) * 1e-3;
        let scale = base.powi(power) * if is_bytes && unit.contains("/sec") { 8.0 } else { 1.0 };
        Self {
            low: if low > 0.0 { (low + slack) * scale } else { 0.0 },
            high: if value > 0.0 || !adaptive {
                (high - slack) * scale
            } else {
                0.0
            },
        }
    }
}
