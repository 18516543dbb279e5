//! Work of clients on other threads: logins and results.

use std::time::Instant;

use linerate_iperf3::wire::auth::Refusal;
use linerate_iperf3::wire::server::ServerInput;

use super::SessionRegistry;
use crate::dialect::iperf3::server::work::Work;
use crate::server::limits::login_guard::refusal_delay;

impl SessionRegistry {
    /// The next work of a client, to be done on another thread and answered with
    /// [`SessionRegistry::handle_outcome`]. Whether an address may log in is decided now, so that
    /// many logins at once are no more guesses than many in succession.
    pub(crate) fn next_work(&mut self, now: Instant) -> Option<(u64, Work)> {
        loop {
            let (id, work) = self.work.next()?;
            let peer = self.clients.get(&id)?.peer;
            if !matches!(work, Work::Login(_)) || !self.logins.is_locked_out(peer.ip(), now) {
                return Some((id, work));
            }

            self.handle_outcome(now, id, ServerInput::LoginChecked(Err(Refusal::LockedOut)));
        }
    }

    /// The work of a client is done.
    pub(crate) fn handle_outcome(&mut self, now: Instant, id: u64, outcome: ServerInput) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let since = client.works_since.take().unwrap_or(now);
        client.input(now, outcome);
        self.note_refused_login(now, id, since);
        self.take_actions(now, id);
    }

    /// True if work of this client waits or is under way; its control connection is not read until
    /// then.
    pub(crate) fn has_work(&self, id: u64) -> bool {
        self.clients
            .get(&id)
            .is_some_and(|g| g.works_since.is_some())
    }

    /// Holds the answer to a login that was refused and counts it; `since` its parameters are here.
    pub(super) fn note_refused_login(&mut self, now: Instant, id: u64, since: Instant) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let refusal = client.machine.as_ref().and_then(|m| m.refusal());
        if let (None, Some(refusal)) = (&client.login, refusal) {
            client.login = Some(refusal.clone());
            client.held_until =
                since.checked_add(refusal_delay(now.saturating_duration_since(since)));

            if !matches!(refusal, Refusal::LockedOut | Refusal::NoToken) {
                self.logins.note_failure(client.peer.ip(), now);
            }
        }
    }
}
