//! Meaning of the private counters of drivers. Rules use classes only; the names are here.

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

impl Class {
    /// Name of the class.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RxRingFull => "rx_ring_full",
            Self::RxPhyError => "rx_phy_err",
            Self::RxAllocFail => "rx_alloc_fail",
            Self::PauseRx => "pause_rx",
            Self::PauseTx => "pause_tx",
            Self::PauseStorm => "pause_storm",
            Self::TxStall => "tx_stall",
            Self::TxTimeout => "tx_timeout",
            Self::PciStall => "pci_stall",
            Self::Shaped => "shaped",
            Self::SteerDrop => "steer_drop",
        }
    }
}

/// Names by class. `#` matches any number; a name of a hierarchy is compared with its last part.
const NAMES: &[(Class, &[&str])] = &[
    (
        Class::RxRingFull,
        &[
            "rx_missed_errors",
            "rx_no_buffer_count",
            "rx_fifo_errors",
            "rx_over_errors",
            "rx_no_dma_resources",
            "rx_missed",
            "port.rx_discards",
            "rx_discards.nic",
            "rx_dropped.nic",
            "rx_out_of_buffer",
            "rx_discards_phy",
            "rx_prio#_buf_discard",
            "rx_discards",
            "rx_total_discard_pkts",
            "rx_total_ring_discards",
            "InDroppedDma",
            "rx_drops",
            "rx#_drops",
            "rx_queue_#_drops",
            "pkts rx OOB",
            "rx_fifo",
            "rx_queue_drop_cnt[#]",
            "RX Dropped Frames",
        ],
    ),
    (
        Class::RxPhyError,
        &[
            "rx_crc_errors",
            "rx_frame_errors",
            "rx_align_errors",
            "align_errors",
            "frame_align",
            "rx_crc_errors_phy",
            "rx_symbol_err_phy",
            "rx_pcs_symbol_err_phy",
            "rx_length_errors",
            "fcs",
            "RX FCS Errors",
            "RX Alignment Errors",
        ],
    ),
    (
        Class::RxAllocFail,
        &[
            "alloc_rx_buff_failed",
            "rx_buff_alloc_err",
            "rx_queue_#_alloc_failed",
            "rx buf alloc fail",
            "AllocFails",
            "rx_oom_discards",
            "rx_buf_alloc_fail",
        ],
    ),
    (
        Class::PauseRx,
        &[
            "rx_flow_control_xoff",
            "link_xoff_rx",
            "rx_pause_ctrl_phy",
            "rx_pause_frames",
            "rx_xoff_pause_rcvd",
            "pause_rx_frames",
        ],
    ),
    (
        Class::PauseTx,
        &[
            "tx_flow_control_xoff",
            "link_xoff_tx",
            "tx_pause_ctrl_phy",
            "tx_pause_frames",
            "tx_xoff_sent",
            "pause_tx_frames",
        ],
    ),
    (
        Class::PauseStorm,
        &[
            "tx_pause_storm_warning_events",
            "tx_pause_storm_error_events",
        ],
    ),
    (
        Class::TxStall,
        &[
            "tx_queue_stopped",
            "tx_restart_queue",
            "tx_busy",
            "ring full",
            "tx_send_full",
            "stop_queue",
            "tx_stop[#]",
        ],
    ),
    (
        Class::TxTimeout,
        &[
            "tx_timeout_count",
            "tx_tx_timeouts",
            "tx_queue_#_tx_timeouts",
            "tx timeout count",
        ],
    ),
    (
        Class::PciStall,
        &[
            "outbound_pci_stalled_wr",
            "outbound_pci_stalled_rd",
            "outbound_pci_stalled_wr_events",
            "outbound_pci_stalled_rd_events",
            "rx_pci_signal_integrity",
        ],
    ),
    (
        Class::Shaped,
        &[
            "bw_in_allowance_exceeded",
            "bw_out_allowance_exceeded",
            "pps_allowance_exceeded",
            "conntrack_allowance_exceeded",
            "linklocal_allowance_exceeded",
        ],
    ),
    (
        Class::SteerDrop,
        &[
            "rx_steer_missed_packets",
            "veb.rx_discards",
            "xdp_drops",
            "rx_queue_#_xdp_drops",
        ],
    ),
];

/// Names that mean an overflow with these drivers only.
const RING_FULL_OF_DRIVER: &[(&str, &str)] = &[("mlx4_en", "rx_dropped"), ("gve", "rx_dropped")];

/// Meaning of a driver's counter; `None` when it is unknown.
pub fn classify(driver: Option<&str>, name: &str) -> Option<Class> {
    let leaf = name.rsplit('/').next().unwrap_or(name);
    // Before the table: `rx_dropped` of other drivers is no overflow of a ring.
    if driver.is_some_and(|driver| RING_FULL_OF_DRIVER.contains(&(driver, leaf))) {
        return Some(Class::RxRingFull);
    }

    let named = |names: &[&str]| names.iter().any(|pattern| matches(pattern, leaf));
    NAMES
        .iter()
        .find(|(_, names)| named(names))
        .map(|(class, _)| *class)
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
            (None, "rx_missed_errors", Some(Class::RxRingFull)),
            (None, "rx_queue_12_drops", Some(Class::RxRingFull)),
            (None, "rx3_drops", Some(Class::RxRingFull)),
            (None, "rx_queue_drop_cnt[7]", Some(Class::RxRingFull)),
            (None, "Rx Queue#0/pkts rx OOB", Some(Class::RxRingFull)),
            (
                None,
                "Rx Queue#0/drv dropped rx total/fcs",
                Some(Class::RxPhyError),
            ),
            (None, "tx_queue_0_tx_timeouts", Some(Class::TxTimeout)),
            (None, "rx_queue_0_packets", None),
            (None, "rx_dropped", None),
            (Some("mlx4_en"), "rx_dropped", Some(Class::RxRingFull)),
            (None, "rx_queue__drops", None),
            (None, "rx_prio3_buf_discard", Some(Class::RxRingFull)),
        ];
        for (driver, name, expected) in rows {
            assert_eq!(classify(driver, name), expected, "{name}");
        }

        assert!(looks_like_trouble("port.illegal_errors") && !looks_like_trouble("rx_packets"));
        assert_eq!(width(Some("r8169"), "rx_missed"), Some(16));
        assert_eq!(width(None, "rx_missed"), None);
    }
}
