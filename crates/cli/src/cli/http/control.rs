//! Options of the control channel.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use linerate_http::control::{ControlSpec, Token};
use linerate_model::network::Network;

use crate::cli::file_modes;
use linerate::http::agent::ControlChannel;

/// Largest token file.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// Address and access of the control channel.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Control channel")]
pub(crate) struct ControlArgs {
    /// Listen here for clients of the control channel [default: the port after the one under test, on all addresses]
    #[arg(long, value_name = "ADDRESS:PORT")]
    control: Option<SocketAddr>,
    /// Give access to this host and these networks only; may be repeated
    #[arg(long, value_name = "CIDR")]
    control_allow: Vec<Network>,
    /// Token that clients must prove, 16 characters or more [default: generated and printed]
    ///
    /// Visible to other users in the process list; prefer --token-file.
    #[arg(long, value_name = "WORDS", conflicts_with = "token_file")]
    token: Option<String>,
    /// File with the token; created, readable for its owner only, if it does not exist
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Require no token: only this host and --control-allow have access
    #[arg(long, conflicts_with_all = ["token", "token_file"])]
    no_token: bool,
}

impl ControlArgs {
    /// Resolves the address beside a port under test.
    ///
    /// # Errors
    /// Invalid options.
    pub(crate) fn resolve(&self, port: u16) -> Result<ControlChannel, String> {
        let token = self.token()?;
        let is_for_this_host = token.is_none() && self.control_allow.is_empty();
        let spec = ControlSpec {
            address: self.control.unwrap_or_else(|| default_address(port, is_for_this_host)),
            token,
            allow: self.control_allow.clone(),
        };
        if is_for_this_host && !spec.address.ip().is_loopback() {
            return Err(format!(
                "--no-token lets in this host alone, so listening on {} needs --control-allow",
                spec.address
            ));
        }
        let is_token_new = self.token.is_none() && self.token_file.is_none() && spec.token.is_some();
        let file = self.token_file.as_deref();
        let warning =
            file.and_then(|path| file_modes::secret("token file", path)).map(|text| format!("warning - {text}"));
        let is_address_chosen = self.control.is_some();
        let token_file = self.token_file.clone();
        Ok(ControlChannel { spec, is_token_new, token_file, is_address_chosen, warning })
    }

    fn token(&self) -> Result<Option<Token>, String> {
        if self.no_token {
            return Ok(None);
        }
        let file = self.token_file.as_deref();
        match read_token(self.token.as_deref(), file.map(|file| (file, created_token as ReadFile)))? {
            Some(token) => Ok(Some(token)),
            None => Token::fresh().map(Some).map_err(|error| format!("no random numbers for a token: {error}")),
        }
    }
}

/// Reads the token in a file.
pub(super) type ReadFile = fn(&Path) -> Result<Token, String>;

/// The token given as text or in a file; `None` when none was given.
///
/// # Errors
/// An invalid token.
pub(super) fn read_token(words: Option<&str>, file: Option<(&Path, ReadFile)>) -> Result<Option<Token>, String> {
    match (words, file) {
        (Some(words), _) => Token::new(words).map(Some).map_err(|error| format!("--token: {error}")),
        (None, Some((path, read))) => {
            read(path).map(Some).map_err(|why| format!("--token-file {}: {why}", path.display()))
        }
        (None, None) => Ok(None),
    }
}

fn default_address(port: u16, is_for_this_host: bool) -> SocketAddr {
    let port = match port {
        // Both ports are chosen by the kernel.
        0 => 0,
        // The highest port has no successor.
        port => port.checked_add(1).unwrap_or(port - 1),
    };
    if is_for_this_host {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    } else {
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
    }
}

/// The token in a file, which is created if it does not exist.
fn created_token(path: &Path) -> Result<Token, String> {
    let text = |error: io::Error| error.to_string();
    let mut options = fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let token = Token::fresh().map_err(text)?;
            file.write_all(format!("{}\n", token.reveal()).as_bytes()).map_err(text)?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => stored_token(path),
        Err(error) => Err(text(error)),
    }
}

/// The token in a file.
pub(super) fn stored_token(path: &Path) -> Result<Token, String> {
    let text = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("{error}; the server creates it: copy it from there"),
        _ => error.to_string(),
    };
    if fs::metadata(path).map_err(text)?.len() > TOKEN_FILE_BYTES_MAX {
        return Err("this file is too long for a token".to_owned());
    }
    Token::new(&fs::read_to_string(path).map_err(text)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ControlArgs,
    }

    fn resolve(line: &str) -> Result<ControlChannel, String> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        Line::try_parse_from(words).map_err(|error| error.to_string())?.args.resolve(8080)
    }

    #[test]
    fn without_options_a_new_token_opens_the_next_port() {
        let channel = resolve("").expect("defaults");
        assert!(channel.is_token_new && channel.spec.token.is_some());
        assert_eq!(channel.spec.address.to_string(), "[::]:8081");
        let channel = resolve("--no-token").expect("this host");
        assert!(!channel.is_token_new && channel.spec.token.is_none());
        assert_eq!(channel.spec.address.to_string(), "127.0.0.1:8081");
        let channel = resolve("--no-token --control-allow 10.0.0.0/8").expect("a network");
        assert_eq!(channel.spec.address.to_string(), "[::]:8081");
        assert_eq!(default_address(u16::MAX, true).port(), u16::MAX - 1);
        assert_eq!(default_address(0, true).port(), 0);
    }

    #[test]
    fn a_file_keeps_the_token_from_one_start_to_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t");
        let refused = stored_token(&path).expect_err("a client creates none");
        assert!(refused.contains("the server creates it") && !path.exists(), "{refused}");
        let line = format!("--token-file {}", path.display());
        let first = resolve(&line).expect("made");
        let second = resolve(&line).expect("read");
        assert!(!first.is_token_new, "it stands in the file");
        assert_eq!(first.spec.token, second.spec.token);
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).expect("a file"));
        assert_eq!(mode & 0o077, 0, "nobody else reads it");
    }

    #[test]
    fn what_would_be_open_to_all_or_guessed_is_refused() {
        let rows = [
            ("--no-token --control 0.0.0.0:9", "--control-allow"),
            ("--token short", "16"),
            ("--token 0123456789abcdef --no-token", "cannot be used"),
            ("--token-file /nowhere/at/all", "/nowhere/at/all"),
            ("--token-file /dev/null", "16"),
            ("--control-allow 10.0.0.0/99", "10.0.0.0/99"),
            ("--control 8081", "8081"),
        ];
        for (line, part) in rows {
            let error = resolve(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
