//! What a client proves: its token, or user and password.

use std::path::Path;
use std::time::Instant;

use linerate_iperf3::auth::{Refusal, check_password};
use linerate_model::ServerEvent;
use linerate_model::network::Network;
use linerate_native::server::Input;
use linerate_trust::{Role, proof, verify};

use super::Context;
use super::opening::refused;
use super::phases::Shared;
use super::session::Session;
use crate::server::access::read_text;
use crate::server::context::ServerContext;
use crate::server::limits::login_guard::{LoginGuard, refusal_delay};

/// A password to be compared.
pub(super) struct LoginCheck {
    user: String,
    password: String,
}

impl LoginCheck {
    /// The file is read for every login, so that a change needs no restart.
    pub(super) fn run(&self, users_file: &Path) -> Result<(), Refusal> {
        // A file that cannot be read has no users.
        check_password(&self.user, &self.password, &read_text(users_file).unwrap_or_default())
    }
}

impl Session {
    pub(super) fn challenge(&mut self, token_name: &str, context: &Context) {
        let token = context.tokens.as_ref().and_then(|tokens| tokens.get(token_name));
        let input = match (token, self.exporter()) {
            (Some(token), Some(exporter)) => {
                self.token = Some(token.clone());
                Input::Challenge { proof: proof(token, &exporter, Role::Server) }
            }
            _ => refused("token", "the server has no token of this name"),
        };
        self.machine.handle_local(Instant::now(), input);
    }

    pub(super) fn check_proof(&mut self, client_proof: &[u8; 32]) {
        self.is_proven = match (&self.token, self.exporter()) {
            (Some(token), Some(exporter)) => verify(token, &exporter, Role::Client, client_proof),
            _ => false,
        };
        self.machine.handle_local(Instant::now(), Input::ProofChecked(self.is_proven));
    }

    /// Has a password compared with the file of users, where the server has one: by another thread, because reading a file may take
    /// long.
    pub(super) fn check_login(&mut self, user: String, password: String, shared: &mut Shared<'_>) {
        let now = Instant::now();
        if shared.context.spec.auth.is_none() {
            return self.machine.handle_local(now, Input::LoginChecked(true));
        }
        self.login = Some((user.clone(), now));
        shared.login_queue.enter(self.id(), Network::of_client(self.peer.ip()), LoginCheck { user, password });
    }

    /// The password is compared.
    pub(super) fn on_login_checked(
        &mut self,
        checked: Result<(), Refusal>,
        logins: &mut LoginGuard,
        server: &mut ServerContext<'_>,
    ) {
        let Some((user, since)) = self.login.take() else { return };
        let now = Instant::now();
        match checked {
            Ok(()) => {
                self.user = Some(user);
                self.machine.handle_local(now, Input::LoginChecked(true));
            }
            Err(refusal) => {
                if refusal != Refusal::LockedOut {
                    logins.note_failure(self.peer.ip(), now);
                }
                self.login_refused_at = Some(since + refusal_delay(now.saturating_duration_since(since)));
                self.log_failed_login(refusal.label(), refusal.to_string(), server);
            }
        }
    }

    pub(super) fn log_failed_login(
        &mut self,
        cause: &'static str,
        explanation: String,
        server: &mut ServerContext<'_>,
    ) {
        self.is_logged = true;
        server.out.server_event(&ServerEvent::LoginFailed { peer: self.peer, cause, explanation });
    }

    /// What the server demands of its clients and this one has not given: clause and text.
    pub(super) fn missing_proof(&self, context: &Context) -> Option<(&'static str, &'static str)> {
        match (context.tokens.is_some(), context.spec.auth.is_some()) {
            _ if self.is_proven || self.user.is_some() => None,
            (false, false) => None,
            (true, false) => Some(("token", "this server demands a token; give --token-file")),
            (false, true) => Some(("login", "this server demands a user and a password; give --username")),
            (true, true) => Some(("login", "this server demands a token or a user; give --token-file or --username")),
        }
    }
}
