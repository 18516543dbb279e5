//! Forged datagrams of iperf 2: a header and nothing else.

/// Mode that the header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowMode {
    /// The client sends (the default).
    Forward,
    /// The server sends (`-R`).
    Reverse,
    /// Both send on one flow (`--full-duplex`).
    FullDuplex,
    /// The server opens a flow of its own (`-d`).
    Dual,
    /// The same when the client has finished (`-r`).
    TradeOff,
}

/// Shortest datagram that holds the header.
pub const FORGED_BYTES: usize = 120;

/// Datagram `number` of a flow, as 2.1.8 writes it, for this many steps of 10 ms and 100 Mbit/s;
/// `back_port` is where a client with `-d` listens.
pub fn forged(mode: FlowMode, number: i32, ticks: u32, back_port: u16) -> [u8; FORGED_BYTES] {
    let (first, second) = match mode {
        FlowMode::Forward => (0x4801_0098, 0),
        FlowMode::Reverse => (0x6c01_0098, 0x0400_0000),
        FlowMode::FullDuplex => (0x6c01_0098, 0x0808_0000),
        FlowMode::Dual => (0xc801_0099, 0),
        FlowMode::TradeOff => (0xc801_0098, 0),
    };
    let upper = if number < 0 { u32::MAX } else { 0 };

    let words: [(usize, u32); 12] = [
        (0x00, number.cast_unsigned()),
        (0x04, 0x6b01_e794),
        (0x08, 0x0005_8c74),
        (0x0c, upper),
        (0x10, first),
        (0x14, 1),
        (0x18, back_port.into()),
        (0x24, ticks.wrapping_neg()),
        (0x30, second),
        (0x34, 0x0002_0001),
        (0x38, 0x0008_0003),
        (0x40, 100_000_000),
    ];
    let mut datagram = [0; FORGED_BYTES];

    for (at, word) in words {
        datagram[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }

    datagram
}
