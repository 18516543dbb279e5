//! Data path of a test between memory and the network.

use linerate_macros::stored;

use crate::stream::StreamRole;

/// Data path of the streams of one role: the same for all of them, chosen before the test
/// starts.
#[stored(Eq)]
pub struct DataPath {
    /// Which end of the streams this is.
    pub role: StreamRole,
    /// The method.
    pub method: Method,
    /// Largest number of bytes of one system call; `None` where the kernel decides.
    pub per_call: Option<PerCall>,
    /// The same and what it means, as one line for a person.
    pub description: String,
}

impl DataPath {
    /// A path on which the kernel decides how much a call hands over.
    pub fn new(role: StreamRole, method: Method, description: impl Into<String>) -> Self {
        Self {
            role,
            method,
            per_call: None,
            description: description.into(),
        }
    }
}

/// A way to move data.
#[stored(Copy, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Copied between the memory of the program and the kernel, as an application does.
    Copy,
    /// Pages of a file, sendfile(2).
    #[serde(rename = "sendfile")]
    SendFile,
    /// Memory lent to the kernel, `MSG_ZEROCOPY`.
    #[serde(rename = "zerocopy")]
    ZeroCopy,
    /// Received and thrown away in the kernel, `MSG_TRUNC`.
    Discard,
    /// One datagram per call.
    #[serde(rename = "datagrams")]
    SingleDatagrams,
    /// Datagrams that one call hands over together, `UDP_SEGMENT`.
    SegmentedDatagrams,
    /// Datagrams that the kernel joins, `UDP_GRO`; every number is checked.
    JoinedDatagrams,
    /// The same, with only the first number of a burst checked.
    JoinedDatagramsFirstChecked,
}

/// The most that one system call hands over.
#[stored(Copy, Eq)]
pub enum PerCall {
    /// Bytes.
    Bytes(usize),
    /// Datagrams.
    Datagrams(usize),
}
