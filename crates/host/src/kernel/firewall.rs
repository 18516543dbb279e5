//! Whether a firewall processes every packet: number of rules, and whether connections are tracked.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use linerate_model::snapshot::{Absence, Snapshot};
use linerate_sys::netlink::Family;
use linerate_sys::process;

use crate::error::{ReadError, record_absent};
use crate::netlink::client::dump;

const SRC: &str = "netfilter:GETRULE";
const KEY: &str = "svc.firewall_rules";

/// Records rules, tables of the older firewall, and the use of connection tracking.
pub(crate) fn record(snapshot: &mut Snapshot) {
    match older_tables() {
        Ok(tables) if tables.is_empty() => match rules() {
            Ok(rules) => snapshot.set(KEY, rules, SRC),
            Err(why) => record_absent(snapshot, KEY, &why, SRC),
        },
        Ok(tables) => {
            snapshot.set("svc.firewall_tables", tables.join(" "), "procfs:ip_tables_names");
            // Only its own program can count its rules.
            snapshot.set_absent(KEY, Absence::NotReported, None, "procfs:ip_tables_names");
        }
        Err(absence) => snapshot.set_absent(KEY, absence, None, "procfs:ip_tables_names"),
    }
    // The kernel tracks nothing before a rule requires it, so one entry is enough.
    let entries = snapshot.number("limits.conntrack.count");
    snapshot.set("svc.conntrack", entries.is_some_and(|entries| entries > 0.0), "procfs:sys");
}

/// Tables of iptables' own kernel part; none where it is not loaded.
fn older_tables() -> Result<Vec<String>, Absence> {
    let mut tables = Vec::new();
    for file in ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"] {
        match fs::read_to_string(file) {
            Ok(text) => tables.extend(text.split_whitespace().map(str::to_owned)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(Absence::Permission),
            Err(_) => {}
        }
    }
    Ok(tables)
}

/// Rules of nftables, which iptables writes as well since 1.8.
fn rules() -> Result<usize, ReadError> {
    /// Subsystem and message of `linux/netfilter/nf_tables.h`.
    const GET_RULE: u16 = 10 << 8 | 7;
    if !is_loaded() {
        return Ok(0);
    }
    // All families, version 0, no resource.
    match dump(Family::Netfilter, GET_RULE, &[0; 4]) {
        (rules, None) => Ok(rules.len()),
        (_, Some(why)) => Err(why),
    }
}

/// A request for tables makes the kernel load the module, which would change the system.
fn is_loaded() -> bool {
    const NAME: &str = "nf_tables";
    let as_module = Path::new("/sys/module").join(NAME).exists();
    as_module || !Path::new("/proc/modules").exists() || {
        let builtin = format!("/lib/modules/{}/modules.builtin", process::uname().release);
        fs::read_to_string(builtin).is_ok_and(|text| text.contains(&format!("/{NAME}.ko")))
    }
}
