//! The firewall: number of rules, packets they drop, and whether connections are tracked.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use linerate_model::printable::printable;
use linerate_sys::netlink::Family;
use linerate_sys::{process, xtables};

use crate::kernel::iptables::{self, Dropped};
use crate::prelude::*;

const SRC: &str = "netfilter:GETRULE";
const KEY: &str = "svc.firewall_rules";

/// Records rules and what they drop, tables of the older firewall, and the use of connection
/// tracking.
pub(crate) fn record(snapshot: &mut Snapshot) {
    let tables = older_tables();
    if let Ok(tables) = tables.as_ref().map(|tables| {
        tables
            .iter()
            .map(|(_, name)| name.as_str())
            .collect::<Vec<_>>()
    }) && !tables.is_empty()
    {
        snapshot.set(
            "svc.firewall_tables",
            tables.join(" "),
            "procfs:ip_tables_names",
        );
    }

    let rules = rules().and_then(|mut rules| {
        for (is_ipv6, name) in tables? {
            let table = xtables::table(is_ipv6, &name)?;
            rules.add_older(&iptables::table(
                is_ipv6,
                &name,
                &table.info,
                &table.entries,
            ));
        }

        Ok(rules)
    });
    match rules {
        Ok(rules) => rules.record(snapshot),
        Err(why) => ["firewall.drops", KEY]
            .iter()
            .for_each(|key| record_absent(snapshot, key, &why, SRC)),
    }

    // The kernel tracks nothing before a rule requires it, so one entry is enough.
    let entries = snapshot.number("limits.conntrack.count");
    snapshot.set(
        "svc.conntrack",
        entries.is_some_and(|entries| entries > 0.0),
        "procfs:sys",
    );
}

/// Tables of iptables' own kernel part, and whether each is one of IPv6; none where it is not
/// loaded.
fn older_tables() -> Result<Vec<(bool, String)>, ReadError> {
    let mut tables = Vec::new();
    for (is_ipv6, file) in [
        (false, "/proc/net/ip_tables_names"),
        (true, "/proc/net/ip6_tables_names"),
    ] {
        match fs::read_to_string(file) {
            Ok(text) => tables.extend(
                text.split_whitespace()
                    .map(|name| (is_ipv6, name.to_owned())),
            ),
            // Absent files mean that the older firewall is not loaded; a refusal means that its
            // rules are unknown.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(ReadError::file(file, &error));
            }
            Err(_) => {}
        }
    }

    Ok(tables)
}

/// Rules of nftables, which iptables writes as well since 1.8, and the policies of its chains.
fn rules() -> Result<Rules, ReadError> {
    /// Subsystem and messages of `linux/netfilter/nf_tables.h`.
    const GET_CHAIN: u16 = 10 << 8 | 4;

    const GET_RULE: u16 = 10 << 8 | 7;

    let mut rules = Rules::default();
    if !is_loaded() {
        return Ok(rules);
    }

    // All families, version 0, no resource.
    let all = |kind| match dump(Family::Netfilter, kind, &[0; 4]) {
        (found, None) => Ok(found),
        // A partial list would claim that nothing drops.
        (_, Some(why)) => Err(why),
    };
    for rule in all(GET_RULE)? {
        rules.count += 1;
        rules.add(drops_of_rule(&rule));
    }

    all(GET_CHAIN)?
        .iter()
        .for_each(|chain| rules.add(drops_of_policy(chain)));
    Ok(rules)
}

/// Drops of the firewall.
#[derive(Default)]
struct Rules {
    count: usize,
    /// Drops of each rule or policy with a counter.
    dropped: Vec<(String, Dropped)>,
    has_uncounted: bool,
}

/// A rule or policy that drops: its name, and how much where it is counted.
type Drops = (String, Option<Dropped>);

impl Rules {
    fn add(&mut self, drops: Option<Drops>) {
        match drops {
            Some((name, Some(dropped))) => self.dropped.push((name, dropped)),
            Some((_, None)) => self.has_uncounted = true,
            None => {}
        }
    }

    /// Rules of iptables' own kernel part always have a counter.
    fn add_older(&mut self, table: &iptables::Rules) {
        self.count += table.count;
        self.dropped.extend(table.dropped.iter().cloned());
    }

    fn record(&self, snapshot: &mut Snapshot) {
        /// Rules that are recorded, those that dropped most first.
        const RECORDED_MAX: usize = 64;

        snapshot.set(KEY, self.count, SRC);
        snapshot.count(
            "firewall.drops",
            self.dropped
                .iter()
                .map(|(_, dropped)| dropped.packets)
                .sum(),
        );
        snapshot.count(
            "firewall.drop_bytes",
            self.dropped.iter().map(|(_, dropped)| dropped.bytes).sum(),
        );
        snapshot.set("firewall.uncounted_drops", self.has_uncounted, SRC);

        let mut most: Vec<_> = self.dropped.iter().collect();
        most.sort_by_key(|(_, dropped)| std::cmp::Reverse(dropped.packets));
        let first = most.first().filter(|(_, dropped)| dropped.packets > 0);
        snapshot.set_known(
            "firewall.rule.drops",
            first.map(|(name, _)| name.as_str()),
            SRC,
        );

        for (name, dropped) in most.into_iter().take(RECORDED_MAX) {
            snapshot.count(format!("firewall.rule.{name}.drops"), dropped.packets);
        }
    }
}

fn drops_of_rule(payload: &[u8]) -> Option<Drops> {
    const CHAIN: u16 = 2;
    const HANDLE: u16 = 3;
    const EXPRESSIONS: u16 = 4;

    // The attributes follow the 4 bytes of `struct nfgenmsg`.
    let body = payload.get(4..)?;
    let dropped = dropped(attribute(body, EXPRESSIONS)?)?;
    // nf_tables attributes are in network byte order (linux/netfilter/nf_tables.h).
    let handle = u64::from_be(u64_of(body, HANDLE)?);
    Some((
        format!("{} handle {handle}", place(payload, CHAIN)?),
        dropped,
    ))
}

fn drops_of_policy(payload: &[u8]) -> Option<Drops> {
    const NAME: u16 = 3;
    const POLICY: u16 = 5;
    const COUNTERS: u16 = 8;

    let body = payload.get(4..)?;
    let _ = u32_of(body, POLICY).filter(|policy| *policy == DROP)?;
    Some((
        format!("{} policy", place(payload, NAME)?),
        attribute(body, COUNTERS).and_then(counted),
    ))
}

/// Family, table and chain of a rule or chain, as nft(8) takes them; none for ARP, which carries no
/// payload of a test.
fn place(payload: &[u8], chain: u16) -> Option<String> {
    const TABLE: u16 = 1;

    // The numbers are `NFPROTO_*` of linux/netfilter.h.
    let family = match payload.first()? {
        1 => "inet",
        2 => "ip",
        5 => "netdev",
        7 => "bridge",
        10 => "ip6",
        _ => return None,
    };
    let body = payload.get(4..)?;
    let name = |kind| Some(printable(&text(attribute(body, kind)?)));

    Some(format!("{family} {} {}", name(TABLE)?, name(chain)?))
}

/// `NF_DROP`, the same in either order of bytes.
const DROP: u32 = 0;

/// True if a rule ends with a drop, and its last counter, unless a condition follows the counter.
#[expect(
    clippy::option_option,
    reason = "a rule that drops may have no counter"
)]
fn dropped(expressions: &[u8]) -> Option<Option<Dropped>> {
    const NAME: u16 = 1;
    const DATA: u16 = 2;

    let mut last = None;
    for (_, expression) in attributes(expressions) {
        let data = attribute(expression, DATA).unwrap_or_default();
        match text(attribute(expression, NAME)?).as_str() {
            // Counts packets that reached this place: a condition behind it lets some of them pass,
            // so the counter is void then.
            "counter" => last = counted(data),
            // `log` has no verdict: packets continue with the next expression.
            "log" => {}
            "reject" => return Some(last),
            "immediate" if is_drop(data) == Some(true) => return Some(last),
            // An extension of iptables.
            "target"
                if attribute(data, NAME)
                    .map(text)
                    .is_some_and(|name| name == "DROP" || name == "REJECT") =>
            {
                return Some(last);
            }
            _ => last = None,
        }
    }

    None
}

/// Values of a counter.
fn counted(counter: &[u8]) -> Option<Dropped> {
    const BYTES: u16 = 1;
    const PACKETS: u16 = 2;

    let number = |kind| u64_of(counter, kind).map(u64::from_be);
    Some(Dropped {
        packets: number(PACKETS)?,
        bytes: number(BYTES)?,
    })
}

/// True if an expression puts the verdict to drop into its register.
fn is_drop(immediate: &[u8]) -> Option<bool> {
    const REGISTER: u16 = 1;
    const VERDICT_REGISTER: u32 = 0;
    const DATA: u16 = 2;
    const VERDICT: u16 = 2;
    const CODE: u16 = 1;

    let verdict = attribute(attribute(immediate, DATA)?, VERDICT)?;
    Some(u32_of(immediate, REGISTER)? == VERDICT_REGISTER && u32_of(verdict, CODE)? == DROP)
}

/// Parses the bytes as a rule and as a chain. Only for fuzzing.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode_anything(payload: &[u8]) {
    let _ = (drops_of_rule(payload), drops_of_policy(payload));
}

/// A request for tables makes the kernel load the module, which would change the system.
fn is_loaded() -> bool {
    const NAME: &str = "nf_tables";

    let as_module = Path::new("/sys/module").join(NAME).exists();
    // A kernel without modules cannot load one.
    as_module || !Path::new("/proc/modules").exists() || {
        let builtin = format!("/lib/modules/{}/modules.builtin", process::uname().release);
        fs::read_to_string(builtin).is_ok_and(|text| text.contains(&format!("/{NAME}.ko")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::push;
    use linerate_model::snapshot::Source;

    fn nested(parts: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        parts
            .iter()
            .for_each(|(kind, content)| push(&mut bytes, *kind, content));
        bytes
    }

    fn expression(name: &str, data: &[u8]) -> Vec<u8> {
        nested(&[(1, name.as_bytes()), (2, data)])
    }

    fn counter(packets: u64) -> Vec<u8> {
        nested(&[(1, &9_u64.to_be_bytes()), (2, &packets.to_be_bytes())])
    }

    /// A rule of the chain `input` of the table `filter`.
    fn rule(family: u8, handle: u64, expressions: &[Vec<u8>]) -> Vec<u8> {
        let list: Vec<_> = expressions
            .iter()
            .map(|expression| (1, expression.as_slice()))
            .collect();
        let mut payload = vec![family, 0, 0, 0];
        let handle = handle.to_be_bytes();
        payload.extend(nested(&[
            (1, b"filter\0"),
            (2, b"input\0"),
            (3, &handle),
            (4, &nested(&list)),
        ]));

        payload
    }

    /// An immediate verdict: `u32::MAX` jumps, 1 accepts.
    fn verdict(code: u32) -> Vec<u8> {
        let data = nested(&[(2, &nested(&[(1, &code.to_be_bytes())]))]);
        expression(
            "immediate",
            &nested(&[(1, &0_u32.to_be_bytes()), (2, &data)]),
        )
    }

    #[test]
    fn packets_count_where_the_counter_precedes_the_drop() {
        let [counted, log, limit] = [
            expression("counter", &counter(7)),
            expression("log", &[]),
            expression("limit", &[]),
        ];
        let target = expression("target", &nested(&[(1, b"REJECT\0")]));

        let rows = [
            (
                vec![limit.clone(), counted.clone(), log, verdict(DROP)],
                Some(Some(7)),
            ),
            (
                vec![counted.clone(), expression("reject", &[])],
                Some(Some(7)),
            ),
            (vec![counted.clone(), target], Some(Some(7))),
            (vec![counted.clone(), limit, verdict(DROP)], Some(None)),
            (vec![verdict(DROP), counted.clone()], Some(None)),
            (vec![counted.clone(), verdict(1)], None),
            (vec![counted, verdict(u32::MAX)], None),
            (vec![], None),
        ];
        for (expressions, expected) in rows {
            let payload = rule(1, 4, &expressions);
            let found = drops_of_rule(&payload);
            let packets = found
                .as_ref()
                .map(|(_, dropped)| dropped.map(|dropped| dropped.packets));
            assert_eq!(packets, expected, "{expressions:?}");
            assert!(found.is_none_or(|(name, _)| name == "inet filter input handle 4"));

            for length in 0..payload.len() {
                let _ = drops_of_rule(&payload[..length]);
            }
        }

        assert_eq!(drops_of_rule(&rule(3, 4, &[verdict(DROP)])), None, "ARP");
    }

    #[test]
    fn policy_drops_with_or_without_a_counter() {
        let chain = |policy: u32, counters: &[u8]| {
            let mut payload = vec![7, 0, 0, 0];
            payload.extend(nested(&[
                (1, b"t\0"),
                (3, b"f\0"),
                (5, &policy.to_be_bytes()),
            ]));
            payload.extend(counters);
            payload
        };
        let counted = nested(&[(8, &counter(3))]);
        let dropped = Dropped {
            packets: 3,
            bytes: 9,
        };
        assert_eq!(
            drops_of_policy(&chain(DROP, &counted)),
            Some(("bridge t f policy".into(), Some(dropped)))
        );
        assert_eq!(
            drops_of_policy(&chain(DROP, &[])),
            Some(("bridge t f policy".into(), None))
        );
        assert_eq!(drops_of_policy(&chain(1, &counted)), None);
    }

    #[test]
    fn drops_are_recorded_by_rule() {
        let mut rules = Rules::default();
        for (name, packets) in [
            ("ip a b handle 1", Some(2)),
            ("ip a b handle 2", Some(40)),
            ("ip a b policy", None),
        ] {
            rules.add(Some((
                name.to_owned(),
                packets.map(|packets| Dropped {
                    packets,
                    bytes: 100 * packets,
                }),
            )));
        }

        let mut snapshot = Snapshot::new("a", Source::Live);
        rules.record(&mut snapshot);
        assert_eq!(
            ["drops", "drop_bytes"].map(|end| snapshot.counters[&format!("firewall.{end}")].v),
            [42, 4200]
        );
        assert_eq!(
            snapshot.counters["firewall.rule.ip a b handle 1.drops"].v,
            2
        );
        assert_eq!(
            snapshot.text("firewall.rule.drops"),
            Some("ip a b handle 2")
        );
        assert_eq!(snapshot.flag("firewall.uncounted_drops"), Some(true));
    }
}
