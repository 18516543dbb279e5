//! Ways in which a request or a connection fails.

use std::collections::BTreeMap;

use linerate_macros::stored;

/// One kind of failure; each is counted for itself, because each has another remedy.
#[stored(Copy, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// The port is closed (`ECONNREFUSED`).
    ConnectRefused,
    /// No response to the first segment in time: a full accept or SYN queue, a firewall, a full
    /// conntrack table.
    ConnectTimeout,
    /// No way there (`EHOSTUNREACH`, `ENETUNREACH`, or `EPERM` from a local firewall).
    Unreachable,
    /// This host ran out of local ports (`EADDRNOTAVAIL`, `EADDRINUSE`).
    AddrNotAvail,
    /// This host ran out of descriptors (`EMFILE`, `ENFILE`).
    FdLimit,
    /// This host ran out of socket memory (`ENOBUFS`, `ENOMEM`).
    NoBuffers,
    /// Reset before the first byte of a response.
    ResetBeforeAnswer,
    /// Reset in the middle of a response.
    ResetMidAnswer,
    /// Reset while no request was outstanding.
    ResetIdle,
    /// Closed in order before the response was complete.
    Eof,
    /// No complete response in time.
    Timeout,
    /// Due in the window and never sent.
    Unsent,
    /// Answered with a redirection; it is not followed.
    #[serde(rename = "status_3xx")]
    Status3xx,
    /// Answered with a client error.
    #[serde(rename = "status_4xx")]
    Status4xx,
    /// Answered with a server error.
    #[serde(rename = "status_5xx")]
    Status5xx,
    /// The response is no HTTP, or not the body that was announced.
    Protocol,
    /// The handshake or a record of TLS failed.
    Tls,
}

impl ErrorClass {
    /// True if the client's host is the limit, not the server or the path.
    pub fn is_client_limit(self) -> bool {
        matches!(self, Self::AddrNotAvail | Self::FdLimit | Self::NoBuffers)
    }
}

/// Count of one kind of failure.
#[stored(Eq, Default)]
pub struct ErrorCount {
    /// Times.
    pub count: u64,
    /// Texts of the errors, the first [`ErrorCounts::TEXTS_MAX`] different ones.
    pub texts: Vec<String>,
}

/// Failures by kind; kinds that did not happen are absent.
#[stored(Eq, Default)]
#[serde(transparent)]
pub struct ErrorCounts(BTreeMap<ErrorClass, ErrorCount>);

impl ErrorCounts {
    /// Most texts kept of one kind.
    pub const TEXTS_MAX: usize = 5;
    /// Text of a [`ErrorClass::Status5xx`] that came before a request: the server rejects the
    /// connection.
    pub const UNASKED_503: &str = "status 503 before a request";

    /// Counts one failure. The text is made only while it is wanted.
    pub fn add(&mut self, class: ErrorClass, text: impl FnOnce() -> String) {
        let entry = self.0.entry(class).or_default();
        entry.count += 1;

        // Texts are formatted only while there is room for one.
        if entry.texts.len() < Self::TEXTS_MAX {
            let text = text();
            if !entry.texts.contains(&text) {
                entry.texts.push(text);
            }
        }
    }

    /// Adds the failures another part of the same run saw.
    pub fn merge(&mut self, other: Self) {
        for (class, theirs) in other.0 {
            let ours = self.0.entry(class).or_default();
            // Counts of another host can have any value.
            ours.count = ours.count.saturating_add(theirs.count);

            for text in theirs.texts {
                if ours.texts.len() < Self::TEXTS_MAX && !ours.texts.contains(&text) {
                    ours.texts.push(text);
                }
            }
        }
    }

    /// Failures of one kind.
    pub fn count(&self, class: ErrorClass) -> u64 {
        self.0.get(&class).map_or(0, |entry| entry.count)
    }

    /// Failures of all kinds.
    pub fn total(&self) -> u64 {
        self.0.values().map(|entry| entry.count).sum()
    }

    /// Kinds that happened, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (ErrorClass, &ErrorCount)> {
        self.0.iter().map(|(class, entry)| (*class, entry))
    }
}
