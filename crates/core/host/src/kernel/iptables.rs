//! Rules of iptables' own kernel part: what they dropped (`linux/netfilter_ipv4/ip_tables.h`). Only
//! bytes in.

use linerate_model::printable::printable;

use crate::prelude::*;

/// Amount that a rule dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub packets: u64,
    pub bytes: u64,
}

/// Drops by the rules and policies of a table.
#[derive(Default)]
pub(crate) struct Rules {
    pub count: usize,
    /// Program, table, chain and number of each that drops.
    pub dropped: Vec<(String, Dropped)>,
}

/// Verdict to drop of a rule with the standard target, which has no name.
const DROP: u32 = u32::MAX;
const CHAINS: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// Reads the response about a table (`struct ipt_getinfo`) and its rules (`struct ipt_entry`). A
/// rule that claims more bytes than there are ends it.
pub(crate) fn table(is_ipv6: bool, name: &str, info: &[u8], entries: &[u8]) -> Rules {
    // Sizes of the two match structures differ, and so all offsets behind them.
    let (offsets_at, counters_at) = if is_ipv6 { (140, 152) } else { (88, 96) };
    let program = if is_ipv6 { "ip6tables" } else { "iptables" };
    let mut rules = Rules::default();
    let mut chain = String::new();
    let mut number = 0;

    let mut at = 0;
    while let Some(entry) = entries.get(at..) {
        let offset = |at| {
            u16_at(entry, at)
                .map(usize::from)
                .filter(|offset| *offset > 0)
        };
        let (Some(target), Some(next)) = (offset(offsets_at), offset(offsets_at + 2)) else {
            break;
        };
        // Offsets come from the kernel, but the parser is fuzzed with any bytes.
        let Some(target) = entry.get(target..next) else {
            break;
        };

        if let Some(begins) = hook_at(info, HOOKS, at) {
            chain = begins.to_owned();
            number = 0;
        }

        // The policy of a built-in chain is its last entry (`underflow` of `struct ipt_getinfo`).
        let is_policy = hook_at(info, POLICIES, at).is_some();
        number += 1;
        rules.count += usize::from(!is_policy);

        match target_name(target).as_str() {
            // The first of a chain that users made, and the last of all.
            "ERROR" => (chain, number) = (text(target.get(TARGET_BYTES..).unwrap_or_default()), 0),
            kind if drops(kind, target) => {
                let rule = if is_policy {
                    "policy".to_owned()
                } else {
                    format!("rule {number}")
                };
                let amount = |at: usize| {
                    entry
                        .get(at..)?
                        .first_chunk()
                        .map(|bytes| u64::from_ne_bytes(*bytes))
                };
                let [packets, bytes] = [0, 8].map(|at| amount(counters_at + at).unwrap_or(0));
                let chain = printable(&chain);
                rules.dropped.push((
                    format!("{program} {name} {chain} {rule}"),
                    Dropped { packets, bytes },
                ));
            }
            _ => {}
        }

        at = at.saturating_add(next);
    }

    rules
}

const TARGET_BYTES: usize = 32;

fn target_name(target: &[u8]) -> String {
    // `struct xt_entry_target`: a length of two bytes, the name, a revision of one byte.
    text(target.get(2..TARGET_BYTES - 1).unwrap_or_default())
}

fn drops(kind: &str, target: &[u8]) -> bool {
    matches!(kind, "DROP" | "REJECT")
        || kind.is_empty() && u32_at(target, TARGET_BYTES) == Some(DROP)
}

/// Where the offsets of the first rule of each built-in chain, and of its policy, begin in the
/// response about a table.
const HOOKS: usize = 36;
const POLICIES: usize = 56;

/// The built-in chain with this offset, among those the table has.
fn hook_at(info: &[u8], offsets: usize, at: usize) -> Option<&'static str> {
    // `valid_hooks` precedes `hook_entry` in `struct ipt_getinfo`.
    let valid = u32_at(info, HOOKS - 4)?;
    let is_here = |hook: &usize| {
        valid & (1 << hook) != 0
            && u32_at(info, offsets + 4 * hook).is_some_and(|offset| offset as usize == at)
    };
    (0..CHAINS.len()).find(is_here).map(|hook| CHAINS[hook])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule of IPv4 with a target, its argument and a number of packets.
    fn entry(target: &str, argument: &[u8], packets: u64) -> Vec<u8> {
        let mut bytes = vec![0; 112];
        bytes[88..90].copy_from_slice(&112_u16.to_ne_bytes());
        bytes[90..92].copy_from_slice(&176_u16.to_ne_bytes());
        bytes[96..104].copy_from_slice(&packets.to_ne_bytes());
        bytes[104..112].copy_from_slice(&(packets * 100).to_ne_bytes());
        bytes.resize(114, 0);
        bytes.extend(target.as_bytes());
        bytes.resize(144, 0);
        bytes.extend(argument);
        bytes.resize(176, 0);

        bytes
    }

    #[test]
    fn rules_and_policies_that_drop_are_named() {
        let verdict = |code: i32, packets| entry("", &code.to_ne_bytes(), packets);
        let entries = [
            verdict(-1, 7),
            verdict(-2, 900),
            verdict(-1, 3),
            entry("ERROR", b"mine\0", 0),
            entry("REJECT", &[3], 5),
            verdict(-5, 0),
            entry("ERROR", b"ERROR\0", 0),
        ]
        .concat();

        // INPUT begins at the first rule and has the second as its policy; FORWARD has the third.
        let mut info = vec![0; 84];
        for (at, value) in [
            (32, 6_u32),
            (36, 9),
            (40, 0),
            (44, 352),
            (60, 176),
            (64, 352),
        ] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }

        let rules = table(false, "filter", &info, &entries);
        let found: Vec<_> = rules
            .dropped
            .iter()
            .map(|(name, dropped)| (name.as_str(), dropped.packets))
            .collect();

        let expected = [
            ("iptables filter INPUT rule 1", 7),
            ("iptables filter FORWARD policy", 3),
            ("iptables filter mine rule 1", 5),
        ];
        assert_eq!(found, expected);

        for length in 0..entries.len() {
            let _ = (
                table(false, "t", &info, &entries[..length]),
                table(true, "t", &info[..length % 84], &entries[..length]),
            );
        }
    }
}
