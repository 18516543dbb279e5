//! Dropped packets by reason, function, protocol and port: records of `skb:kfree_skb`, added up.

use std::collections::BTreeMap;

use super::format::{Field, Format};
use super::symbols::Symbols;

/// Packets that the kernel freed as dropped while a watch ran, in all network namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropCounts {
    /// Packets of each kind, most first.
    pub rows: Vec<DropRow>,
    /// Drops without a record: more at once than the rings hold. They are in no row.
    pub lost: u64,
    /// Drops for each record. Above 1 the numbers of the rows are estimates, each with a standard
    /// error of the square root of its number times this.
    pub period: u64,
}

/// Packets of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DropRow {
    /// Name of the reason (`enum skb_drop_reason`); `None` where the kernel has none, before 5.17.
    pub reason: Option<String>,
    /// Function that dropped; `None` where the kernel hides addresses.
    pub function: Option<String>,
    /// `EtherType`: 0x0800 is IPv4.
    pub protocol: u16,
    /// Port of the UDP socket whose buffer was full; `None` for other drops, on kernels before 5.3,
    /// and for estimates.
    pub port: Option<u16>,
    /// Packets, each of which may be several datagrams that the kernel joined.
    pub packets: u64,
}

/// Kinds that are kept apart. More exist only where addresses or ports are invented.
const KINDS_MAX: usize = 4096;

/// Layouts of the tracepoints.
#[derive(Debug)]
pub(super) struct Layout {
    drop: Format,
    location: Field,
    protocol: Field,
    reason: Option<Field>,
    /// Number of `udp:udp_fail_queue_rcv_skb`, and the field with the port of the socket.
    full_socket: Option<(u16, Field)>,
}

impl Layout {
    /// Layouts from the `format` files; `None` where that of `skb:kfree_skb` lacks a field.
    pub(super) fn of(kfree_skb: &str, udp_fail_queue: Option<&str>) -> Option<Self> {
        let drop = Format::parse(kfree_skb)?;
        let full_socket = udp_fail_queue.and_then(Format::parse).and_then(|format| {
            // The receiver's port; before Linux 6.9 the event had no other.
            let port = format.field("dport").or_else(|| format.field("lport"))?;
            Some((format.id, port))
        });

        Some(Self {
            location: drop.field("location")?,
            protocol: drop.field("protocol")?,
            reason: drop.field("reason"),
            drop,
            full_socket,
        })
    }

    /// Numbers of the tracepoints: that of drops, and that of full sockets.
    pub(super) fn ids(&self) -> (u16, Option<u16>) {
        (self.drop.id, self.full_socket.map(|(id, _)| id))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    reason: Option<u64>,
    location: u64,
    protocol: u16,
    port: Option<u16>,
}

/// Drops so far.
#[derive(Debug)]
pub(super) struct DropCounter {
    layout: Layout,
    packets: BTreeMap<Kind, u64>,
    /// Packets in `packets`.
    recorded: u64,
}

impl DropCounter {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            packets: BTreeMap::new(),
            recorded: 0,
        }
    }

    /// Adds the data of one event, one of `period`. `full_port` is the port of a full socket between
    /// its own event and the drop that follows on the same CPU.
    pub(super) fn add(&mut self, data: &[u8], period: u64, full_port: &mut Option<u16>) {
        let Some(id) = data.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes)) else {
            return;
        };
        if let Some((_, port)) = self.layout.full_socket.filter(|(full, _)| *full == id) {
            let port = port.number(data).and_then(|port| u16::try_from(port).ok());
            // Records that are samples are no neighbours.
            *full_port = port.filter(|_| period == 1);
            return;
        }

        let port = full_port.take();
        if let Some(kind) = self.kind(data, port).filter(|_| id == self.layout.drop.id)
            && (self.packets.len() < KINDS_MAX || self.packets.contains_key(&kind))
        {
            *self.packets.entry(kind).or_default() += period;
            self.recorded += period;
        }
    }

    fn kind(&self, data: &[u8], port: Option<u16>) -> Option<Kind> {
        let protocol = self.layout.protocol.number(data)?;
        Some(Kind {
            reason: self.layout.reason.and_then(|field| field.number(data)),
            location: self.layout.location.number(data)?,
            protocol: u16::try_from(protocol).ok()?,
            port,
        })
    }

    /// The counts, where `total` events took place and records stood for up to `period` of them.
    pub(super) fn counts(&self, symbols: &Symbols, total: u64, period: u64) -> DropCounts {
        let mut rows: BTreeMap<DropRow, u64> = BTreeMap::new();
        for (kind, packets) in &self.packets {
            let name = |value| self.layout.drop.name(value);
            let row = DropRow {
                reason: kind.reason.and_then(name).map(str::to_owned),
                function: symbols.function(kind.location).map(|one| one.name),
                protocol: kind.protocol,
                port: kind.port,
                packets: 0,
            };
            *rows.entry(row).or_default() += packets;
        }

        let is_sampled = period > 1;
        let counted = |packets| match is_sampled {
            // Records that were lost are those of all kinds alike.
            true => scaled(packets, total, self.recorded),
            false => packets,
        };
        let mut rows: Vec<DropRow> = rows
            .into_iter()
            .map(|(row, packets)| DropRow {
                packets: counted(packets),
                ..row
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.packets));

        let lost = total.saturating_sub(self.recorded);
        DropCounts {
            rows,
            lost: if is_sampled { 0 } else { lost },
            period,
        }
    }
}

/// `packets` of `recorded`, of `total`.
fn scaled(packets: u64, total: u64, recorded: u64) -> u64 {
    let product = u128::from(packets) * u128::from(total);
    u64::try_from(product / u128::from(recorded.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DROP: u16 = 2310;
    const FULL: u16 = 2282;

    fn counter() -> DropCounter {
        let layout = Layout::of(
            include_str!("captures/kfree_skb-6.18.txt"),
            Some(include_str!("captures/udp_fail_queue_rcv_skb-6.18.txt")),
        );
        DropCounter::new(layout.expect("both layouts"))
    }

    /// Data of `skb:kfree_skb` in the layout of Linux 6.18.
    fn dropped(location: u64, protocol: u16, reason: u32) -> Vec<u8> {
        let mut data = vec![0; 40];
        data[..2].copy_from_slice(&DROP.to_ne_bytes());
        data[16..24].copy_from_slice(&location.to_ne_bytes());
        data[32..34].copy_from_slice(&protocol.to_ne_bytes());
        data[36..].copy_from_slice(&reason.to_ne_bytes());
        data
    }

    fn full(port: u16) -> Vec<u8> {
        let mut data = vec![0; 74];
        data[..2].copy_from_slice(&FULL.to_ne_bytes());
        data[14..16].copy_from_slice(&port.to_ne_bytes());
        data
    }

    fn names() -> Symbols {
        let text = "10 t udp_queue_rcv_one_skb\n20 T nft_do_chain\n99 t an_end\n";
        Symbols::read(text.as_bytes())
    }

    fn row(counts: &DropCounts, at: usize) -> (Option<&str>, Option<&str>, Option<u16>, u64) {
        let row = &counts.rows[at];
        (
            row.reason.as_deref(),
            row.function.as_deref(),
            row.port,
            row.packets,
        )
    }

    #[test]
    fn drops_are_added_by_reason_function_and_port_of_the_full_socket() {
        let mut counter = counter();
        let mut port = None;
        for data in [
            full(5201),
            dropped(0x10, 0x0800, 6),
            dropped(0x20, 0x0800, 12),
            full(53),
            dropped(0x10, 0x0800, 6),
            full(5201),
            dropped(0x10, 0x0800, 6),
            dropped(0x24, 0x0800, 12),
            dropped(0x20, 0x0800, 12),
            dropped(0x9, 0x86dd, 1),
            vec![],
            vec![0; 40],
        ] {
            counter.add(&data, 1, &mut port);
        }

        let counts = counter.counts(&names(), 9, 1);
        let udp = (Some("SOCKET_RCVBUFF"), Some("udp_queue_rcv_one_skb"));
        assert_eq!(
            row(&counts, 0),
            (Some("NETFILTER_DROP"), Some("nft_do_chain"), None, 3)
        );
        assert_eq!(row(&counts, 1), (udp.0, udp.1, Some(5201), 2));
        assert_eq!(row(&counts, 2), (None, None, None, 1));
        assert_eq!(row(&counts, 3), (udp.0, udp.1, Some(53), 1));
        assert_eq!((counts.lost, counts.period), (2, 1));
    }

    #[test]
    fn samples_are_scaled_to_all_events_and_have_no_port() {
        let mut counter = counter();
        let mut port = None;
        for _ in 0..30 {
            counter.add(&full(5201), 31, &mut port);
            counter.add(&dropped(0x10, 0x0800, 6), 31, &mut port);
        }
        for _ in 0..10 {
            counter.add(&dropped(0x20, 0x0800, 12), 31, &mut port);
        }

        let counts = counter.counts(&names(), 1280, 31);
        assert_eq!(
            counts
                .rows
                .iter()
                .map(|row| row.packets)
                .collect::<Vec<_>>(),
            [960, 320]
        );
        assert_eq!(counts.rows[0].port, None);
        assert_eq!((counts.lost, counts.period), (0, 31));
    }

    #[test]
    fn kernels_without_reasons_have_the_function_alone() {
        let layout = Layout::of(
            include_str!("captures/kfree_skb-5.10.txt"),
            Some(include_str!("captures/udp_fail_queue_rcv_skb-5.10.txt")),
        );
        let layout = layout.expect("both layouts");
        assert_eq!(layout.ids(), (1331, Some(1320)));

        let mut data = vec![0; 32];
        data[..2].copy_from_slice(&1331_u16.to_ne_bytes());
        data[16..24].copy_from_slice(&0x20_u64.to_ne_bytes());
        data[24..26].copy_from_slice(&0x0800_u16.to_ne_bytes());
        let mut counter = DropCounter::new(layout);
        counter.add(&data, 1, &mut None);
        assert_eq!(
            row(&counter.counts(&names(), 1, 1), 0),
            (None, Some("nft_do_chain"), None, 1)
        );
        assert!(Layout::of("ID: 7\n\tfield:int a;\toffset:0;\tsize:4;", None).is_none());
    }
}
