//! Responses of the kernel from arbitrary bytes. Only for fuzzing.

use linerate_model::snapshot::{Snapshot, Source};

use crate::netlink::messages;
use crate::nic::{config_space, ethtool, links, route, tunnel};
use crate::recorder::Recorder;
use crate::tc::filters::Filters;
use crate::tc::{self, shapers};

/// Parses the bytes as every kind of response; returns the number of facts and counters.
pub fn decode_anything(bytes: &[u8]) -> usize {
    let mut snapshot = Snapshot::new("fuzz", Source::Live);
    let mut found = Vec::new();
    let mut filters = Filters::default();
    let mut classes = shapers::Classes::new();

    decode_files(bytes);
    for message in messages(bytes) {
        let payload = message.payload;
        found.extend(links::link(payload));
        let _ = links::duplicate(payload);
        let _ = tc::qdisc(&mut snapshot, "e", payload);

        for section in ethtool::SECTIONS {
            (section.read)(
                &mut Recorder::new(&mut snapshot, "nic.e", "fuzz"),
                payload.get(4..).unwrap_or_default(),
            );
        }

        let _ = crate::netlink::errno(payload);
        decode_files(payload);
        let _ = crate::kernel::sockets::socket(payload);

        crate::kernel::firewall::decode_anything(payload);
        let _ = crate::kernel::iptables::table(found.len() % 2 == 0, "t", payload, payload);
        let _ = filters.add(payload);

        classes.extend(shapers::class(payload));
        let _ = config_space::pcie_link(payload);
    }

    for class in classes.keys() {
        let _ = shapers::ceiling(&classes, *class);
    }

    for link in &found {
        link.record_facts(&mut snapshot, &found);
        tunnel::record(&mut snapshot, link, &found);
        link.record_counters(&mut snapshot);
    }

    for message in messages(bytes) {
        route::response_facts(
            &mut snapshot,
            message.payload.get(12..).unwrap_or_default(),
            &found,
        );
    }

    let found = snapshot.facts.len() + snapshot.counters.len();
    filters.record(&mut snapshot, "nic.e");
    found
}

/// Parses the bytes as every file of `/proc` and of control groups.
fn decode_files(bytes: &[u8]) {
    crate::kernel::process::decode_anything(bytes);
    let text = String::from_utf8_lossy(bytes);
    crate::kernel::cgroup::decode_anything(&text);
    crate::kernel::decode_anything(&text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{push, request};

    #[test]
    fn link_is_parsed_and_garbage_does_not_panic() {
        let mut body = vec![0; 16];
        push(&mut body, 3, b"eth0\0");
        push(&mut body, 4, &1500_u32.to_ne_bytes());
        assert!(decode_anything(&request(16, 0, 1, &body)) > 0);

        for bytes in [
            &[][..],
            &[255; 64],
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0],
        ] {
            assert_eq!(decode_anything(bytes), 0);
        }
    }
}
