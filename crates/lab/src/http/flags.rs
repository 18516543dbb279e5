//! Flags of one run: defects that limit how far it can be trusted.

use linerate_model::http::{Flag, LoadResult, Mode};

/// The halves of a window may differ by this share.
const STEADY: f64 = 0.05;
/// Answers times their latency may differ from the number of connections by this share.
const LITTLE: f64 = 0.1;
/// Answers of each connection from which on the edges of the window do not matter to the comparison.
const LITTLE_ANSWERS_MIN: u64 = 20;
/// With more failures than this the connections were busy with what is not counted.
const LITTLE_ERRORS_MAX: f64 = 0.01;

/// Flags of a run: those the generator set, which alone knows whether it was late itself, and those its stats show.
#[must_use]
pub fn flags(load: &LoadResult) -> Vec<Flag> {
    let mut flags = load.flags.clone();
    flags.extend(is_unsteady(load).then_some(Flag::Unsteady));
    flags.extend(breaks_littles_law(load).then_some(Flag::Little));
    flags.sort_unstable();
    flags.dedup();
    flags
}

/// Whether the first and the second half of the window differ by more than 5 %, and by more than chance explains: of
/// few answers the halves always differ.
fn is_unsteady(load: &LoadResult) -> bool {
    const DEVIATIONS: f64 = 3.0;
    let whole_seconds = usize::try_from(load.window_ns / 1_000_000_000).unwrap_or(usize::MAX);
    let measured: Vec<u64> = load
        .seconds
        .iter()
        .skip(load.warmup_seconds as usize)
        .take(whole_seconds)
        .map(|second| second.ok)
        .collect();
    let half = measured.len() / 2;
    let sum = |seconds: &[u64]| seconds.iter().sum::<u64>() as f64;
    // The middle second of an odd number belongs to neither half.
    let (first, second) = (sum(&measured[..half]), sum(&measured[measured.len() - half..]));
    let both = first + second;
    let apart = (first - second).abs();
    apart > STEADY * both / 2.0 && apart > DEVIATIONS * both.sqrt()
}

/// Little's law: in a closed loop without pauses, answers per second times mean latency are the requests in flight.
/// Where they are not, connections were idle or something was counted wrongly.
fn breaks_littles_law(load: &LoadResult) -> bool {
    let Mode::Closed { pipeline, think_ns: 0 } = load.mode else {
        return false;
    };
    let in_flight = load.connections.opened.saturating_mul(u64::from(pipeline.max(1)));
    let has_enough = in_flight > 0
        && load.ok >= in_flight.saturating_mul(LITTLE_ANSWERS_MIN)
        && load.error_share().is_some_and(|share| share <= LITTLE_ERRORS_MAX);
    let Some(ok_per_s) = load.ok_per_s().filter(|_| has_enough) else {
        return false;
    };
    let found = ok_per_s * load.latency.mean_ns / 1e9;
    (found / in_flight as f64 - 1.0).abs() > LITTLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::fixture::load;
    use linerate_model::http::{ErrorClass, Second};

    fn with_seconds(ok: &[u64], warmup_seconds: u32) -> LoadResult {
        let second = |ok: &u64| Second {
            ok: *ok,
            ..Second::default()
        };
        LoadResult {
            seconds: ok.iter().map(second).collect(),
            warmup_seconds,
            window_ns: (ok.len() as u64 - u64::from(warmup_seconds)) * 1_000_000_000,
            mode: Mode::Closed {
                pipeline: 1,
                think_ns: 1,
            },
            ..load(1000.0)
        }
    }

    #[test]
    fn halves_that_differ_by_more_than_a_twentieth_are_unsteady() {
        for (seconds, expected) in [
            (&[1000, 1000, 1000, 1000, 1000, 1000][..], false),
            (&[1040, 1040, 1040, 1000, 1000, 1000], false),
            (&[1000, 1000, 1000, 1200, 1200, 1200], true),
            (&[1200, 1200, 1000, 1000], true),
            // A middle second counts for neither half.
            (&[1000, 9000, 1000], false),
            (&[1000], false),
            (&[], false),
            // Of ten answers each half may well have six.
            (&[6, 4], false),
        ] {
            let flags = flags(&with_seconds(seconds, 0));
            assert_eq!(flags.contains(&Flag::Unsteady), expected, "{seconds:?}");
        }
    }

    #[test]
    fn a_bad_warm_up_and_the_seconds_after_the_window_do_not_count() {
        let mut load = with_seconds(&[10, 20, 1000, 1000, 1000, 1000, 30], 2);
        load.window_ns = 4_500_000_000;
        assert!(!flags(&load).contains(&Flag::Unsteady));
    }

    #[test]
    fn answers_times_latency_are_the_connections() {
        let clean = load(1000.0);
        assert_eq!(flags(&clean), []);
        let mut wrong = clean.clone();
        wrong.latency.mean_ns *= 0.8;
        assert_eq!(flags(&wrong), [Flag::Little]);
        let mut pipelined = wrong.clone();
        pipelined.mode = Mode::Closed {
            pipeline: 2,
            think_ns: 0,
        };
        pipelined.latency.mean_ns = clean.latency.mean_ns * 2.0;
        assert_eq!(flags(&pipelined), []);
        let mut with_pauses = wrong.clone();
        with_pauses.mode = Mode::Closed {
            pipeline: 1,
            think_ns: 5,
        };
        assert_eq!(flags(&with_pauses), []);
        let mut short = wrong.clone();
        short.ok = 19 * short.connections.opened;
        assert_eq!(flags(&short), []);
        let mut failing = wrong;
        for _ in 0..failing.ok / 50 {
            failing.errors.add(ErrorClass::Timeout, String::new);
        }
        assert_eq!(flags(&failing), []);
    }

    #[test]
    fn flags_of_the_generator_stay_and_none_stands_twice() {
        let mut load = with_seconds(&[1000, 1000, 2000, 2000], 0);
        load.flags = vec![Flag::Unsteady, Flag::DirtyStart];
        assert_eq!(flags(&load), [Flag::Unsteady, Flag::DirtyStart]);
    }
}
