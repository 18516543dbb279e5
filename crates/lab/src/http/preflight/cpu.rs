//! Processors that are slow, held back or busy with something else.

use linerate_model::http::{Check, CheckStatus, Environment, Side};

use super::{not_passed, passed, unknown};
use crate::http::fixes;
use crate::http::units::{percent, shown};

const STEAL_MAX: f64 = 0.02;
const OTHER_LOAD_MAX: f64 = 0.1;

pub(super) fn checks(side: Side, host: &Environment) -> Vec<Check> {
    let mut checks = Vec::new();
    // Without a governor the frequency is constant.
    checks.extend(host.governor.as_deref().map(|governor| self::governor(side, governor)));
    checks.extend(host.is_throttled.map(|is_throttled| throttled(side, is_throttled)));
    checks.push(share(
        "steal",
        side,
        host.steal,
        STEAL_MAX,
        vec!["run it when the hypervisor is quiet, or on a host of its own".to_owned()],
    ));
    let quit = match &host.busiest_other {
        Some(name) => format!("quit {}", shown(name)),
        None => "quit what keeps the processors busy".to_owned(),
    };
    checks.push(share("other_load", side, host.other_load, OTHER_LOAD_MAX, vec![quit]));
    checks
}

fn governor(side: Side, governor: &str) -> Check {
    let check = passed("governor", side, shown(governor), "performance");
    if governor == "performance" {
        return check;
    }
    not_passed(check, CheckStatus::Warn, fixes::governor())
}

fn throttled(side: Side, is_throttled: bool) -> Check {
    let check = passed("throttling", side, "none", "none");
    if !is_throttled {
        return check;
    }
    Check {
        have: "the control group was held back".to_owned(),
        ..not_passed(
            check,
            CheckStatus::Warn,
            vec!["lift the processor quota of the service or container".to_owned()],
        )
    }
}

fn share(id: &str, side: Side, share: Option<f64>, most: f64, fix: Vec<String>) -> Check {
    let need = format!("at most {}", percent(most));
    let Some(share) = share else {
        return unknown(id, side, need);
    };
    let check = passed(id, side, percent(share), need);
    if share <= most {
        return check;
    }
    not_passed(check, CheckStatus::Warn, fix)
}
