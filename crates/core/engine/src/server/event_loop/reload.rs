//! Settings that change while a server runs.

use linerate_model::ServerEvent;
use linerate_model::policy::ServerPolicy;

use super::Server;
use crate::server::access::{AccessError, AccessList, read_text};

/// What a reload replaces as a whole or not at all.
const ALL_RELOADED: &str = "access lists, limits, tokens and certificates";

impl Server<'_> {
    /// Takes over the settings as they are now, or the files of those there are.
    pub(super) fn on_reload(&mut self) {
        let settings = self.interrupts.settings();
        let settings = settings.unwrap_or_else(|| Ok((self.spec.policy.clone(), Vec::new())));
        let reloaded = settings.and_then(|(policy, warnings)| {
            let failed = self.reload(policy).map_err(|error| error.to_string())?;
            Ok([warnings, failed].concat())
        });

        let warnings = match reloaded {
            Ok(warnings) => {
                self.context.out.server_event(&ServerEvent::Reloaded);
                warnings
            }
            Err(error) => vec![format!("{ALL_RELOADED} stay as they were: {error}")],
        };
        for warning in warnings {
            self.context.out.warning(&warning);
        }
    }

    /// Replaces what can change while the server runs, and returns what the dialects could not take
    /// over. Tests that run keep their limits.
    fn reload(&mut self, policy: ServerPolicy) -> Result<Vec<String>, AccessError> {
        self.context.access = AccessList::load(&policy.access, read_text)?;
        self.context.admission.replace_limits(&policy);
        let dialects = self.dialects.iter_mut();
        let failed = dialects
            .filter_map(|dialect| dialect.reload(&policy).err())
            .collect();
        self.spec.policy = policy;
        Ok(failed)
    }
}
