//! Plan files of the HTTP lab: reading arbitrary bytes ends, and a plan that is accepted is read
//! back unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_http::plan::cells::{Phases, runs};
use linerate_http::plan::estimate::estimate;
use linerate_http::plan::{Plan, RUNS_MAX};

fuzz_target!(|text: &str| {
    let Ok(plan) = Plan::parse(text) else {
        return;
    };
    for plan in [plan.clone(), plan.quick()] {
        let again = Plan::parse(&plan.to_toml());
        assert_eq!(
            again.as_ref(),
            Ok(&plan),
            "a plan is read back as it was written"
        );
        assert_eq!(
            again.map(|again| again.hash()),
            Ok(plan.hash()),
            "equal plans have equal hashes"
        );
        let planned = runs(&plan, Phases::ALL).len();
        assert!(planned as u64 <= RUNS_MAX + 200, "{planned} runs");
        let _ = estimate(&plan, Phases::ALL);
    }
});
