//! Work of clients that would block the control thread.

use std::path::PathBuf;

use linerate_iperf3::wire::Results;
use linerate_iperf3::wire::auth::Authenticator;
use linerate_iperf3::wire::server::{LoginAttempt, ServerInput};

use crate::server::access::read_text;

/// A piece of work.
pub(crate) enum Work {
    /// A login to be checked.
    Login(LoginAttempt),
    /// Results to be parsed.
    Results(Vec<u8>),
}

/// Key and users that logins are checked with.
pub(super) struct LoginChecker {
    pub authenticator: Authenticator,
    pub users_file: PathBuf,
}

impl LoginChecker {
    /// The users' file is read for every login, so that a change needs no restart.
    fn check(&self, login: &LoginAttempt) -> ServerInput {
        let users = read_text(&self.users_file).unwrap_or_default();
        ServerInput::LoginChecked(self.authenticator.check(
            Some(&login.token),
            &users,
            login.unix_s,
        ))
    }
}

/// Does a piece of work.
pub(super) fn run(work: Work, checker: Option<&LoginChecker>) -> ServerInput {
    match (work, checker) {
        (Work::Login(login), Some(checker)) => checker.check(&login),
        // A policy requires logins only where there is a key.
        (Work::Login(_), None) => ServerInput::Busy,
        (Work::Results(text), _) => ServerInput::ResultsParsed(Results::parse(&text).map(Box::new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_parsed() {
        let outcome = run(Work::Results(vec![b'x']), None);
        assert!(matches!(outcome, ServerInput::ResultsParsed(Err(_))));
    }
}
