//! Admission of clients: at once, after a wait, or not at all.

use std::net::IpAddr;
use std::time::Instant;

use linerate_model::network::Network;
use linerate_model::policy::Admission;
use linerate_model::service::RefusalReason;

use super::{AdmissionDecision, SessionRegistry, Stage};

impl SessionRegistry {
    pub(super) fn admit(&mut self, now: Instant, id: u64, address: IpAddr) -> AdmissionDecision {
        if let Err(reason) = self.quotas.has_room(Network::of_client(address))
            && (reason != RefusalReason::Busy || !matches!(self.admission, Admission::Queue { .. }))
        {
            return AdmissionDecision::Refused(reason);
        }
        match self.admission {
            Admission::Parallel { .. } => AdmissionDecision::Admitted,
            Admission::Exclusive if self.clients.is_empty() => AdmissionDecision::Admitted,
            Admission::Exclusive => AdmissionDecision::Refused(RefusalReason::Busy),
            Admission::Queue { tests_max, .. } if self.queue.len() == 0 && self.active() < tests_max as usize => {
                AdmissionDecision::Admitted
            }
            Admission::Queue { tests_max, wait_max } => {
                let active = self.clients.values().filter(|g| g.stage != Stage::Queued);
                let remaining = active.map(|g| g.remaining(now));
                if self
                    .queue
                    .enter(id, Network::of_client(address), remaining, tests_max as usize, wait_max)
                {
                    AdmissionDecision::Queued
                } else {
                    AdmissionDecision::Refused(RefusalReason::QueueTooLong)
                }
            }
        }
    }

    /// The next waiting client whose turn has come; the caller gives it a session with [`SessionRegistry::begin`].
    pub(crate) fn next_turn(&mut self) -> Option<u64> {
        let Admission::Queue { tests_max, .. } = self.admission else {
            return None;
        };
        if self.active() >= tests_max as usize {
            return None;
        }
        let id = self.queue.next()?;
        let client = self.clients.get_mut(&id)?;
        (client.stage, client.ends) = (Stage::Negotiating, None);
        Some(id)
    }
}
