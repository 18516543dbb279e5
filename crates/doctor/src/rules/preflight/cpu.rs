//! CPUs that are slow, throttled or busy with something else.

use linerate_model::finding::Severity;
use linerate_model::http::units::{percent, shown};
use linerate_model::http::{Check, Environment, Side};

use super::Requirement;
use crate::rule::Ruling;
use crate::rules::remedies;

const STEAL_MAX: f64 = 0.02;
const OTHER_LOAD_MAX: f64 = 0.1;

pub(super) fn checks(side: Side, host: &Environment) -> Vec<Check> {
    let mut checks = Vec::new();
    // Without a governor the frequency is constant.
    if let Some(name) = &host.governor {
        let governor = Requirement::new("governor", side, "performance");
        checks.push(governor.check(self::governor(&governor, name)));
    }
    if let Some(is_throttled) = host.is_throttled {
        let throttling = Requirement::new("throttling", side, "none");
        checks.push(throttling.check(self::throttling(&throttling, is_throttled)));
    }
    let quiet = "run it when the hypervisor is quiet, or on a host of its own".to_owned();
    let quit = match &host.busiest_other {
        Some(name) => format!("quit {}", shown(name)),
        None => "quit what keeps the processors busy".to_owned(),
    };
    for (id, used, most, remedy) in
        [("steal", host.steal, STEAL_MAX, quiet), ("other_load", host.other_load, OTHER_LOAD_MAX, quit)]
    {
        let share = Requirement::new(id, side, format!("at most {}", percent(most)));
        checks.push(share.check(self::share(&share, used, most, remedy)));
    }
    checks
}

fn governor(requirement: &Requirement<'_>, name: &str) -> Ruling {
    requirement.unless(name == "performance", &shown(name))?;
    Ok(requirement.not_met(Severity::Medium, shown(name), remedies::governor()))
}

fn throttling(requirement: &Requirement<'_>, is_throttled: bool) -> Ruling {
    requirement.unless(!is_throttled, "none")?;
    let remedy = vec!["lift the processor quota of the service or container".to_owned()];
    Ok(requirement.not_met(Severity::Medium, "the control group was held back", remedy))
}

fn share(requirement: &Requirement<'_>, used: Option<f64>, most: f64, remedy: String) -> Ruling {
    let used = requirement.read(used)?;
    requirement.unless(used <= most, &percent(used))?;
    Ok(requirement.not_met(Severity::Medium, percent(used), vec![remedy]))
}
