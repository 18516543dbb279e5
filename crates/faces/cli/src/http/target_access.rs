//! Options of all commands that load a server: its control channel, and safety limits.

use std::path::PathBuf;

use clap::Args;
use linerate_http::safety_limits::TargetOwnership;
use linerate_http::target::Target;

use linerate::http::ControlPath;

/// Access to the control channel of the server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measurements of the server")]
pub(crate) struct ControlAccess {
    /// The server's control channel [default: the server's host, the port after its first]
    #[arg(long, value_name = "HOST[:PORT]")]
    control: Option<String>,
    /// Both ends prove that they have the token of this file, which the server created
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl ControlAccess {
    /// # Errors
    /// A token file that does not exist.
    pub(crate) fn resolve(&self) -> Result<ControlPath, String> {
        // A client that created the file would prove a token that the server does not know.
        if let Some(path) = self.token_file.as_deref().filter(|path| !path.exists()) {
            let path = path.display();
            return Err(format!(
                "--token-file {path}: no such file; the server creates it: copy it from there"
            ));
        }

        let path = ControlPath {
            server: self.control.clone(),
            token_file: self.token_file.clone(),
        };
        Ok(path)
    }
}

/// The user's statements about a foreign server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Servers that are not linerate")]
pub(crate) struct SafetyArgs {
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Lift the limits of public addresses; must be the host of the URL
    #[arg(long, value_name = "HOST")]
    i_own_this_target: Option<String>,
    /// Lift the limits of private addresses
    #[arg(long)]
    allow_large: bool,
    /// Continue although the server fails or sends Retry-After
    #[arg(long)]
    pub(super) no_breaker: bool,
}

impl SafetyArgs {
    /// The user's statements about `target`.
    ///
    /// # Errors
    /// A host other than the URL's.
    pub(super) fn claims(&self, target: &Target) -> Result<TargetOwnership, String> {
        let is_owned = match self.i_own_this_target.as_deref() {
            None => false,
            // Host names are not case-sensitive (RFC 4343).
            Some(host) if host.eq_ignore_ascii_case(&target.host) => true,
            Some(host) => {
                return Err(format!(
                    "--i-own-this-target names {host:?}, but the URL's host is {:?}",
                    target.host
                ));
            }
        };
        Ok(TargetOwnership {
            is_ours: false,
            is_owned,
            allows_large: self.allow_large,
        })
    }
}
