//! iperf3's error numbers and the words that belong to them.

use linerate_model::Failure;

/// Suffix of the text of an error.
enum Suffix {
    /// Nothing.
    None,
    /// `: ` and the operating system's or resolver's words; `: ` alone when there are none.
    Cause,
    /// The offending argument, in quotation marks.
    Argument,
}

macro_rules! error_codes {
    ($($name:ident = $number:literal, $text:literal, $suffix:ident;)*) => {
        /// Why a test failed, as both ends number it. The numbers travel after a server error
        /// state.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = concat!("`` ", $text, " ``")] $name,)*
            /// A number without a known meaning.
            Unknown(i32),
        }

        impl ErrorCode {
            /// Every code with a known meaning.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The number on the wire.
            pub fn number(self) -> i32 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Unknown(number) => number,
                }
            }

            fn text(self) -> (&'static str, Suffix) {
                match self {
                    $(Self::$name => ($text, Suffix::$suffix),)*
                    Self::Unknown(_) => ("", Suffix::None),
                }
            }
        }
    };
}

error_codes! {
    ServClient = 1, "cannot be both server and client", None;
    NoRole = 2, "must either be a client (-c) or server (-s)", None;
    ServerOnly = 3, "some option you are trying to set is server only", None;
    ClientOnly = 4, "some option you are trying to set is client only", None;
    Duration = 5, "test duration valid values are 0 to 86400 seconds", None;
    NumStreams = 6, "invalid number of parallel streams (min = 1, max = 128)", None;
    BlockSize = 7, "block size too large (maximum = 1048576 bytes)", None;
    BufSize = 8, "socket buffer size too large (maximum = 536870912 bytes)", None;
    Interval = 9, "invalid report interval (min = 0.1, max = 60 seconds)", None;
    Mss = 10, "TCP MSS too large (maximum = 32767 bytes)", None;
    NoSendfile = 11, "this OS does not support sendfile", None;
    Omit = 12, "bogus value for --omit (maximum = 600 seconds)", None;
    Unimp = 13, "an option you are trying to set is not implemented yet", None;
    File = 14, "unable to open -F file", Cause;
    Burst = 15, "invalid burst count (maximum = 1000)", None;
    EndConditions = 16, "only one test end condition (-t, -n, -k) may be specified", None;
    LogFile = 17, "unable to open log file", Cause;
    NoSctp = 18, "no SCTP support available", None;
    Bind = 19, "unused", None;
    UdpBlockSize = 20, "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)", None;
    BadTos = 21, "bad TOS value (must be between 0 and 255 inclusive)", None;
    SetClientAuth = 22, "you must specify a username, password, and path to a valid RSA public key", None;
    SetServerAuth = 23, "you must specify a path to a valid RSA private key and a user credential \
                         file", None;
    BadFormat = 24, "bad format specifier (valid formats are in the set [kmgtKMGT])", None;
    ReverseBidir = 25, "cannot be both reverse and bidirectional", None;
    BadPort = 26, "port number must be between 1 and 65535 inclusive", None;
    TotalRate = 27, "total required bandwidth is larger than server limit", None;
    TotalInterval = 28, "invalid time interval for calculating average data rate", None;
    SkewThreshold = 29, "skew threshold must be a positive number", None;
    IdleTimeout = 30, "idle timeout parameter is not positive or larger than allowed limit", None;
    RcvTimeout = 31, "receive timeout value is incorrect or not in range", Cause;
    RvrsOnlyRcvTimeout = 32, "client receive timeout is valid only in receiving mode", Cause;
    SndTimeout = 33, "send timeout value is incorrect or not in range", Cause;
    UdpFileTransfer = 34, "cannot transfer file using UDP", None;
    ServerAuthUsers = 35, "cannot access authorized users file", None;
    CntlKa = 36, "control connection Keepalive period should be larger than the full retry period \
                  (interval * count)", Cause;
    MaxServerTestDurationExceeded = 37, "client's requested duration exceeds the server's maximum \
                                         permitted limit", None;
    UnitVal = 38, "invalid unit value or suffix: ", Argument;
    SkipRxCopy = 39, "this OS does not support --skip-rx-copy", None;
    BadDscp = 40, "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, \
                   af31-33, af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])", None;
    NewTest = 100, "unable to create a new test", Cause;
    InitTest = 101, "test initialization failed", Cause;
    Listen = 102, "unable to start listener for connections", Cause;
    Connect = 103, "unable to connect to server - server may have stopped running or use a \
                    different port, firewall issue, etc.", Cause;
    Accept = 104, "unable to accept connection from client", Cause;
    SendCookie = 105, "unable to send cookie to server", Cause;
    RecvCookie = 106, "unable to receive cookie at server", Cause;
    CtrlWrite = 107, "unable to write to the control socket", Cause;
    CtrlRead = 108, "unable to read from the control socket", Cause;
    CtrlClose = 109, "control socket has closed unexpectedly", None;
    Message = 110, "received an unknown control message (ensure other side is iperf3 and not iperf)", None;
    SendMessage = 111, "unable to send control message - port may not be available, the other side \
                        may have stopped running, etc.", Cause;
    RecvMessage = 112, "unable to receive control message - port may not be available, the other \
                        side may have stopped running, etc.", Cause;
    SendParams = 113, "unable to send parameters to server", Cause;
    RecvParams = 114, "unable to receive parameters from client", Cause;
    PackageResults = 115, "unable to package results", Cause;
    SendResults = 116, "unable to send results", Cause;
    RecvResults = 117, "unable to receive results", Cause;
    Select = 118, "select failed", Cause;
    ClientTerm = 119, "the client has terminated", None;
    ServerTerm = 120, "the server has terminated", None;
    AccessDenied = 121, "the server is busy running a test. try again later", None;
    SetNoDelay = 122, "unable to set TCP/SCTP NODELAY", Cause;
    SetMss = 123, "unable to set TCP/SCTP MSS", Cause;
    SetBuf = 124, "unable to set socket buffer size", Cause;
    SetTos = 125, "unable to set IP TOS", Cause;
    SetCos = 126, "unable to set IPv6 traffic class", Cause;
    SetFlow = 127, "unable to set IPv6 flow label", None;
    ReuseAddr = 128, "unable to reuse address on socket", Cause;
    NonBlocking = 129, "unable to set socket to non-blocking", Cause;
    SetWindowSize = 130, "unable to set socket window size", Cause;
    Protocol = 131, "protocol does not exist", None;
    Affinity = 132, "unable to set CPU affinity", Cause;
    Daemon = 133, "unable to become a daemon", Cause;
    SetCongestion = 134, "unable to set TCP_CONGESTION: Supplied congestion control algorithm not \
                          supported on this host", None;
    PidFile = 135, "unable to write PID file", Cause;
    V6Only = 136, "Unable to set/reset IPV6_V6ONLY", Cause;
    SetSctpDisableFrag = 137, "unable to set SCTP_DISABLE_FRAGMENTS", Cause;
    SetSctpNStreams = 138, "unable to set SCTP_INIT num of SCTP streams\n", Cause;
    SetPacing = 140, "unable to set socket pacing", Cause;
    SetBuf2 = 141, "socket buffer size not set correctly", None;
    AuthTest = 142, "test authorization failed", None;
    BindDev = 143, "Unable to bind-to-device (check perror, maybe permissions?)", None;
    NoMsg = 144, "idle timeout for receiving data", None;
    SetDontFragment = 145, "unable to set IP Do-Not-Fragment flag", None;
    BindDevNoSupport = 146, "`<ip>%<dev>` is not supported as system does not support bind to \
                             device", None;
    HostDev = 147, "host device name (ip%<dev>) is supported (and required) only for IPv6 \
                    link-local address", None;
    SetUserTimeout = 148, "unable to set TCP USER_TIMEOUT", Cause;
    PthreadCreate = 150, "unable to create thread", Cause;
    PthreadCancel = 151, "unable to cancel thread", Cause;
    PthreadJoin = 152, "unable to join thread", Cause;
    PthreadAttrInit = 153, "unable to create thread attributes", Cause;
    PthreadAttrDestroy = 154, "unable to destroy thread attributes", None;
    SetCntlKa = 155, "unable to set socket keepalive (SO_KEEPALIVE) option", Cause;
    SetCntlKaKeepIdle = 156, "unable to set socket keepalive TCP period (TCP_KEEPIDLE) option", Cause;
    SetCntlKaInterval = 157, "unable to set socket keepalive retry interval (TCP_KEEPINTVL) option", Cause;
    SetCntlKaCount = 158, "unable to set socket keepalive number of retries (TCP_KEEPCNT) option", Cause;
    PthreadSigMask = 159, "unable to change mask of blocked signals", None;
    ServerTestDurationExpired = 160, "server test duration expired", Cause;
    CreateStream = 200, "unable to create a new stream", Cause;
    InitStream = 201, "unable to initialize stream", Cause;
    StreamListen = 202, "unable to start stream listener", Cause;
    StreamConnect = 203, "unable to connect stream", Cause;
    StreamAccept = 204, "unable to accept stream connection", Cause;
    StreamWrite = 205, "unable to write to stream socket", Cause;
    StreamRead = 206, "unable to read from stream socket", Cause;
    StreamClose = 207, "stream socket has closed unexpectedly", None;
    StreamId = 208, "stream has an invalid id", None;
    NewTimer = 300, "unable to create new timer", Cause;
    UpdateTimer = 301, "unable to update timer", Cause;
}

impl ErrorCode {
    /// The code with this number.
    pub fn from_number(number: i32) -> Self {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.number() == number)
            .unwrap_or(Self::Unknown(number))
    }

    /// The words of release 3.22. `cause` is the text of the operating system's error, the
    /// resolver's, or the offending argument; codes that take none ignore it, codes that take one
    /// end in `: ` without it.
    pub fn message(self, cause: Option<&str>) -> String {
        if let Self::Unknown(number) = self {
            return format!("int_errno={number}: ");
        }

        let cause = cause.unwrap_or_default();
        match self.text() {
            (text, Suffix::None) => text.to_owned(),
            (text, Suffix::Cause) => format!("{text}: {cause}"),
            (text, Suffix::Argument) => format!("{text}'{cause}'"),
        }
    }

    /// This code as the end of a test.
    pub fn failure(self, cause: Option<&str>) -> Failure {
        Failure::error(self.number(), self.message(cause))
    }
}

/// The system's words for an error number; `None` for 0 and below. A peer's number may mean
/// something else on its system, which is unknown here.
pub fn errno_text(errno: i32) -> Option<String> {
    if errno <= 0 {
        return None;
    }

    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let suffix = format!(" (os error {errno})");
    Some(text.strip_suffix(&suffix).unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_the_rules_of_their_code() {
        let rows: &[(i32, Option<&str>, &str)] = &[
            (
                121,
                Some("ignored"),
                "the server is busy running a test. try again later",
            ),
            (
                123,
                Some("Invalid argument"),
                "unable to set TCP/SCTP MSS: Invalid argument",
            ),
            (114, None, "unable to receive parameters from client: "),
            (38, Some("1Q"), "invalid unit value or suffix: '1Q'"),
            (139, None, "int_errno=139: "),
            (-5, Some("x"), "int_errno=-5: "),
        ];
        for (number, cause, expected) in rows {
            assert_eq!(ErrorCode::from_number(*number).message(*cause), *expected);
        }
    }

    #[test]
    fn numbers_are_unique_and_come_back() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_number(code.number()), *code);
        }
    }

    #[test]
    fn failures_carry_number_and_text() {
        let failure = ErrorCode::CtrlClose.failure(None);
        assert_eq!(failure.code, Some(109));
        assert_eq!(failure.message, "control socket has closed unexpectedly");
    }

    #[test]
    fn system_error_numbers_have_plain_text() {
        assert_eq!(errno_text(22).as_deref(), Some("Invalid argument"));
        assert_eq!(errno_text(0), None);
        assert_eq!(errno_text(-1), None);
        assert!(errno_text(i32::MAX).is_some());
    }
}
