//! Changes of a measure over many runs: after each run the last five are compared with the ten to
//! twenty before them, and with the level before the last change, to which they may be back.

use linerate_model::measure::{Better, Comparison, MeasureInfo};
use linerate_model::stats::{median, median_deviation, shift_interval};

/// Runs that are judged.
pub(crate) const AFTER: usize = 5;
/// Runs they are compared with.
pub(crate) const BEFORE: usize = 20;
/// Fewest runs they are compared with, at the start of a history.
const BEFORE_MIN: usize = 10;
/// Fewest values that can show a change.
pub const RUNS_MIN: usize = AFTER + BEFORE_MIN;
/// Most pairs of 100 that the side without a lead may win, ties half: a two-sided significance of
/// 0.0007, which allows one look after every run. Of 50 pairs, with ten runs before, it may win
/// none for the same significance.
const PAIRS_WON_MAX: f64 = 5.0;
/// No path is steadier than this share from one run to the next.
const FLOOR_MIN: f64 = 0.01;

/// A change of a measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Position of the first of the five values that show it.
    pub at: usize,
    /// Position of the value after which it was found.
    pub found_at: usize,
    /// Effect: the ratio of the values after to those before, or their difference, as the catalogue
    /// compares the measure.
    pub effect: f64,
    /// True if the measure became worse. A change for the better clears it.
    pub is_worse: bool,
}

/// All changes in the values of a measure, in the order of the runs. A change is found once: looks
/// that see it again while it is among their twenty-five values add nothing.
pub fn change_points(info: &MeasureInfo, values: &[f64]) -> Vec<ChangePoint> {
    let mut found: Vec<ChangePoint> = Vec::new();
    for end in RUNS_MIN..=values.len() {
        let recovery = || recovery(info, &values[..end], found.last()?);
        let Some(change) = look(info, &values[..end]).or_else(recovery) else {
            continue;
        };
        // The comparison finds one change after several further runs as well.
        let is_known = |last: &ChangePoint| {
            last.is_worse == change.is_worse && change.at < last.at + BEFORE + AFTER
        };
        if !found.last().is_some_and(is_known) {
            found.push(change);
        }
    }

    found
}

/// The change of the last five of these values against the ten to twenty before; `None` without
/// one, or with fewer values.
pub fn look(info: &MeasureInfo, values: &[f64]) -> Option<ChangePoint> {
    let at = values.len().checked_sub(AFTER)?;
    let before = &values[at.saturating_sub(BEFORE)..at];
    let after = &values[at..];
    let won_max = match before.len() {
        BEFORE => PAIRS_WON_MAX,
        BEFORE_MIN.. => 0.0,
        _ => return None,
    };
    let pairs = after
        .iter()
        .flat_map(|after| before.iter().map(move |before| after.total_cmp(before)));
    // An order of -1, 0 or 1 is no pair, half a pair or a pair that is won.
    let won: f64 = pairs.map(|order| f64::from(order as i8 + 1) / 2.0).sum();
    // Either side may lead: the other one has the remaining pairs.
    if won.min((AFTER * before.len()) as f64 - won) > won_max {
        return None;
    }

    let middle = median(before)?.abs();
    // The noise of the path from run to run: a smaller shift is no change.
    let deviation = median_deviation(before)?;

    // As a ratio where the catalogue has it so, and where there is something to divide by.
    let (effect, floor, none) = match info.comparison {
        Comparison::Ratio { floor } if middle > 0.0 => {
            let (ratio, _) = shift_interval(after, before, 0.95, |after, before| after / before)?;
            (
                ratio,
                FLOOR_MIN.max(floor / middle).max(2.0 * deviation / middle),
                1.0,
            )
        }
        Comparison::Ratio { floor } | Comparison::Difference { floor } => {
            let (difference, _) =
                shift_interval(after, before, 0.95, |after, before| after - before)?;
            (difference, floor.max(2.0 * deviation), 0.0)
        }
    };
    let is_worse = (effect > none) != (info.better == Better::More);
    ((effect - none).abs() > floor).then_some(ChangePoint {
        at,
        found_at: values.len() - 1,
        effect,
        is_worse,
    })
}

/// Position of the first value at the level after a change. The five values that show a change may
/// begin a few values before or after it: the best split of the values around it decides. The level
/// before it is that since `start`, where the change before it began.
pub(crate) fn onset(values: &[f64], change: &ChangePoint, start: usize) -> usize {
    let from = change.at.saturating_sub(AFTER).max(start);
    let to = change.found_at;
    let levels = (
        median(&values[change.at.saturating_sub(BEFORE).max(start)..change.at]),
        median(&values[change.at..=to]),
    );
    let (Some(before), Some(after)) = levels else {
        return change.at;
    };
    let middle = f64::midpoint(before, after);
    let is_after = |at: &usize| (values[*at] > middle) == (after > middle);
    let errors = |split: &usize| {
        let early = (from..*split).filter(is_after).count();
        early + (*split..=to).filter(|at| !is_after(at)).count()
    };
    (from..=to).min_by_key(errors).unwrap_or(change.at)
}

/// A recovery: the last five of these values are back at the level before a change for the worse.
/// The values since that change can be fewer than a comparison needs, and one of the five may be a
/// run that failed in its own way.
fn recovery(info: &MeasureInfo, values: &[f64], last: &ChangePoint) -> Option<ChangePoint> {
    /// Values of the five that must be back.
    const BACK_MIN: usize = 4;

    let at = values
        .len()
        .checked_sub(AFTER)
        .filter(|at| last.is_worse && *at > last.at)?;
    let level = values.get(last.at.saturating_sub(BEFORE)..last.at)?;
    let since = values.get(last.at..at)?;
    let after = values.get(at..)?;
    let good = median(level)?;
    let bad = median(since)?;
    let now = median(after)?;

    // As near to the former level as its own runs are, and most runs on its side of the middle of
    // both levels.
    let near = (2.0 * median_deviation(level)?).max(FLOOR_MIN * good.abs());
    let is_near = (now - good).abs() <= near && (good - bad).abs() > near;
    let middle = f64::midpoint(good, bad);
    let is_back = |value: &&f64| (**value > middle) == (good > middle);
    if !is_near || after.iter().filter(is_back).count() < BACK_MIN {
        return None;
    }

    let effect = match info.comparison {
        Comparison::Ratio { .. } if bad != 0.0 => now / bad,
        _ => now - bad,
    };
    Some(ChangePoint {
        at,
        found_at: values.len() - 1,
        effect,
        is_worse: false,
    })
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use linerate_model::measure::MeasureName;

    use super::*;

    /// Values around `middle`; the sum of twelve uniform ones is close to normal.
    fn noise(rng: &mut Rng, middle: f64, cv: f64, count: usize) -> Vec<f64> {
        let normal = |rng: &mut Rng| (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        (0..count)
            .map(|_| middle * (1.0 + cv * normal(rng)))
            .collect()
    }

    fn changes(values: &[f64]) -> Vec<ChangePoint> {
        change_points(&MeasureName::ReceivedBps.info(), values)
    }

    #[test]
    fn a_loss_of_a_tenth_is_found_within_six_runs_and_cleared_the_same_way() {
        let mut rng = Rng::with_seed(17);
        let mut runs_needed = Vec::new();

        for round in 0..60 {
            let mut values = noise(&mut rng, 1e9, [0.01, 0.02, 0.03][round % 3], 25);
            values.extend(noise(&mut rng, 0.9e9, 0.02, 25));
            values.extend(noise(&mut rng, 1e9, 0.02, 25));

            let found = changes(&values);
            let [loss, gain] = found.as_slice() else {
                panic!("round {round}: {found:?}")
            };
            assert!(
                loss.is_worse && (0.86..0.945).contains(&loss.effect),
                "{loss:?}"
            );
            assert!(!gain.is_worse && gain.found_at >= 50, "{gain:?}");
            runs_needed.push(loss.found_at - 24);
        }

        runs_needed.sort_unstable();
        assert_eq!(runs_needed[30], 5);
        assert!(runs_needed[54] <= 6, "{runs_needed:?}");
    }

    #[test]
    fn a_loss_in_the_middle_of_28_runs_is_found() {
        let mut rng = Rng::with_seed(3);
        let mut values = noise(&mut rng, 38.5e6, 0.003, 14);
        values.extend(noise(&mut rng, 29e6, 0.003, 14));

        let found = changes(&values);
        let [loss] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert!(loss.is_worse && loss.at == 14, "{loss:?}");
    }

    #[test]
    fn a_level_that_is_back_is_a_change_although_a_run_failed_and_the_slow_ones_were_few() {
        let level = |middle: f64, count: usize| {
            (0..count).map(move |at| middle + [0.0, 4e6, -3e6, 2e6][at % 4])
        };
        let mut values: Vec<f64> = level(937e6, 20).chain(level(846e6, 11)).collect();
        assert_eq!(changes(&values).len(), 1);
        values.extend([940e6, 941e6, 943e6, 12e6, 948e6, 939e6]);

        let found = changes(&values);
        let [loss, gain] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert!(loss.is_worse && loss.at == 20, "{loss:?}");
        assert!(
            !gain.is_worse && gain.at == 31 && (1.1..1.12).contains(&gain.effect),
            "{gain:?}"
        );

        // One good run among slow ones, and a level between both, are no recovery.
        let mut slow: Vec<f64> = level(937e6, 20).chain(level(846e6, 8)).collect();
        slow.extend([
            941e6, 846e6, 845e6, 939e6, 844e6, 890e6, 891e6, 889e6, 890e6,
        ]);
        assert_eq!(changes(&slow).len(), 1);
    }

    #[test]
    fn steady_runs_have_at_most_one_change_in_two_thousand() {
        let mut rng = Rng::with_seed(19);
        for cv in [0.01, 0.02, 0.03] {
            let found = changes(&noise(&mut rng, 1e9, cv, 10_000));
            let losses = found.iter().filter(|change| change.is_worse).count();
            assert!(losses <= 5, "{losses} at {cv}");
        }
    }

    #[test]
    fn few_values_equal_values_and_effects_below_the_floor_are_no_change() {
        assert!(changes(&[1e9; 24]).is_empty());
        assert!(changes(&[1e9; 100]).is_empty());
        let mut values = vec![1e9; 40];
        values[20..].fill(0.995e9);
        assert!(changes(&values).is_empty());
        values[20..].fill(0.98e9);
        assert_eq!(changes(&values).len(), 1);

        let mut retransmits = vec![0.0; 20];
        retransmits.extend([30.0; 5]);
        let found = change_points(&MeasureName::Retransmits.info(), &retransmits);
        assert!(
            found.len() == 1 && found[0].is_worse && found[0].at == 20,
            "{found:?}"
        );
    }
}
