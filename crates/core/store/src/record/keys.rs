//! Keys under which runs are found again: hashes of what has to be equal.

use linerate_model::snapshot::Snapshot;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Members of a specification that do not change what is measured, or must not leave the host.
const NOT_HASHED: [&str; 4] = ["title", "extra_data", "permit_key", "labels"];

/// Facts that are settings; all others are momentary.
const SETTINGS: &str = "\
    cpu.count cpu.online cpu.virt cpu.hybrid cpu.freq.governor cpu.freq.driver cpu.freq.max_khz \
    numa. cgroup.cpu.max limits.nofile. sysctl. kernel. svc. nic.";
/// Facts of NICs that are momentary.
const NIC_MOMENTARY: &str = "\
    .stat. .stats64 .bql. .irq.total .carrier_changes .backlog .bytes .drops .requeues .overlimits";

/// Key of the path between two hosts: equal for all runs between them over the same address family
/// and device.
pub fn path_key(client: &str, server: &str, family: &str, device: &str) -> String {
    hash(&["path", client, server, family, device])
}

/// Key of what is measured: the specification without titles and labels.
pub fn spec_key(kind: &str, spec: &impl Serialize) -> String {
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    remove(&mut spec);
    hash(&["spec", kind, &canonical(&spec)])
}

/// Key of a host, made of its machine id, which itself must not leave the host (machine-id(5)).
pub fn host_key(machine_id: &str) -> String {
    hash(&["linerate host", machine_id.trim()])
}

/// Key of the settings of a host; equal while they do not change.
pub fn facts_key(snapshot: &Snapshot) -> String {
    let settings = snapshot.facts.keys().filter(|key| is_setting(key));
    let settings: serde_json::Map<String, Value> = settings
        .filter_map(|key| {
            Some((
                key.clone(),
                serde_json::to_value(snapshot.value(key)?).ok()?,
            ))
        })
        .collect();
    hash(&[
        "facts",
        snapshot.kernel.as_deref().unwrap_or(""),
        &canonical(&Value::Object(settings)),
    ])
}

/// A JSON value as text without white space and with sorted names: equal for equal values.
pub fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

/// SHA-256, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// First 16 bytes of the SHA-256 of the parts, each of which ends with a zero byte.
fn hash(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    hexadecimal(&digest.finalize()[..16])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn remove(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !NOT_HASHED.contains(&name.as_str()));
            members.values_mut().for_each(remove);
        }
        Value::Array(items) => items.iter_mut().for_each(remove),
        _ => {}
    }
}

fn is_setting(key: &str) -> bool {
    let is_momentary =
        key.starts_with("nic.") && NIC_MOMENTARY.split(' ').any(|part| key.contains(part));
    SETTINGS.split(' ').any(|prefix| key.starts_with(prefix)) && !is_momentary
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_model::spec::EndCondition;
    use linerate_model::{TestSpec, snapshot::Source};

    use super::*;

    #[test]
    fn titles_do_not_change_the_key_of_a_specification_and_lengths_do() {
        let plain = TestSpec::default();
        let titled = TestSpec {
            title: Some("night".into()),
            extra_data: Some("x".into()),
            ..TestSpec::default()
        };

        let longer = TestSpec {
            end: EndCondition::Duration(Duration::from_secs(20)),
            ..TestSpec::default()
        };
        assert_eq!(spec_key("test", &plain), spec_key("test", &titled));
        assert_ne!(spec_key("test", &plain), spec_key("test", &longer));
        assert_ne!(spec_key("test", &plain), spec_key("session", &plain));
        assert_eq!(spec_key("test", &plain).len(), 32);
    }

    #[test]
    fn paths_differ_by_every_part() {
        let key = path_key("a", "b", "ipv4", "eth0");
        for other in [
            path_key("b", "a", "ipv4", "eth0"),
            path_key("a", "b", "ipv6", "eth0"),
            path_key("ab", "", "ipv4", "eth0"),
        ] {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn settings_change_the_key_of_facts_and_readings_do_not() {
        let with = |facts: &[(&str, i64)]| {
            let mut snapshot = Snapshot::new("host", Source::Live);
            facts
                .iter()
                .for_each(|(key, value)| snapshot.set(*key, *value, "test"));
            facts_key(&snapshot)
        };
        let ring = ("nic.eth0.ring.rx.cur", 256);
        assert_eq!(
            with(&[ring]),
            with(&[
                ring,
                ("mem.available_bytes", 5),
                ("nic.eth0.qdisc.0.drops", 7)
            ])
        );
        assert_ne!(with(&[ring]), with(&[("nic.eth0.ring.rx.cur", 4096)]));
        assert_ne!(
            with(&[ring]),
            with(&[ring, ("sysctl.net.core.rmem_max", 1)])
        );
    }

    #[test]
    fn canonical_text_does_not_depend_on_order_and_white_space() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(
            canonical(&parse(r#"{"b": [1, {"y":2,"x":1}], "a": null}"#)),
            r#"{"a":null,"b":[1,{"x":1,"y":2}]}"#
        );
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_ne!(host_key("0123"), host_key("0124"));
        assert_eq!(host_key("0123\n"), host_key("0123"));
    }
}
