//! Comparison of a password, for a thread of the pool.

use std::path::Path;

use linerate_iperf3::wire::auth::{Refusal, check_password};

use super::access::read_text;

/// A password to be compared.
pub(crate) struct LoginCheck {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl LoginCheck {
    /// The file is read for every login, so that a change needs no restart.
    pub(crate) fn run(&self, users_file: &Path) -> Result<(), Refusal> {
        // A file that cannot be read has no users.
        check_password(
            &self.user,
            &self.password,
            &read_text(users_file).unwrap_or_default(),
        )
    }
}
