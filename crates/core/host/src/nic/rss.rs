//! Receive-side scaling of a NIC: table, key, function, and the fields that
//! are hashed.

use std::collections::BTreeMap;

use linerate_sys::ethtool::{Ethtool, ReceiveHash};

use crate::prelude::*;

/// `ETHTOOL_MSG_RSS_GET`, since Linux 6.3.
pub(crate) const GET: u8 = 38;

/// Records a response of [`GET`].
pub(crate) fn response(nic: &mut Recorder<'_>, body: &[u8]) {
    const FUNCTIONS: u16 = 3;
    const TABLE: u16 = 4;
    const KEY: u16 = 5;

    // The table has one 32-bit queue number per bucket (ethtool-netlink, `ETHTOOL_A_RSS_INDIR`).
    let words = attribute(body, TABLE).unwrap_or_default().chunks_exact(4);
    let hash = ReceiveHash {
        table: words.filter_map(|word| u32_at(word, 0)).collect(),
        key_bytes: attribute(body, KEY)
            .map_or(0, |key| u32::try_from(key.len()).unwrap_or(u32::MAX)),
        functions: u32_of(body, FUNCTIONS).map_or(0, |bits| u8::try_from(bits & 0xff).unwrap_or(0)),
    };
    record(nic, &hash);
}

/// Reads by ioctl what netlink lacks, and everything where netlink did not respond.
pub(crate) fn by_ioctl(nic: &mut Recorder<'_>, ioctl: &Ethtool, device: &str) {
    // `ETHTOOL_MSG_RSS_GET` exists since Linux 6.3; the ioctl is older than netlink.
    let key = nic.key("rss");
    if nic.snapshot.absence(&key).is_some() {
        match ioctl.receive_hash(device) {
            Ok(hash) => {
                nic.snapshot.facts.remove(&key);
                record(nic, &hash);
            }
            Err(error) => nic.refused("rss", &error.into()),
        }
    }

    let mut rings = nic.with_source("ioctl:GRXRINGS");
    match ioctl.receive_rings(device) {
        Ok(count) => rings.set_in("rss.rings", count, "queues"),
        Err(error) => rings.refused("rss.rings", &error.into()),
    }

    // The numbers of the flow types (`linux/ethtool.h`). No driver treats IPv6 otherwise by
    // default.
    let mut hashed = nic.with_source("ioctl:GRXFH");
    for (flow_type, name) in [(1, "tcp4"), (2, "udp4")] {
        let fact = format!("rss.fields.{name}");
        match ioctl.hash_fields(device, flow_type) {
            Ok(bits) => hashed.set(fact, fields(bits)),
            Err(error) => hashed.refused(fact, &error.into()),
        }
    }
}

fn record(nic: &mut Recorder<'_>, hash: &ReceiveHash) {
    let mut buckets: BTreeMap<u32, usize> = BTreeMap::new();
    for queue in &hash.table {
        *buckets.entry(*queue).or_default() += 1;
    }

    let most = buckets.values().max().copied().unwrap_or(0);
    if hash.table.is_empty() {
        nic.absent("rss.table", Absence::UnsupportedByDriver);
    } else {
        // A whole table would fill the snapshot; whether it is even is what matters.
        nic.set_in("rss.table.size", hash.table.len(), "buckets");
        nic.set_in("rss.table.queues", buckets.len(), "queues");
        nic.set_in("rss.table.largest", most, "buckets");
    }

    let key_bytes = Some(hash.key_bytes).filter(|bytes| *bytes > 0);
    nic.known_in("rss.key_bytes", key_bytes, "bytes");
    nic.absent("rss.key_bytes", Absence::UnsupportedByDriver);

    let functions = names(hash.functions.into(), &["toeplitz", "xor", "crc32"]);
    nic.or_absent("rss.function", functions, Absence::UnsupportedByDriver);
}

/// The bits of `RXH_*` as text; `none` where packets are not hashed.
fn fields(bits: u64) -> String {
    let used = names(
        // `RXH_L2DA`, the lowest, is bit 1 (linux/ethtool.h).
        bits >> 1,
        &["mac", "vlan", "protocol", "src", "dst", "sport", "dport"],
    );
    used.unwrap_or_else(|| "none".to_owned())
}

/// The names of the bits that are set, the lowest bit's first; `None` for none.
fn names(bits: u64, names: &[&str]) -> Option<String> {
    let used = names
        .iter()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1);
    let used: Vec<&str> = used.map(|(_, name)| *name).collect();
    (!used.is_empty()).then(|| used.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::encoded;
    use linerate_model::snapshot::{Snapshot, Source};

    #[test]
    fn a_table_is_summed_up_and_its_absence_has_a_reason() {
        let table: Vec<u8> = [0_u32, 1, 0, 0]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        let body = [
            encoded(3, &1_u32.to_ne_bytes()),
            encoded(4, &table),
            encoded(5, &[7; 40]),
        ]
        .concat();

        let mut snapshot = Snapshot::new("h", Source::Live);
        response(&mut Recorder::new(&mut snapshot, "nic.e", "test"), &body);
        let number = |fact: &str| snapshot.number(&format!("nic.e.rss.{fact}"));
        assert_eq!(
            [
                number("table.size"),
                number("table.queues"),
                number("table.largest"),
                number("key_bytes")
            ],
            [Some(4.0), Some(2.0), Some(3.0), Some(40.0)]
        );
        assert_eq!(snapshot.text("nic.e.rss.function"), Some("toeplitz"));
        response(&mut Recorder::new(&mut snapshot, "nic.f", "test"), &[]);

        for fact in ["table", "key_bytes", "function"] {
            let reason = snapshot.absence(&format!("nic.f.rss.{fact}"));
            assert_eq!(reason, Some(Absence::UnsupportedByDriver), "{fact}");
        }
    }

    #[test]
    fn hashed_fields_have_names() {
        assert_eq!(fields(0xf0), "src dst sport dport");
        assert_eq!(fields(0), "none");
    }
}
