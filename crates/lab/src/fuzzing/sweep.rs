//! Factors of a sweep from arbitrary text.

use crate::grammar::{self, Levels, Swept};

/// Reads whatever the text may mean, each line as one option, for TCP and for UDP; returns how many of the two took it.
///
/// # Panics
/// When factors that were accepted are not read back as they are printed, or have levels that are none.
#[must_use]
pub fn factors_from_anything(text: &str) -> usize {
    for line in text.split('\n') {
        let _ = grammar::budget(line);
        let _ = grammar::length(line);
        let _ = grammar::window(line);
        let _ = grammar::rate(line);
    }
    let typed: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let accepted = [false, true].into_iter().filter(|is_udp| {
        let read = grammar::factors(&typed, *is_udp);
        if let Ok(factors) = &read {
            assert_sound(factors, *is_udp);
        }
        read.is_ok()
    });
    accepted.count()
}

fn assert_sound(factors: &[Swept], is_udp: bool) {
    let printed: Vec<String> = factors.iter().map(Swept::to_string).collect();
    let again = grammar::factors(&printed, is_udp);
    assert_eq!(
        again.as_deref(),
        Ok(factors),
        "factors are read back as they were printed"
    );
    for factor in factors {
        let is_sound = match &factor.levels {
            Levels::Range(low, high) => 0 < *low && low < high,
            Levels::Congestion(names) => names.len() != 1 && names.len() <= 64,
            Levels::Affinity(places) => places.len() != 1 && places.len() <= 64,
        };
        assert!(is_sound, "{factor:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_sound_for_one_transport_or_both_and_nonsense_is_survived() {
        assert_eq!(factors_from_anything("streams=1..8\ncongestion,affinity=any,0/1"), 2);
        assert_eq!(factors_from_anything("length=1..64K"), 1);
        for text in ["", "\n", "15m", "streams=1..8,", "=", "window=é..G"] {
            assert_eq!(factors_from_anything(text), 0, "{text:?}");
        }
    }
}
