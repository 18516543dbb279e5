//! Errors of an iperf3 command line. The texts are those of iperf3 3.22: scripts match
//! them.

use std::ffi::OsStr;

use linerate_model::command_line::getopt::{GLIBC, GetoptError};
use thiserror::Error;

/// The command line cannot be carried out.
#[derive(Debug)]
pub(crate) enum UsageError {
    /// Not even readable.
    Getopt(GetoptError),
    /// Readable, but a value or a combination is not accepted.
    Parameter(ParameterError),
}

impl UsageError {
    /// The first line on stderr, without a line end. Reading errors quote the program as it was
    /// called, parameter errors always say `iperf3`, as the original does.
    pub(crate) fn message(&self, program: &OsStr) -> Vec<u8> {
        match self {
            Self::Getopt(error) => error.message(program, GLIBC),
            Self::Parameter(ParameterError::Unreadable { file, complaint }) => {
                format!("iperf3: {file}\n\niperf3: parameter error - {complaint}").into_bytes()
            }
            Self::Parameter(error) => format!("iperf3: parameter error - {error}").into_bytes(),
        }
    }
}

impl UsageError {
    /// The error, without the name of a program.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Getopt(error) => {
                let text = String::from_utf8_lossy(&error.message(OsStr::new("iperf3"), GLIBC))
                    .into_owned();
                text.strip_prefix("iperf3: ")
                    .map(str::to_owned)
                    .unwrap_or(text)
            }
            Self::Parameter(error) => error.to_string(),
        }
    }
}

impl From<GetoptError> for UsageError {
    fn from(error: GetoptError) -> Self {
        Self::Getopt(error)
    }
}

impl From<ParameterError> for UsageError {
    fn from(error: ParameterError) -> Self {
        Self::Parameter(error)
    }
}

/// The value of an option that the original does not have.
impl From<linerate_model::Error> for ParameterError {
    fn from(error: linerate_model::Error) -> Self {
        Self::Added(error.to_string())
    }
}

/// A value or a combination that is not accepted. Texts ending in `: ` are those to which the
/// original appends the text of `errno`, which is empty for a mere range error.
#[derive(Debug, Clone, Error)]
pub(crate) enum ParameterError {
    #[error("cannot be both server and client")]
    ServerAndClient,
    #[error("must either be a client (-c) or server (-s)")]
    NoRole,
    #[error("some option you are trying to set is server only")]
    ServerOnly,
    #[error("some option you are trying to set is client only")]
    ClientOnly,
    #[error("test duration valid values are 0 to 86400 seconds")]
    Duration,
    #[error("invalid number of parallel streams (min = 1, max = {max})")]
    Streams {
        /// The bound in force.
        max: u32,
    },
    #[error("block size too large (maximum = 1048576 bytes)")]
    BlockSize,
    #[error("socket buffer size too large (maximum = 536870912 bytes)")]
    BufferSize,
    #[error("invalid report interval (min = 0.1, max = 60 seconds)")]
    Interval,
    #[error("TCP MSS too large (maximum = 32767 bytes)")]
    Mss,
    #[error("bogus value for --omit (maximum = 600 seconds)")]
    Omit,
    #[error("invalid burst count (maximum = 1000)")]
    Burst,
    #[error("only one test end condition (-t, -n, -k) may be specified")]
    EndConditions,
    #[error("block size invalid (minimum = 16 bytes, maximum = 65507 bytes)")]
    UdpBlockSize,
    #[error("bad TOS value (must be between 0 and 255 inclusive)")]
    Tos,
    #[error("you must specify a username, password, and path to a valid RSA public key")]
    ClientAuth,
    #[error("you must specify a path to a valid RSA private key and a user credential file")]
    ServerAuth,
    #[error("bad format specifier (valid formats are in the set [kmgtKMGT])")]
    Format,
    #[error("cannot be both reverse and bidirectional")]
    ReverseBidirectional,
    #[error("port number must be between 1 and 65535 inclusive")]
    Port,
    #[error("invalid time interval for calculating average data rate")]
    AveragingInterval,
    #[error("skew threshold must be a positive number")]
    SkewThreshold,
    #[error("idle timeout parameter is not positive or larger than allowed limit")]
    IdleTimeout,
    #[error("receive timeout value is incorrect or not in range: ")]
    ReceiveTimeout,
    #[error("client receive timeout is valid only in receiving mode: ")]
    ReceiveTimeoutWhileSending,
    #[error("send timeout value is incorrect or not in range: ")]
    SendTimeout,
    #[error("cannot transfer file using UDP")]
    UdpFile,
    #[error("cannot access authorized users file")]
    UsersFile,
    #[error(
        "control connection Keepalive period should be larger than the full retry period (interval \
         * count): "
    )]
    Keepalive,
    #[error("invalid unit value or suffix: '{0}'")]
    Unit(String),
    #[error(
        "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, af31-33, \
         af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])"
    )]
    Dscp,
    #[error("unable to set IPv6 flow label")]
    FlowLabel,
    #[error("unable to set CPU affinity: ")]
    Affinity,
    /// A file that a login needs. The cause is in a line of its own, as in the original.
    #[error("{complaint}")]
    Unreadable {
        /// The path and the system's words.
        file: String,
        /// The original's error about the command line.
        complaint: Box<Self>,
    },
    /// Ours: an option that the original does not have.
    #[error("{0}")]
    Added(String),
    /// Ours: servers read both as single words, so such a login could never succeed.
    #[error("user name and password must not contain white space")]
    BlankInCredentials,
}
