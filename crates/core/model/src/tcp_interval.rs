//! TCP facts of a sender over one reporting interval.

use linerate_macros::stored;

/// TCP_INFO (tcp(7)) of a sender.
#[stored(Copy, Default, Eq)]
#[serde(default)]
pub struct TcpInterval {
    /// Segments retransmitted in this interval.
    pub retransmits: u64,
    /// Congestion window in bytes at the end.
    pub snd_cwnd_bytes: u64,
    /// Peer's advertised window in bytes at the end; `None` on kernels before 5.4.
    pub snd_wnd_bytes: Option<u64>,
    /// Smoothed round-trip time in µs at the end.
    pub rtt_us: u32,
    /// Its variation in µs.
    pub rttvar_us: u32,
    /// Path MTU in bytes.
    pub pmtu_bytes: u32,
    /// Segments that the peer reported as received twice in this interval (DSACK, RFC 2883); `None`
    /// on kernels before 4.19.
    pub dsack_segments: Option<u64>,
    /// Reordering events since the stream began; `None` on kernels before 4.19.
    pub reorder_events: Option<u64>,
    /// Payload of a full segment in bytes.
    pub mss_bytes: u32,
    /// Smallest round-trip time since the stream began in µs; `None` on kernels before 4.6.
    pub min_rtt_us: Option<u32>,
    /// Times limited by the receiver or the buffer; `None` on kernels before 4.10.
    pub limits: Option<TcpLimits>,
}

/// Times of a sender in an interval, in µs. The kernel counts in ticks of some ms.
#[stored(Copy, Default, Eq)]
#[serde(default)]
pub struct TcpLimits {
    /// With data to send or to be acknowledged.
    pub busy_us: u64,
    /// Part of it spent waiting for the peer's window.
    pub rwnd_limited_us: u64,
    /// Part of it spent waiting for this end's send buffer.
    pub sndbuf_limited_us: u64,
}

impl TcpLimits {
    /// Both times of each kind together.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self {
            busy_us: self.busy_us.saturating_add(other.busy_us),
            rwnd_limited_us: self.rwnd_limited_us.saturating_add(other.rwnd_limited_us),
            sndbuf_limited_us: self
                .sndbuf_limited_us
                .saturating_add(other.sndbuf_limited_us),
        }
    }

    /// Growth of each time since `earlier`; 0 for one that did not grow.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self {
            busy_us: self.busy_us.saturating_sub(earlier.busy_us),
            rwnd_limited_us: self.rwnd_limited_us.saturating_sub(earlier.rwnd_limited_us),
            sndbuf_limited_us: self
                .sndbuf_limited_us
                .saturating_sub(earlier.sndbuf_limited_us),
        }
    }
}
