//! Flags of one run: defects that limit how far it can be trusted.

use linerate_model::http::{Flag, LoadResult, Mode};

/// The halves of a window may differ by this share.
const STEADY: f64 = 0.05;
/// Answers times their latency may differ from the number of connections by this share.
const LITTLE: f64 = 0.1;
/// Answers of each connection from which on the edges of the window do not matter to the
/// comparison.
const LITTLE_ANSWERS_MIN: u64 = 20;
/// With more failures than this the connections were busy with what is not counted.
const LITTLE_ERRORS_MAX: f64 = 0.01;

/// Flags of a run: those the generator set, which alone knows whether it was late itself, and those
/// its statistics show.
pub fn run_flags(load: &LoadResult) -> Vec<Flag> {
    let mut flags = load.flags.clone();
    flags.extend(is_unsteady(load).then_some(Flag::Unsteady));
    flags.extend(breaks_littles_law(load).then_some(Flag::Little));
    flags.sort_unstable();
    flags.dedup();
    flags
}

/// True if the first and the second half of the window differ by more than 5 %, and by more than
/// chance explains: of few answers the halves always differ.
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
    let first = sum(&measured[..half]);
    let second = sum(&measured[measured.len() - half..]);
    let both = first + second;
    let apart = (first - second).abs();

    // Counts of independent answers have their square root as standard deviation.
    apart > STEADY * both / 2.0 && apart > DEVIATIONS * both.sqrt()
}

/// Little's law: in a closed loop without pauses, answers per second times mean latency are the
/// requests in flight. Where they are not, connections were idle or something was counted wrongly.
fn breaks_littles_law(load: &LoadResult) -> bool {
    let Mode::Closed {
        pipeline,
        think_ns: 0,
    } = load.mode
    else {
        return false;
    };
    let in_flight = load
        .connections
        .opened
        .saturating_mul(u64::from(pipeline.max(1)));
    let has_enough = in_flight > 0
        && load.ok >= in_flight.saturating_mul(LITTLE_ANSWERS_MIN)
        && load
            .error_share()
            .is_some_and(|share| share <= LITTLE_ERRORS_MAX);
    let Some(ok_per_s) = load.ok_per_s().filter(|_| has_enough) else {
        return false;
    };
    let found = ok_per_s * load.latency.mean_ns / 1e9;

    (found / in_flight as f64 - 1.0).abs() > LITTLE
}

#[cfg(test)]
mod tests {
    use linerate_model::http::ErrorClass;
    use serde_json::json;

    use super::*;

    /// A closed loop of 64 connections with 1,000 responses per second and the latency that belongs
    /// to them.
    fn load(seconds: &[u64]) -> LoadResult {
        let seconds: Vec<_> = seconds
            .iter()
            .map(|ok| json!({ "ok": ok, "p99_ns": null, "errors": 0 }))
            .collect();
        let load = json!({
            "mode": { "kind": "closed", "pipeline": 1, "think_ns": 0 },
            "connections": { "wanted": 64, "opened": 64, "open_at_end": 64, "reconnects": 0, "dropped": 0 },
            "window_ns": 10_000_000_000_u64, "requests": 10_000, "ok": 10_000, "payload_bytes": 0,
            "http_bytes": null, "request_bytes": null, "response_head_bytes": null, "errors": {},
            "latency": { "n": 10_000, "mean_ns": 64e6 },
            "service": null, "send_lag": null, "connect": null,
            "seconds": seconds, "warmup_seconds": 0, "flags": [],
        });
        serde_json::from_value(load).expect("a result")
    }

    #[test]
    fn halves_that_differ_by_more_than_a_twentieth_are_unsteady() {
        for (seconds, window_s, warmup_seconds, expected) in [
            (&[1000, 1000, 1000, 1000, 1000, 1000][..], 6, 0, false),
            (&[1040, 1040, 1040, 1000, 1000, 1000], 6, 0, false),
            (&[1000, 1000, 1000, 1200, 1200, 1200], 6, 0, true),
            (&[1200, 1200, 1000, 1000], 4, 0, true),
            // A middle second counts for neither half.
            (&[1000, 9000, 1000], 3, 0, false),
            (&[1000], 1, 0, false),
            (&[], 0, 0, false),
            // Of ten responses each half may well have six.
            (&[6, 4], 2, 0, false),
            // Neither the warm-up nor the seconds after the window count.
            (&[10, 20, 1000, 1000, 1000, 1000, 30], 4, 2, false),
        ] {
            let mut load = load(seconds);
            load.window_ns = window_s * 1_000_000_000;
            load.warmup_seconds = warmup_seconds;
            load.ok = 0;
            assert_eq!(
                run_flags(&load).contains(&Flag::Unsteady),
                expected,
                "{seconds:?}"
            );
        }
    }

    type Spoil = fn(&mut LoadResult);

    #[test]
    fn responses_times_latency_are_the_connections() {
        let spoil: [(&str, Spoil, bool); 6] = [
            ("clean", |load| load.latency.mean_ns = 64e6, false),
            ("idle connections", |_| (), true),
            (
                "pipelined",
                |load| {
                    load.mode = Mode::Closed {
                        pipeline: 2,
                        think_ns: 0,
                    };
                    load.latency.mean_ns = 128e6;
                },
                false,
            ),
            (
                "with pauses",
                |load| {
                    load.mode = Mode::Closed {
                        pipeline: 1,
                        think_ns: 5,
                    };
                },
                false,
            ),
            ("few responses", |load| load.ok = 19 * 64, false),
            (
                "failing",
                |load| (0..200).for_each(|_| load.errors.add(ErrorClass::Timeout, String::new)),
                false,
            ),
        ];
        for (name, spoil, expected) in spoil {
            let mut load = load(&[]);
            load.latency.mean_ns = 0.8 * 64e6;
            spoil(&mut load);
            assert_eq!(run_flags(&load) == [Flag::Little], expected, "{name}");
        }
    }

    #[test]
    fn flags_of_the_generator_are_kept_and_not_repeated() {
        let mut load = load(&[1000, 1000, 2000, 2000]);
        load.window_ns = 4_000_000_000;
        load.flags = vec![Flag::Unsteady, Flag::DirtyStart];
        load.ok = 0;
        assert_eq!(run_flags(&load), [Flag::Unsteady, Flag::DirtyStart]);
    }
}
