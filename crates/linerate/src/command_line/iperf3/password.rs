//! The password of a client that logs in: from the environment, or typed by the user.

use std::io;

use linerate_sys::process;

/// Variable that holds the password.
const VARIABLE: &str = "IPERF3_PASSWORD";

/// The password, `None` if it is neither in the environment nor can be asked for.
pub fn password() -> Option<String> {
    match std::env::var(VARIABLE) {
        Ok(password) => Some(password),
        Err(_) if process::isatty(io::stdin()) => process::read_password("Password: ").ok(),
        Err(_) => None,
    }
}
