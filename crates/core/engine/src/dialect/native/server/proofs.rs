//! Proofs of a client: its token, or user and password.

use std::time::{Duration, Instant};

use linerate_iperf3::wire::auth::Refusal;
use linerate_native::wire::server::Input;
use linerate_trust::{Role, Token, Tokens, proof};

use super::context::{Context, Shared};
use super::session::Session;
use crate::server::limits::login_guard::refusal_delay;
use crate::server::{ServerContext, Verdict};

impl Session {
    /// Compares the client's proof of a token. Only a client that has the token gets the server's
    /// proof, by which others could guess it offline.
    pub(super) fn check_proof(
        &mut self,
        token_name: &str,
        client_proof: &[u8; 32],
        shared: &mut Shared<'_>,
        server: &mut ServerContext<'_>,
    ) {
        let now = Instant::now();
        let address = self.peer.ip();
        let known = shared.context.tokens.as_ref();
        let proved = known.zip(self.exporter()).and_then(|(known, exporter)| {
            let token = known.proved(token_name, &exporter, client_proof)?;
            Some((
                token.name().to_owned(),
                proof(token, &exporter, Role::Server),
            ))
        });

        let is_locked_out = shared.logins.guard.is_locked_out(address, now);
        if let Some((name, own_proof)) = proved.filter(|_| !is_locked_out) {
            self.user = Some(name);
            return self.input(Input::ProofChecked(Some(own_proof)));
        }

        let (cause, explanation) = if is_locked_out {
            (Refusal::LockedOut.label(), Refusal::LockedOut.to_string())
        } else {
            shared.logins.guard.note_failure(address, now);
            (WRONG_TOKEN, wrong_token(known, token_name))
        };
        self.refusal = Some((
            now + refusal_delay(Duration::ZERO),
            Input::ProofChecked(None),
        ));
        self.log_failed_login(cause, explanation, server);
    }

    /// Has a password compared with the file of users, where the server has one: by another thread,
    /// because reading a file may take long.
    pub(super) fn check_login(&mut self, user: String, password: String, shared: &mut Shared<'_>) {
        if shared.context.spec.auth.is_none() {
            return self.input(Input::LoginChecked(true));
        }

        let address = self.peer.ip();
        shared.logins.begin(self.id, address, user, password);
    }

    /// The password is compared.
    pub(super) fn on_login_checked(&mut self, verdict: Verdict, server: &mut ServerContext<'_>) {
        match verdict {
            Verdict::Accepted(user) => {
                self.user.get_or_insert(user);
                self.input(Input::LoginChecked(true));
            }
            Verdict::Refused(refusal, at) => {
                self.refusal = Some((at, Input::LoginChecked(false)));
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
        server.log_failed_login(self.peer, cause, explanation);
    }

    /// Demand of the server that this client has not met: clause and text.
    pub(super) fn missing_proof(&self, context: &Context) -> Option<(&'static str, &'static str)> {
        match (context.tokens.is_some(), context.spec.auth.is_some()) {
            _ if self.user.is_some() => None,
            (false, false) => None,
            (true, false) => Some(("token", "this server demands a token; give --token-file")),
            (false, true) => Some((
                "login",
                "this server demands a user and a password; give --username",
            )),
            (true, true) => Some((
                "login",
                "this server demands a token or a user; give --token-file or --username",
            )),
        }
    }
}

/// Cause of a refusal in the log.
const WRONG_TOKEN: &str = "wrong_token";

/// Explanation for the operator; the client does not get it. A name that the server has is
/// printable, one of a client may be not.
fn wrong_token(known: Option<&Tokens>, token_name: &str) -> String {
    match known
        .and_then(|known| known.get(token_name))
        .map(Token::name)
    {
        Some(name) => format!("wrong proof of the token {name}"),
        None => "a token that the server does not have".to_owned(),
    }
}
