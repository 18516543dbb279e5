//! Bits of the first word of a header, and of the two half words of its extension.

/// Bits of the first word.
pub(crate) mod first {
    /// The server is to connect back.
    pub(crate) const CONNECT_BACK: u32 = 0x8000_0000;
    /// The extension is present.
    pub(crate) const EXTENDED: u32 = 0x4000_0000;
    /// UDP: the upper half word counts.
    pub(crate) const UDP_TESTS: u32 = 0x2000_0000;
    /// A permit key follows the header.
    pub(crate) const KEY: u32 = 0x1000_0000;
    /// UDP: datagram numbers are 64 bits wide.
    pub(crate) const WIDE_NUMBERS: u32 = 0x0800_0000;
    /// Reverse, both ways, or peer detection: the upper half word counts.
    pub(crate) const SECOND_GENERATION: u32 = 0x0400_0000;
    /// The client waits for the server's answer.
    pub(crate) const DETECT_PEER: u32 = 0x0200_0000;
    /// Not a header but a request of a bounce-back test.
    pub(crate) const BOUNCE_BACK: u32 = 0x0080_0000;
    /// UDP: nothing follows but the numbers are to be taken for one-way delays.
    pub(crate) const SHORT_TRIP_TIMES: u32 = 0x0002_0000;
    /// The length field counts.
    pub(crate) const LENGTH: u32 = 0x0001_0000;
    /// The length in bytes, shifted by one.
    pub(crate) const LENGTH_FIELD: u32 = 0x0000_01fe;
    /// With `CONNECT_BACK`: at once.
    pub(crate) const AT_ONCE: u32 = 0x0000_0001;

    /// Bits that a header with a length may have.
    pub(crate) const KNOWN: u32 = CONNECT_BACK
        | EXTENDED
        | UDP_TESTS
        | KEY
        | WIDE_NUMBERS
        | SECOND_GENERATION
        | DETECT_PEER
        | LENGTH
        | LENGTH_FIELD
        | AT_ONCE;
}

/// Bits of the upper half word.
pub(crate) mod upper {
    pub(crate) const ISOCHRONOUS: u16 = 0x0001;
    pub(crate) const NO_FINAL_REPORT: u16 = 0x0008;
    pub(crate) const TRIP_TIMES: u16 = 0x0010;
    pub(crate) const ISOCHRONOUS_SETTINGS: u16 = 0x0040;
    pub(crate) const DATAGRAMS_PER_S: u16 = 0x0080;
    pub(crate) const FQ_RATE: u16 = 0x0200;
    pub(crate) const REVERSE: u16 = 0x0400;
    pub(crate) const FULL_DUPLEX: u16 = 0x0800;
    pub(crate) const START_TIME: u16 = 0x1000;
    pub(crate) const BURSTS: u16 = 0x2000;
    pub(crate) const UNSENT_LIMIT: u16 = 0x4000;
    pub(crate) const QUICK_ACK: u16 = 0x8000;
}

/// Bits of the lower half word.
pub(crate) mod lower {
    pub(crate) const CONGESTION: u16 = 0x8000;
    pub(crate) const BARRIER: u16 = 0x4000;
}
