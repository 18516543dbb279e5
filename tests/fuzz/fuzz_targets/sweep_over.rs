//! Factors of a sweep as typed behind `--over`: reading arbitrary text ends, and factors that are
//! accepted are read back unchanged from their printed form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_sweep::spec::grammar::{self, Levels, SweptFactor};

fuzz_target!(|text: &str| {
    for line in text.split('\n') {
        let _ = (
            grammar::budget(line),
            grammar::length(line),
            grammar::window(line),
            grammar::rate(line),
        );
    }
    let typed: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for is_udp in [false, true] {
        if let Ok(factors) = grammar::factors(&typed, is_udp) {
            check(&factors, is_udp);
        }
    }
});

fn check(factors: &[SweptFactor], is_udp: bool) {
    let printed: Vec<String> = factors.iter().map(SweptFactor::to_string).collect();
    assert_eq!(
        grammar::factors(&printed, is_udp).as_deref(),
        Ok(factors),
        "factors are read back as printed"
    );

    for factor in factors {
        let is_valid = match &factor.levels {
            Levels::Range(low, high) => 0 < *low && low < high,
            Levels::List(levels) => !levels.is_empty() && levels.is_sorted(),
            Levels::Congestion(names) => names.len() != 1 && names.len() <= 64,
            Levels::Affinity(cpus) => cpus.len() != 1 && cpus.len() <= 64,
        };
        assert!(is_valid, "{factor:?}");
    }
}
