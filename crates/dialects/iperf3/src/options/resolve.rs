//! From what was typed to what is to be done. Decides everything that depends on more than one
//! option; the order of the checks is the original's, because only the first complaint is shown.

use std::io;
use std::path::Path;
use std::time::Duration;

use linerate_model::spec::{
    AcceptedPadding, ClientSpec, Credentials, Segmentation, ServerAuth, ServerSpec,
};
use linerate_model::{Direction, EndCondition, Transport};

use super::args::{Args, AuthArgs, ChosenRole, EndArgs, OutputOptions, ProcessOptions};
use super::error::ParameterError;
use crate::wire::ErrorCode;
use crate::wire::auth::{AuthError, is_encrypted};

/// Task of the program.
#[derive(Debug)]
pub enum Command {
    /// Run one test against a server.
    Client {
        /// The test.
        spec: Box<ClientSpec>,
        /// Files.
        process: ProcessOptions,
        /// Reports.
        output: OutputOptions,
    },
    /// Wait for clients.
    Server {
        /// The server.
        spec: Box<ServerSpec>,
        /// Files and background.
        process: ProcessOptions,
        /// Reports.
        output: OutputOptions,
    },
}

/// Inputs of the resolution from outside the command line.
pub(crate) struct Surroundings<'a> {
    /// Contents of a file.
    pub read_file: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Bytes of a file; `None` where they are not known before it is read.
    pub file_len: &'a dyn Fn(&Path) -> Option<u64>,
    /// The user's password, `None` without a terminal.
    pub password: &'a dyn Fn() -> Option<String>,
}

/// Largest block of a stream transport.
const BLOCK_LEN_MAX: f64 = 1_048_576.0;
/// Sizes of a UDP datagram: room for the header, and what IPv4 can carry.
const DATAGRAM_LEN: std::ops::RangeInclusive<f64> = 16.0..=65_507.0;
/// Default rate of a UDP stream.
const UDP_RATE_BPS: u64 = 1_048_576;

/// Decides what the program is to do.
///
/// # Errors
/// The first contradiction between options, or a key that cannot be read.
pub(crate) fn resolve(
    args: Args,
    surroundings: &Surroundings<'_>,
) -> Result<Command, ParameterError> {
    check_roles(&args)?;
    let auth = resolve_auth(&args, surroundings)?;
    let is_client = matches!(args.role, Some(ChosenRole::Client(_)));
    if is_client && args.rcv_timeout_given && args.test.direction == Direction::Forward {
        return Err(ErrorCode::RvrsOnlyRcvTimeout.into());
    }
    if args.local.file.is_some() && args.test.transport == Transport::Udp {
        return Err(ErrorCode::UdpFileTransfer.into());
    }

    let block_len_bytes = block_len(args.test.transport, args.block_len_bytes)?;
    // The end of a server's file does not end a test: its client decides.
    let file_len = args
        .local
        .file
        .as_deref()
        .filter(|_| is_client)
        .and_then(surroundings.file_len);
    let end = end_condition(&args.end, file_len)?;

    match (args.role.clone(), auth) {
        (None, _) => Err(ErrorCode::NoRole.into()),
        (Some(ChosenRole::Client(host)), auth) => {
            Ok(client(args, host, auth.client, block_len_bytes, end))
        }
        (Some(ChosenRole::Server), auth) => Ok(server(args, auth.server)),
    }
}

/// Remarks for the user on a test that will run, in the order of the original.
pub(crate) fn warnings(args: &Args) -> Vec<&'static str> {
    let mut warnings = args.warnings.clone();
    if args.output.json {
        let rows = [
            (
                args.format_given,
                "warning: Report format (-f) flag ignored with JSON output (-J)",
            ),
            (
                args.output.verbose,
                "warning: Verbose output (-v) may interfere with JSON output (-J)",
            ),
            (
                args.output.debug > 0,
                "warning: Debug output (-d) may interfere with JSON output (-J)",
            ),
        ];
        warnings.extend(
            rows.iter()
                .filter(|(applies, _)| *applies)
                .map(|(_, text)| *text),
        );
    }

    warnings
}

/// The padding of logins belongs to servers, and to clients that log in.
fn check_roles(args: &Args) -> Result<(), ErrorCode> {
    let stray_padding = args.auth.pkcs1_padding && args.auth.username.is_none();
    match args.role {
        Some(ChosenRole::Client(_)) if args.server_only_seen || stray_padding => {
            Err(ErrorCode::ServerOnly)
        }
        Some(ChosenRole::Server) if args.client_only_seen => Err(ErrorCode::ClientOnly),
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Auth {
    client: Option<Credentials>,
    server: Option<ServerAuth>,
}

fn resolve_auth(args: &Args, surroundings: &Surroundings<'_>) -> Result<Auth, ParameterError> {
    Ok(match args.role {
        Some(ChosenRole::Client(_)) => Auth {
            client: credentials(&args.auth, surroundings)?,
            ..Auth::default()
        },
        Some(ChosenRole::Server) => Auth {
            server: server_auth(&args.auth, surroundings)?,
            ..Auth::default()
        },
        None => Auth::default(),
    })
}

fn credentials(
    auth: &AuthArgs,
    surroundings: &Surroundings<'_>,
) -> Result<Option<Credentials>, ParameterError> {
    let (username, key_path) = match (&auth.username, &auth.public_key_path) {
        (None, None) => return Ok(None),
        (Some(username), Some(path)) => (username.clone(), path),
        _ => return Err(ErrorCode::SetClientAuth.into()),
    };
    let public_key_pem = read_pem(key_path, surroundings, ErrorCode::SetClientAuth)?;
    // Last: the prompt appears only if the rest of the login is usable.
    let password = (surroundings.password)().ok_or(ErrorCode::SetClientAuth)?;
    // The decrypted token is read with sscanf and %s (auth.c).
    if username.contains(char::is_whitespace) || password.contains(char::is_whitespace) {
        return Err(ParameterError::BlankInCredentials);
    }

    let mut credentials = Credentials::new(username, password, public_key_pem);
    credentials.pkcs1_padding = auth.pkcs1_padding;
    Ok(Some(credentials))
}

fn server_auth(
    auth: &AuthArgs,
    surroundings: &Surroundings<'_>,
) -> Result<Option<ServerAuth>, ParameterError> {
    let (key_path, users_file) = match (&auth.private_key_path, &auth.users_path) {
        (None, None) => return Ok(None),
        (Some(key), Some(users)) => (key, users.clone()),
        _ => return Err(ErrorCode::SetServerAuth.into()),
    };
    // Checked now, read again at each login so that users can be added.
    read_file(&users_file, surroundings, ErrorCode::ServerAuthUsers)?;

    let private_key_pem = read_pem(key_path, surroundings, ErrorCode::SetServerAuth)?;
    // A server has no terminal for the passphrase that OpenSSL would prompt for.
    if is_encrypted(&private_key_pem) {
        let file = format!("{}: {}", key_path.display(), AuthError::Encrypted);
        return Err(ParameterError::Unreadable {
            file,
            complaint: ErrorCode::SetServerAuth,
        });
    }

    let mut resolved = ServerAuth::new(private_key_pem, users_file);
    if let Some(max_skew_s) = auth.max_skew_s {
        resolved.max_skew = Duration::from_secs(max_skew_s.into());
    }

    resolved.padding = match (auth.both_paddings, auth.pkcs1_padding) {
        (true, _) => AcceptedPadding::Both,
        (false, true) => AcceptedPadding::Pkcs1,
        (false, false) => AcceptedPadding::Oaep,
    };
    Ok(Some(resolved))
}

/// A file that looks like PEM (RFC 7468).
fn read_pem(
    path: &Path,
    surroundings: &Surroundings<'_>,
    complaint: ErrorCode,
) -> Result<String, ParameterError> {
    let text = String::from_utf8(read_file(path, surroundings, complaint)?).unwrap_or_default();
    if text.contains("-----BEGIN ") {
        return Ok(text);
    }

    Err(ParameterError::Unreadable {
        file: format!("{}: no PEM file", path.display()),
        complaint,
    })
}

fn read_file(
    path: &Path,
    surroundings: &Surroundings<'_>,
    complaint: ErrorCode,
) -> Result<Vec<u8>, ParameterError> {
    (surroundings.read_file)(path).map_err(|error| ParameterError::Unreadable {
        file: format!(
            "{}: {}",
            path.display(),
            linerate_sys::error::io_text(&error)
        ),
        complaint,
    })
}

/// The block length in bytes, 0 for the transport's default.
fn block_len(transport: Transport, bytes: f64) -> Result<u32, ErrorCode> {
    let whole_bytes = bytes.trunc();
    let valid = match transport {
        // 0 is the default of the transport, as if the option were absent.
        _ if whole_bytes == 0.0 => true,
        Transport::Udp => DATAGRAM_LEN.contains(&whole_bytes),
        Transport::Tcp | Transport::Sctp => (1.0..=BLOCK_LEN_MAX).contains(&whole_bytes),
    };
    match (valid, transport) {
        (true, _) => Ok(whole_bytes as u32),
        (false, Transport::Udp) => Err(ErrorCode::UdpBlockSize),
        (false, _) => Err(ErrorCode::BlockSize),
    }
}

/// An amount of 0 was as good as not named, a duration of 0 was named and means no limit. Without
/// any, a test of a file ends with the file; the original takes its length in every direction.
fn end_condition(end: &EndArgs, file_len: Option<u64>) -> Result<EndCondition, ErrorCode> {
    match (end.duration_s, end.bytes, end.blocks) {
        (None, 0, 0) if file_len.is_some_and(|bytes| bytes > 0) => {
            Ok(EndCondition::Bytes(file_len.unwrap_or_default()))
        }
        (None, 0, 0) => Ok(EndCondition::Duration(Duration::from_secs(10))),
        (Some(0), 0, 0) => Ok(EndCondition::Unlimited),
        (Some(duration_s), 0, 0) => Ok(EndCondition::Duration(Duration::from_secs(u64::from(
            duration_s,
        )))),
        (None, bytes, 0) => Ok(EndCondition::Bytes(bytes)),
        (None, 0, blocks) => Ok(EndCondition::Blocks(blocks)),
        _ => Err(ErrorCode::EndConditions),
    }
}

fn client(
    args: Args,
    host: String,
    credentials: Option<Credentials>,
    block_len_bytes: u32,
    end: EndCondition,
) -> Command {
    let mut test = args.test;
    test.end = end;
    test.block_len_explicit = block_len_bytes > 0;
    test.block_len_bytes = match (block_len_bytes, test.transport) {
        // DEFAULT_TCP_BLKSIZE and DEFAULT_SCTP_BLKSIZE; that of UDP follows from the path.
        (0, Transport::Tcp) => 128 * 1024,
        (0, Transport::Sctp) => 64 * 1024,
        (named, _) => named,
    };

    // Only UDP has a rate by default: it would flood the path.
    let default_rate_bps = if test.transport == Transport::Udp {
        UDP_RATE_BPS
    } else {
        0
    };
    test.pacing.rate_bps = Some(args.rate_bps.unwrap_or(default_rate_bps)).filter(|rate| *rate > 0);

    if args.gsro && test.transport == Transport::Udp {
        let sizes = Segmentation::of_datagrams(test.block_len_bytes);
        test.udp.gso = Some(sizes);
        test.udp.gro = Some(sizes);
    }

    let mut spec = ClientSpec::new(host, args.local, test);
    spec.ports = args.ports;
    spec.connect_timeout = args.connect_timeout;
    spec.server_cpu = args.server_cpu;
    spec.credentials = credentials;

    Command::Client {
        spec: Box::new(spec),
        process: args.process,
        output: args.output,
    }
}

fn server(args: Args, auth: Option<ServerAuth>) -> Command {
    let mut policy = args.server.policy;
    if args.rcv_timeout_given && !args.server.liveness_given {
        // The user expects a silent client to be tolerated for this long.
        policy.liveness = policy.liveness.at_least(args.local.rcv_timeout);
    }

    let spec = ServerSpec {
        local: args.local,
        one_off: args.server.one_off,
        idle_timeout: args.server.idle_timeout,
        bitrate_limit: args.server.bitrate_limit,
        max_duration: args.server.max_duration,
        auth,
        mptcp: args.test.mptcp,
        policy,
    };

    Command::Server {
        spec: Box::new(spec),
        process: args.process,
        output: args.output,
    }
}

#[cfg(test)]
mod tests;
