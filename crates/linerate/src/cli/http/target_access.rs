//! Which server an experiment is about, and how far it may go with it. Shared by all commands that load one.

use std::path::PathBuf;

use clap::Args;
use linerate_http::safety_limits::TargetOwnership;
use linerate_http::target::Target;

use super::control::read_token;
use crate::run::http::server_side::ControlPath;

/// How the figures of the server's host are got.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The server's own figures")]
pub(crate) struct ControlAccess {
    /// Where the server's control channel is [default: the server's host, the port after its first]
    #[arg(long, value_name = "URL")]
    control_url: Option<String>,
    /// What it asks for; other users of this host see it among the processes, so prefer --token-file
    #[arg(long, value_name = "WORDS", conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with what it asks for
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl ControlAccess {
    /// # Errors
    /// A token that is none.
    pub(crate) fn resolve(&self) -> Result<ControlPath, String> {
        Ok(ControlPath {
            url: self.control_url.clone(),
            token: read_token(self.token.as_deref(), self.token_file.as_deref())?,
        })
    }
}

/// What the user says about a server that is not known to be linerate's.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Servers that are not linerate")]
pub(crate) struct SafetyArgs {
    /// Do not ask before the load begins
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Lift the limits of public addresses; must be the host of the URL
    #[arg(long, value_name = "HOST")]
    i_own_this_target: Option<String>,
    /// Lift the limits of private addresses
    #[arg(long)]
    allow_large: bool,
    /// Go on although the server fails or asks for a pause
    #[arg(long)]
    pub(super) no_breaker: bool,
}

impl SafetyArgs {
    /// What the user claims about `target`.
    ///
    /// # Errors
    /// A host that is not the URL's.
    pub(super) fn claims(&self, target: &Target) -> Result<TargetOwnership, String> {
        let is_owned = match self.i_own_this_target.as_deref() {
            None => false,
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
