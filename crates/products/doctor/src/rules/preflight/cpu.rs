//! CPUs that are slow, throttled or busy with something else.

use linerate_model::finding::Severity;
use linerate_model::http::units::{percent, shown};
use linerate_model::http::{Check, Environment, Side};

use super::requirement::Requirement;
use crate::rules::cpu::governed;
use crate::rules::remedies::advise;

const STEAL_MAX: f64 = 0.02;
const OTHER_LOAD_MAX: f64 = 0.1;

pub(super) fn checks(side: Side, host: &Environment) -> Vec<Check> {
    let mut checks = Vec::new();
    // Without a governor the frequency is constant.
    if let Some(name) = &host.governor {
        let governor = Requirement::new("governor", side, "performance");
        let is_fast = name == "performance";
        checks.push(governor.check(|it| {
            let change = governed("performance").zip(governed(name));
            it.ruling(is_fast, Severity::Medium, shown(name), |found| {
                found.fix_of_tokens(change)
            })
        }));
    }

    if let Some(is_throttled) = host.is_throttled {
        let have = if is_throttled {
            "the control group was held back"
        } else {
            "none"
        };
        let remedy = advise("lift the CPU quota of the service or container");
        let throttling = Requirement::new("throttling", side, "none");
        checks
            .push(throttling.check(|it| it.ruling(!is_throttled, Severity::Medium, have, remedy)));
    }

    let quiet = "run it when the hypervisor is quiet, or on a host of its own".to_owned();
    let quit = match &host.busiest_other {
        Some(name) => format!("quit {}", shown(name)),
        None => "quit what keeps the CPUs busy".to_owned(),
    };

    for (id, used, most, remedy) in [
        ("steal", host.steal, STEAL_MAX, quiet),
        ("other_load", host.other_load, OTHER_LOAD_MAX, quit),
    ] {
        checks.push(
            Requirement::new(id, side, format!("at most {}", percent(most))).check(|share| {
                let used = share.read(used)?;
                share.ruling(
                    used <= most,
                    Severity::Medium,
                    percent(used),
                    advise(remedy),
                )
            }),
        );
    }

    checks
}
