//! Settings that change while a server runs.

use linerate_model::ServerEvent;
use linerate_model::policy::ServerPolicy;

use super::Server;
use crate::server::access::{AccessError, AccessList, read_text};

impl Server<'_> {
    /// Takes over the settings as they are now, or the files of those there are.
    pub(super) fn on_reload(&mut self) {
        let (policy, mut warnings) = match self.interrupts.settings() {
            None => (self.spec.policy.clone(), Vec::new()),
            Some(Ok(settings)) => settings,
            Some(Err(error)) => {
                let text = format!("the settings stay as they were: {error}");
                return self.context.out.warning(&text);
            }
        };
        match self.reload(policy) {
            Ok(failed) => {
                warnings.extend(failed);
                self.context.out.server_event(&ServerEvent::Reloaded);
            }
            Err(error) => {
                warnings.push(format!("the lists of addresses stay as they were: {error}"));
            }
        }
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
