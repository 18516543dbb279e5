//! Options of all commands that load a server: its control channel, and safety limits.

use std::path::PathBuf;

use clap::Args;
use linerate_http::safety_limits::TargetOwnership;
use linerate_http::target::Target;

use super::control::{ReadFile, read_token, stored_token};
use linerate::http::ControlPath;

/// Access to the control channel of the server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The server's own figures")]
pub(crate) struct ControlAccess {
    /// URL of the server's control channel [default: the server's host, the port after its first]
    #[arg(long, value_name = "URL")]
    control_url: Option<String>,
    /// Token of the channel; visible to other users in the process list, so prefer --token-file
    #[arg(long, value_name = "WORDS", conflicts_with = "token_file")]
    token: Option<String>,
    /// File with the token, as the server created it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl ControlAccess {
    /// # Errors
    /// An invalid token.
    pub(crate) fn resolve(&self) -> Result<ControlPath, String> {
        Ok(ControlPath {
            url: self.control_url.clone(),
            token: read_token(
                self.token.as_deref(),
                self.token_file.as_deref().map(|file| (file, stored_token as ReadFile)),
            )?,
        })
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
            Some(host) if host.eq_ignore_ascii_case(&target.host) => true,
            Some(host) => {
                return Err(format!("--i-own-this-target names {host:?}, but the URL's host is {:?}", target.host));
            }
        };
        Ok(TargetOwnership { is_ours: false, is_owned, allows_large: self.allow_large })
    }
}
