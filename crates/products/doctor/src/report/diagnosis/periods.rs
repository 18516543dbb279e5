//! Limits of a test over time.

use linerate_model::finding::LimitPeriod;

use crate::limit::limit_name;

/// A tenth of a second.
const TENTH_MS: u64 = 100;

/// `slow start 1.0 s, receiver's CPU 9.0 s`, of an examined path
/// `down: slow start 1.0 s, receiver's CPU 9.0 s; up: ...`; `None` where the limit did not change.
pub(super) fn text(timeline: &[LimitPeriod]) -> Option<String> {
    let mut periods: Vec<LimitPeriod> = Vec::new();
    for period in timeline
        .iter()
        // A shorter period would be printed as 0.0 s.
        .filter(|period| period.length_ms >= TENTH_MS / 2)
    {
        match periods
            .last_mut()
            .filter(|last| (&last.load, &last.verdict) == (&period.load, &period.verdict))
        {
            Some(last) => last.length_ms = last.length_ms.saturating_add(period.length_ms),
            None => periods.push(period.clone()),
        }
    }

    let has_changed = periods
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.verdict != b.verdict));
    let of_loads = periods.chunk_by(|a, b| a.load == b.load).map(of_load);
    has_changed.then(|| of_loads.collect::<Vec<_>>().join("; "))
}

fn of_load(periods: &[LimitPeriod]) -> String {
    let load = periods.first().and_then(|first| first.load.as_ref());
    let words: Vec<String> = periods.iter().map(word).collect();
    load.map_or_else(String::new, |load| format!("{load}: ")) + &words.join(", ")
}

fn word(period: &LimitPeriod) -> String {
    let tenths = period.length_ms.saturating_add(TENTH_MS / 2) / TENTH_MS;
    let name = limit_name(&period.verdict);
    format!(
        "{} {}.{} s",
        name.trim_start_matches("the "),
        tenths / 10,
        tenths % 10
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(load: Option<&str>, verdict: &str, length_ms: u64) -> LimitPeriod {
        LimitPeriod {
            load: load.map(str::to_owned),
            verdict: verdict.to_owned(),
            length_ms,
        }
    }

    #[test]
    fn periods_of_loads_have_their_names_and_equal_ones_are_no_change() {
        let timeline = [
            period(Some("down"), "path", 1000),
            period(Some("down"), "path", 500),
            period(Some("up"), "unknown", 300),
            period(Some("up"), "path", 2000),
        ];
        let all = "down: path 1.5 s; up: unknown 0.3 s, path 2.0 s";
        assert_eq!(text(&timeline).as_deref(), Some(all));
        assert_eq!(text(&timeline[..2]), None);
        assert_eq!(
            text(&[
                period(Some("down"), "path", 1000),
                period(Some("up"), "path", 900)
            ]),
            None
        );
        assert_eq!(
            text(&[period(None, "path", 30), period(None, "unknown", 1000)]),
            None,
            "too short to be seen"
        );
    }
}
