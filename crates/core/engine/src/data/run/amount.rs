//! The amount that ends a `-n` or `-k` test.

use std::sync::Arc;

use linerate_model::{EndCondition, Transport};

use super::settings::RunSettings;
use crate::data::budget::{Budget, Unit};
use crate::data::worker::{RunControl, Target};

/// The amount of a `-n` or `-k` test, for the directions this end sends and receives.
pub(super) struct Amount {
    pub budget: Option<Arc<Budget>>,
    pub target: Option<Arc<Target>>,
}

impl Amount {
    pub(super) fn new(settings: &RunSettings, control: &Arc<RunControl>) -> Self {
        let spec = &settings.spec;
        let (unit, amount, bytes) = match spec.end {
            EndCondition::Bytes(n) => (Unit::Bytes, n, n),
            EndCondition::Blocks(n) => (
                Unit::Blocks,
                n,
                n.saturating_mul(u64::from(spec.block_len_bytes)),
            ),
            EndCondition::Duration(_) | EndCondition::Unlimited => {
                return Self {
                    budget: None,
                    target: None,
                };
            }
        };

        // A sender that does not decide the end may only stop by itself when both ends count the
        // same bytes: nothing is lost on the way, and no warm-up ends at two different moments.
        let counts_alike = spec.transport != Transport::Udp && spec.omit.is_zero();
        let limited = settings.decides_end || counts_alike;
        Self {
            budget: limited.then(|| Arc::new(Budget::new(unit, amount))),
            target: settings
                .decides_end
                .then(|| Arc::new(Target::new(Arc::clone(control), bytes))),
        }
    }

    pub(super) fn arm(&self) {
        if let Some(budget) = &self.budget {
            budget.arm();
        }

        if let Some(target) = &self.target {
            target.arm();
        }
    }
}
