//! Links of hosts on one machine, as shapers of tc(8).

/// Link of a host in the tested network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostLink {
    /// 1 Gbit/s.
    Gigabit,
    /// 100 Mbit/s: an old cable.
    Slow,
    /// 4 Gbit/s.
    Fast,
    /// 1 Gbit/s from the host, 100 Mbit/s to it.
    SlowToReceive,
    /// 100 Mbit/s from the host, 1 Gbit/s to it.
    SlowToSend,
    /// 800 Mbit/s, and an MTU of 1400 bytes.
    Narrow,
}

impl HostLink {
    /// Rate and burst of tbf(8), from the host and to it.
    pub(crate) fn shapers(self) -> [&'static str; 2] {
        const GIGABIT: &str = "rate 1gbit burst 256kb latency 10ms";
        const SLOW: &str = "rate 100mbit burst 32kb latency 10ms";

        match self {
            Self::Gigabit => [GIGABIT; 2],
            Self::Slow => [SLOW; 2],
            Self::Fast => ["rate 4gbit burst 512kb latency 10ms"; 2],
            Self::SlowToReceive => [GIGABIT, SLOW],
            Self::SlowToSend => [SLOW, GIGABIT],
            Self::Narrow => ["rate 800mbit burst 128kb latency 10ms"; 2],
        }
    }
}
