//! Neighbouring series of one stream with the same times, as one value: times first, then one
//! column per series.

use linerate_model::record::{Series, SeriesOf, Times, Way};

use super::Packed;
use crate::StoreError;

/// No series has more points.
const MAX_POINTS: usize = 1_000_000;

/// Series that share everything but names and values.
pub(crate) struct Group {
    pub names: Vec<String>,
    pub of: SeriesOf,
    pub way: Way,
    pub is_thinned: bool,
    /// Values of each series.
    pub points: usize,
    pub t0_ns: u64,
    /// `None` where the ends of the intervals are in the value.
    pub step_ns: Option<u64>,
    pub packed: Packed,
}

/// All series in their order, neighbours together where they fit.
pub(crate) fn groups(series: &[Series]) -> impl Iterator<Item = Group> {
    // The names of a group are one column of text, separated by commas.
    let fits = |a: &Series, b: &Series| {
        (&a.of, a.way, a.is_thinned, &a.times) == (&b.of, b.way, b.is_thinned, &b.times)
            && a.values.len() == b.values.len()
            && !a.name.contains(',')
            && !b.name.contains(',')
    };
    series.chunk_by(fits).map(group)
}

fn group(members: &[Series]) -> Group {
    let first = &members[0];
    let mut bytes = Vec::new();
    let (t0_ns, step_ns) = match &first.times {
        Times::Grid { t0_ns, step_ns } => (*t0_ns, Some(*step_ns)),
        Times::Ends { t0_ns, ends_ns } => {
            put(&mut bytes, ends_ns.len() as u64);
            put_deltas(
                &mut bytes,
                ends_ns
                    .iter()
                    .map(|end| end.wrapping_sub(*t0_ns).cast_signed()),
            );
            (*t0_ns, None)
        }
    };

    for series in members {
        put_column(&mut bytes, &series.values);
    }

    Group {
        names: members.iter().map(|series| series.name.clone()).collect(),
        of: first.of.clone(),
        way: first.way,
        is_thinned: first.is_thinned,
        points: first.values.len(),
        t0_ns,
        step_ns,
        packed: Packed::new(&bytes),
    }
}

impl Group {
    /// The series.
    ///
    /// # Errors
    /// A wrong checksum, or a value that is cut off or has more points than allowed.
    pub(crate) fn series(self) -> Result<Vec<Series>, StoreError> {
        let what = || format!("series {}", self.names.join(","));
        let bytes = self.packed.bytes(&what)?;
        let cut_off = || StoreError::damaged(what(), "cut off, or more points than allowed");
        if self.points > MAX_POINTS {
            return Err(cut_off());
        }

        let rest = &mut &*bytes;
        let times = match self.step_ns {
            Some(step_ns) => Times::Grid {
                t0_ns: self.t0_ns,
                step_ns,
            },
            None => Times::Ends {
                t0_ns: self.t0_ns,
                ends_ns: take_ends(rest, self.t0_ns).ok_or_else(cut_off)?,
            },
        };

        let series = self.names.iter().map(|name| {
            let mut column = Series::new(
                name.clone(),
                self.of.clone(),
                self.way,
                times.clone(),
                take_column(rest, self.points)?,
            );
            column.is_thinned = self.is_thinned;
            Some(column)
        });
        series.collect::<Option<_>>().ok_or_else(cut_off)
    }
}

const ALL_PRESENT: u8 = 1;
const INTEGERS: u8 = 2;

/// A byte of properties, a bit for each value that is present unless all are, and the values:
/// integers as differences.
fn put_column(bytes: &mut Vec<u8>, values: &[Option<f64>]) {
    // JSON has no other numbers.
    let finite: Vec<Option<f64>> = values
        .iter()
        .map(|value| value.filter(|value| value.is_finite()))
        .collect();
    let present: Vec<f64> = finite.iter().flatten().copied().collect();
    let integers: Option<Vec<i64>> = present.iter().map(|value| integer(*value)).collect();
    let all_present = present.len() == values.len();
    bytes.push(
        if all_present { ALL_PRESENT } else { 0 } | if integers.is_some() { INTEGERS } else { 0 },
    );

    if !all_present {
        let bits = |eight: &[Option<f64>]| {
            (0_u8..)
                .zip(eight)
                .map(|(bit, value)| u8::from(value.is_some()) << bit)
                .sum()
        };
        bytes.extend(finite.chunks(8).map::<u8, _>(bits));
    }

    match integers {
        Some(integers) => put_deltas(bytes, integers.into_iter()),
        None => bytes.extend(present.iter().flat_map(|value| value.to_le_bytes())),
    }
}

fn take_column(rest: &mut &[u8], points: usize) -> Option<Vec<Option<f64>>> {
    let [properties] = take(rest)?;
    let mut is_present = vec![true; points];

    if properties & ALL_PRESENT == 0 {
        let (bits, after) = rest.split_at_checked(points.div_ceil(8))?;
        *rest = after;
        // There is a bit for each point, so that the index is within the bytes.
        is_present = (0..points)
            .map(|at| bits[at / 8] >> (at % 8) & 1 == 1)
            .collect();
    }

    let mut last = 0_i64;
    let mut value = || {
        if properties & INTEGERS == 0 {
            return take(rest).map(f64::from_le_bytes);
        }
        last = last.wrapping_add(take_signed(rest)?);
        Some(last as f64)
    };

    is_present
        .into_iter()
        .map(|is_present| {
            if is_present {
                value().map(Some)
            } else {
                Some(None)
            }
        })
        .collect()
}

/// The value as an integer where that loses nothing, not even the sign of a zero.
fn integer(value: f64) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the comparison recognises every loss"
    )]
    let integer = value as i64;
    // From 2^53 on a double skips integers.
    (integer.unsigned_abs() < 1 << 53 && (integer as f64).to_bits() == value.to_bits())
        .then_some(integer)
}

fn take_ends(rest: &mut &[u8], t0_ns: u64) -> Option<Vec<u64>> {
    let count = usize::try_from(take_unsigned(rest)?)
        .ok()
        .filter(|count| *count <= MAX_POINTS)?;
    let mut last = 0_i64;
    let ends = (0..count).map(|_| {
        last = last.wrapping_add(take_signed(rest)?);
        // The inverse of the wrapped difference that was written, of either sign.
        Some(t0_ns.wrapping_add(last.cast_unsigned()))
    });

    ends.collect()
}

fn put_deltas(bytes: &mut Vec<u8>, values: impl Iterator<Item = i64>) {
    let mut last = 0_i64;
    for value in values {
        let delta = value.wrapping_sub(last);
        // Zigzag: small differences of either sign take few bytes.
        put(bytes, (delta << 1 ^ delta >> 63).cast_unsigned());
        last = value;
    }
}

fn take_signed(rest: &mut &[u8]) -> Option<i64> {
    let zigzag = take_unsigned(rest)?;
    Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
}

/// Seven bits a byte, the lowest first; the highest bit announces another byte (LEB128).
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_unsigned(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    // Ten groups of seven bits hold every number; more of them are damage.
    for shift in (0..64).step_by(7) {
        let [byte] = take(rest)?;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }

    None
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(points: usize) -> impl Strategy<Value = Times> {
        let grid = (any::<u64>(), any::<u64>())
            .prop_map(|(t0_ns, step_ns)| Times::Grid { t0_ns, step_ns });
        let ends = (any::<u64>(), prop::collection::vec(any::<u64>(), points));
        prop_oneof![
            grid,
            ends.prop_map(|(t0_ns, ends_ns)| Times::Ends { t0_ns, ends_ns })
        ]
    }

    fn value() -> impl Strategy<Value = Option<f64>> {
        let number = prop_oneof![
            any::<u32>().prop_map(f64::from),
            any::<f64>().prop_filter("JSON has finite numbers alone", |number| number.is_finite()),
            Just(-0.0),
        ];
        prop::option::of(number)
    }

    fn all_series() -> impl Strategy<Value = Vec<Series>> {
        let series = (0_usize..20).prop_flat_map(|points| {
            let columns = prop::collection::vec(prop::collection::vec(value(), points), 1..4);
            (times(points), columns, 0_u32..2, any::<bool>()).prop_map(
                |(times, columns, stream, is_thinned)| {
                    let series = columns
                        .into_iter()
                        .enumerate()
                        .map(move |(number, values)| {
                            let mut column = Series::new(
                                format!("name{number}"),
                                SeriesOf::Stream(stream),
                                Way::Forward,
                                times.clone(),
                                values,
                            );
                            column.is_thinned = is_thinned;
                            column
                        });
                    series.collect::<Vec<_>>()
                },
            )
        });
        prop::collection::vec(series, 0..4).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn every_series_is_restored_to_the_bit(series in all_series()) {
            let restored: Vec<Series> = groups(&series).flat_map(|group| group.series().expect("whole")).collect();
            // Debug distinguishes the zeros.
            prop_assert_eq!(format!("{restored:?}"), format!("{series:?}"));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes: Vec<u8>, points in 0_usize..2_000_000, has_step: bool) {
            let group = Group {
                names: vec!["a".into(), "b".into()],
                of: SeriesOf::Sum,
                way: Way::Sum,
                is_thinned: false,
                points,
                t0_ns: 0,
                step_ns: has_step.then_some(1),
                packed: Packed::new(&bytes),
            };
            if let Ok(series) = group.series() {
                prop_assert!(series.iter().all(|series| series.values.len() == points));
            }
        }
    }

    #[test]
    fn ten_seconds_of_five_series_take_less_than_twelve_bytes_an_interval() {
        let ends: Vec<u64> = (1..=10)
            .map(|second| second * 1_000_000_000 + second * 7919 % 90_000)
            .collect();
        let figure = |name: &str, base: u64, spread: u64| {
            Series::new(
                name,
                SeriesOf::Stream(1),
                Way::Forward,
                Times::Ends {
                    t0_ns: 0,
                    ends_ns: ends.clone(),
                },
                (0..10)
                    .map(|at| Some((base + at * 7919 % spread) as f64))
                    .collect(),
            )
        };
        let series = [
            figure("bytes", 117_000_000, 1_000_000),
            figure("retransmits", 0, 3),
            figure("snd_cwnd_bytes", 400_000, 20_000),
            figure("rtt_us", 900, 200),
            figure("rttvar_us", 90, 20),
        ];
        let groups: Vec<Group> = groups(&series).collect();
        assert_eq!(groups.len(), 1);
        assert!(
            groups[0].packed.blob.len() < 120,
            "{}",
            groups[0].packed.blob.len()
        );
    }
}
