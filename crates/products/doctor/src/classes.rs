//! Meaning of the private counters of drivers. Rules use classes only; the names are here.

use std::sync::LazyLock;

use Class::*;

/// Meaning of a driver's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// No free receive descriptor, or the chip's own buffer overflowed.
    RxRingFull,
    /// Damaged frames.
    RxPhyError,
    /// Memory for a received frame was short.
    RxAllocFail,
    /// 802.3x pause frames received.
    PauseRx,
    /// 802.3x pause frames sent.
    PauseTx,
    /// The chip paused its peer for so long that it gave up.
    PauseStorm,
    /// A transmit queue stopped because its ring was full.
    TxStall,
    /// A transmit queue was reset after a timeout.
    TxTimeout,
    /// Back-pressure from the host bus.
    PciStall,
    /// A provider's limit.
    Shaped,
    /// Dropped by a filter, not by load.
    SteerDrop,
}

/// All classes, in the order of their lines in the table.
const ALL: [Class; 11] = [
    RxRingFull,
    RxPhyError,
    RxAllocFail,
    PauseRx,
    PauseTx,
    PauseStorm,
    TxStall,
    TxTimeout,
    PciStall,
    Shaped,
    SteerDrop,
];

/// Lines of the table: the name of a class, and names of counters in which `#` matches any number.
/// A name of a hierarchy is compared with its last part.
static NAMES: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let lines = include_str!("classes.txt").lines();
    lines.map(|line| line.split(" | ").collect()).collect()
});

impl Class {
    /// Name of the class.
    pub fn name(self) -> &'static str {
        NAMES[self as usize][0]
    }
}

/// Names that mean an overflow with these drivers only.
const RING_FULL_OF_DRIVER: &[(&str, &str)] = &[("mlx4_en", "rx_dropped"), ("gve", "rx_dropped")];

/// Meaning of a driver's counter; `None` when it is unknown.
pub fn classify(driver: Option<&str>, name: &str) -> Option<Class> {
    let leaf = name.rsplit('/').next().unwrap_or(name);
    // Before the table: `rx_dropped` of other drivers is no overflow of a ring.
    if driver.is_some_and(|driver| RING_FULL_OF_DRIVER.contains(&(driver, leaf))) {
        return Some(RxRingFull);
    }

    let is_named = |(names, _): &(&Vec<&str>, Class)| {
        names.iter().skip(1).any(|pattern| matches(pattern, leaf))
    };
    let mut classes = NAMES.iter().zip(ALL);
    classes.find(is_named).map(|(_, class)| class)
}

/// True if `name` matches `pattern`, in which every `#` is one or more digits.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('#') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            // Digits are ASCII, so that the slice begins at a character.
            digits > 0 && matches(after, &rest[digits..])
        }),
    }
}

/// True if a counter without a class has a name that suggests errors.
pub fn looks_like_trouble(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "drop", "miss", "discard", "no_buf", "overr", "fifo", "oob", "err",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// Bits after which a driver's counter wraps; `None` for 64. The r8169 family keeps its tallies in
/// 16 bits (`drivers/net/ethernet/realtek/r8169_main.c`, `struct rtl8169_counters`).
pub fn width(driver: Option<&str>, name: &str) -> Option<u8> {
    match (driver?, name) {
        ("r8169" | "r8152", "rx_missed" | "align_errors" | "tx_aborted" | "tx_underrun") => {
            Some(16)
        }
        (
            "r8169" | "r8152",
            "rx_errors" | "tx_single_collisions" | "tx_multi_collisions" | "multicast",
        ) => Some(32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_drivers_share_a_class() {
        let rows = [
            (None, "rx_missed_errors", Some(RxRingFull)),
            (None, "rx_queue_12_drops", Some(RxRingFull)),
            (None, "rx3_drops", Some(RxRingFull)),
            (None, "rx_queue_drop_cnt[7]", Some(RxRingFull)),
            (None, "Rx Queue#0/pkts rx OOB", Some(RxRingFull)),
            (
                None,
                "Rx Queue#0/drv dropped rx total/fcs",
                Some(RxPhyError),
            ),
            (None, "tx_queue_0_tx_timeouts", Some(TxTimeout)),
            (None, "rx_queue_0_packets", None),
            (None, "rx_dropped", None),
            (Some("mlx4_en"), "rx_dropped", Some(RxRingFull)),
            (None, "rx_queue__drops", None),
            (None, "rx_prio3_buf_discard", Some(RxRingFull)),
        ];
        for (driver, name, expected) in rows {
            assert_eq!(classify(driver, name), expected, "{name}");
        }

        assert!(looks_like_trouble("port.illegal_errors") && !looks_like_trouble("rx_packets"));
        assert_eq!(width(Some("r8169"), "rx_missed"), Some(16));
        assert_eq!(width(None, "rx_missed"), None);
    }
}
