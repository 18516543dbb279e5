//! Plan files from arbitrary bytes.

use crate::http::cells::{Phases, runs};
use crate::http::estimate::estimate;
use crate::http::plan::{Format, Plan, RUNS_MAX};

/// Reads whatever the bytes may mean in both languages; returns how many of them took it for a plan.
///
/// # Panics
/// When a plan that was accepted is not read back as it was, or means more runs than a plan may.
#[must_use]
pub fn plan_from_anything(bytes: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return 0;
    };
    let plans = [Format::Toml, Format::Yaml]
        .into_iter()
        .filter_map(|format| Plan::parse(text, format).ok());
    plans.inspect(assert_sound).count()
}

fn assert_sound(plan: &Plan) {
    for plan in [plan.clone(), plan.clone().quick()] {
        let again = Plan::parse(&plan.to_toml(), Format::Toml);
        assert_eq!(again.as_ref(), Ok(&plan), "a plan is read back as it was written");
        assert_eq!(
            again.map(|again| again.hash()),
            Ok(plan.hash()),
            "equal plans have equal names"
        );
        let planned = runs(&plan, Phases::ALL).len();
        assert!(planned as u64 <= RUNS_MAX + 200, "{planned} runs");
        let _ = estimate(&plan, Phases::ALL, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_sound_in_its_language_and_nonsense_is_survived() {
        assert_eq!(plan_from_anything(b""), 2);
        assert_eq!(plan_from_anything(Plan::default().to_toml().as_bytes()), 1);
        assert_eq!(plan_from_anything(b"[protocol]\nversion = '2'\ncacert = 'a\"\\'"), 1);
        assert_eq!(plan_from_anything(b"phase3: {idle: {steps: [7], heartbeat: 2s}}"), 1);
        for bytes in [&b"\xff\xfe"[..], b"{---", b"[[[[", b"a: &a [*a]", b"seed = 1_0_"] {
            assert_eq!(plan_from_anything(bytes), 0, "{bytes:?}");
        }
    }
}
