//! Facts about one interface from ethtool's netlink family and its ioctl.

use linerate_sys::ethtool::Ethtool;
use linerate_sys::netlink::Family;

use crate::netlink as nl;
use crate::nic::rss;
use crate::prelude::*;

/// One request of the family (`linux/ethtool_netlink.h`).
pub(crate) struct Section {
    command: u8,
    /// The group of facts it is about.
    group: &'static str,
    src: &'static str,
    /// Records the attributes of the response.
    pub read: fn(&mut Recorder<'_>, body: &[u8]),
}

const fn section(
    command: u8,
    group: &'static str,
    src: &'static str,
    read: fn(&mut Recorder<'_>, &[u8]),
) -> Section {
    Section {
        command,
        group,
        src,
        read,
    }
}

/// Requests whose responses have statistics.
const PAUSE_GET: u8 = 21;
const FEC_GET: u8 = 29;

/// All requests.
pub(crate) const SECTIONS: &[Section] = &[
    section(4, "link", "ethtool-nl:LINKMODES_GET", link_modes),
    section(6, "link.up", "ethtool-nl:LINKSTATE_GET", link_state),
    section(15, "ring", "ethtool-nl:RINGS_GET", rings),
    section(17, "chan", "ethtool-nl:CHANNELS_GET", channels),
    section(PAUSE_GET, "pause", "ethtool-nl:PAUSE_GET", pause),
    section(19, "coal", "ethtool-nl:COALESCE_GET", coalesce),
    section(23, "link.eee", "ethtool-nl:EEE_GET", energy),
    section(FEC_GET, "link.fec", "ethtool-nl:FEC_GET", error_correction),
    section(11, "feat", "ethtool-nl:FEATURES_GET", features),
    section(rss::GET, "rss", "ethtool-nl:RSS_GET", rss::response),
];

/// Header flag: with statistics, where the driver has them.
const WITH_STATISTICS: u32 = 4;

/// Requests by both interfaces of ethtool. Both are optional: an old kernel has no netlink family.
pub(crate) struct EthtoolQuery {
    netlink: Option<(NetlinkClient, u16)>,
    ioctl: Option<Ethtool>,
}

impl EthtoolQuery {
    pub(crate) fn open() -> Self {
        let netlink = NetlinkClient::open(Family::Generic)
            .ok()
            .and_then(|mut client| {
                let id = client.generic_family("ethtool")?;
                Some((client, id))
            });
        Self {
            netlink,
            ioctl: Ethtool::open().ok(),
        }
    }

    /// Everything about one interface.
    pub(crate) fn record(&mut self, snapshot: &mut Snapshot, device: &str) {
        for section in SECTIONS {
            self.section(snapshot, device, section);
        }

        if let Some(ioctl) = &self.ioctl {
            let prefix = format!("nic.{device}");
            rss::by_ioctl(
                &mut Recorder::new(snapshot, &*prefix, "ioctl:GRSSH"),
                ioctl,
                device,
            );
            driver(
                &mut Recorder::new(snapshot, &*prefix, "ioctl:GDRVINFO"),
                ioctl,
                device,
            );
            counters(
                &mut Recorder::new(snapshot, &*prefix, "ioctl:GSTATS"),
                ioctl,
                device,
            );
        }
    }

    /// Speed and duplex of the link alone.
    pub(crate) fn link(&mut self, snapshot: &mut Snapshot, device: &str) {
        for section in SECTIONS.iter().filter(|section| section.group == "link") {
            self.section(snapshot, device, section);
        }
    }

    fn section(&mut self, snapshot: &mut Snapshot, device: &str, section: &Section) {
        let mut nic = Recorder::new(snapshot, format!("nic.{device}"), section.src);
        let Some((client, id)) = &mut self.netlink else {
            nic.absent(section.group, Absence::KernelTooOld);
            return;
        };
        match get(client, *id, section.command, device) {
            Ok(body) => (section.read)(&mut nic, &body),
            Err(why) => nic.refused(section.group, &why),
        }
    }
}

fn driver(nic: &mut Recorder<'_>, ioctl: &Ethtool, device: &str) {
    match ioctl.driver_info(device) {
        Ok(info) => {
            for (fact, value) in [
                ("name", info.driver),
                ("version", info.version),
                ("firmware", info.firmware),
                ("bus", info.bus),
            ] {
                if !value.is_empty() && value != "N/A" {
                    nic.set(format!("drv.{fact}"), value);
                }
            }
        }
        Err(error) => nic.refused("drv", &error.into()),
    }
}

fn counters(nic: &mut Recorder<'_>, ioctl: &Ethtool, device: &str) {
    match ioctl.statistics(device) {
        Ok(counters) => {
            for (name, value) in counters {
                // Drivers that print a hierarchy repeat names; the sum of equal names still only
                // grows.
                let fact = format!("drv.{}", name.trim());
                let before = nic.snapshot.counters.get(&nic.key(&fact));
                let sum = before.map_or(0, |counter| counter.v).saturating_add(value);
                nic.count(fact, Some(sum));
            }
        }
        Err(error) => nic.refused("drv.counters", &error.into()),
    }
}

/// The attributes of the response to one request about one device.
fn get(
    client: &mut NetlinkClient,
    family: u16,
    command: u8,
    device: &str,
) -> Result<Vec<u8>, ReadError> {
    let mut header = nl::encoded(2, format!("{device}\0").as_bytes());
    if matches!(command, PAUSE_GET | FEC_GET) {
        nl::push(&mut header, 3, &WITH_STATISTICS.to_ne_bytes());
    }

    let mut body = vec![command, 1, 0, 0];
    // The highest bit of the type is `NLA_F_NESTED` (netlink(7)).
    nl::push(&mut body, 1 | 0x8000, &header);
    Ok(client
        .get(family, &body)?
        .get(4..)
        .unwrap_or_default()
        .to_vec())
}

fn byte(body: &[u8], kind: u16) -> Option<u8> {
    attribute(body, kind)?.first().copied()
}

fn flag(body: &[u8], kind: u16) -> Option<bool> {
    byte(body, kind).map(|byte| byte == 1)
}

fn link_state(nic: &mut Recorder<'_>, body: &[u8]) {
    nic.known("link.up", flag(body, 2));
}

fn rings(nic: &mut Recorder<'_>, body: &[u8]) {
    sizes(
        nic,
        body,
        ["ring.rx", "ring.rx_mini", "ring.rx_jumbo", "ring.tx"],
        "desc",
    );
}

fn channels(nic: &mut Recorder<'_>, body: &[u8]) {
    sizes(
        nic,
        body,
        ["chan.rx", "chan.tx", "chan.other", "chan.combined"],
        "queues",
    );
}

fn energy(nic: &mut Recorder<'_>, body: &[u8]) {
    for (kind, name) in [(4, "active"), (5, "enabled")] {
        nic.known(format!("link.eee.{name}"), flag(body, kind));
    }
}

/// Blocks of forward error correction; an array per counter, its first element the sum of all
/// lanes.
fn error_correction(nic: &mut Recorder<'_>, body: &[u8]) {
    nic.known("link.fec.auto", flag(body, 3));
    let statistics = attribute(body, 5).unwrap_or_default();
    for (kind, name) in [(2, "corrected"), (3, "uncorrectable")] {
        nic.count(format!("link.fec.{name}"), u64_of(statistics, kind));
    }
}

fn link_modes(nic: &mut Recorder<'_>, body: &[u8]) {
    nic.known("link.autoneg", flag(body, 2));
    // `SPEED_UNKNOWN` of linux/ethtool.h is -1.
    let speed_mbps = u32_of(body, 5).filter(|speed| *speed != u32::MAX && *speed != 0);
    nic.known_in("link.speed_mbps", speed_mbps, "Mbit/s");
    // `absent` leaves a value that is known as it is.
    nic.absent("link.speed_mbps", Absence::NotReported);

    // `DUPLEX_UNKNOWN` of linux/ethtool.h, 255, has no name here.
    let duplex =
        byte(body, 6).and_then(|duplex| ["half", "full"].get(usize::from(duplex)).copied());
    nic.or_absent("link.duplex", duplex, Absence::NotReported);

    let modes = |set: &Bitset, only_set: bool| -> Vec<Value> {
        let wanted = set
            .bits
            .iter()
            .filter(|(name, on)| name.contains("base") && (*on || !only_set));
        wanted.map(|(name, _)| name.as_str().into()).collect()
    };
    if let Some(ours) = attribute(body, 3).map(Bitset::parse) {
        // The mask is what the hardware supports, the value what it advertises.
        list(nic, "link.modes.supported", modes(&ours, false));
        list(nic, "link.modes.ours", modes(&ours, true));
        let supports = |name: &str| ours.bits.iter().any(|(known, _)| known == name);
        nic.set("link.autoneg_supported", supports("Autoneg"));
        nic.set(
            "pause.supported",
            pause_words(supports("Pause"), supports("Asym_Pause")),
        );
        nic.set(
            "pause.advertised",
            pause_words(ours.has("Pause"), ours.has("Asym_Pause")),
        );
    }

    if let Some(peer) = attribute(body, 4)
        .map(Bitset::parse)
        .filter(|peer| !peer.bits.is_empty())
    {
        list(nic, "link.modes.peer", modes(&peer, true));
        nic.set(
            "pause.partner",
            pause_words(peer.has("Pause"), peer.has("Asym_Pause")),
        );
    }
}

fn list(nic: &mut Recorder<'_>, fact: &str, values: Vec<Value>) {
    nic.known(fact, (!values.is_empty()).then_some(Value::List(values)));
}

/// Text of ethtool(8) for the two bits of an advertisement.
const fn pause_words(pause: bool, asymmetric: bool) -> &'static str {
    match (pause, asymmetric) {
        (false, false) => "No",
        (true, false) => "Symmetric",
        (false, true) => "Transmit-only",
        (true, true) => "Symmetric Receive-only",
    }
}

/// Four sizes: what the device could, and what is set.
fn sizes(nic: &mut Recorder<'_>, body: &[u8], names: [&str; 4], unit: &str) {
    for (first_kind, which) in [(2, "max"), (6, "cur")] {
        for (kind, fact) in (first_kind..).zip(names) {
            let fact = format!("{fact}.{which}");
            nic.known_in(&fact, u32_of(body, kind).filter(|size| *size > 0), unit);
            nic.absent(fact, Absence::UnsupportedByDriver);
        }
    }
}

fn pause(nic: &mut Recorder<'_>, body: &[u8]) {
    for (kind, fact) in [(2, "autoneg"), (3, "rx"), (4, "tx")] {
        nic.known(format!("pause.{fact}"), flag(body, kind));
    }

    let statistics = attribute(body, 5).unwrap_or_default();
    for (kind, name) in [(2, "pause_tx_frames"), (3, "pause_rx_frames")] {
        // Drivers without this tally send all ones.
        let frames = u64_of(statistics, kind).filter(|frames| *frames != u64::MAX);
        nic.count(format!("drv.{name}"), frames);
    }
}

fn coalesce(nic: &mut Recorder<'_>, body: &[u8]) {
    for (kind, fact) in [
        (2, "rx_usecs"),
        (3, "rx_frames"),
        (6, "tx_usecs"),
        (7, "tx_frames"),
    ] {
        let value = u32_of(body, kind);
        nic.or_absent(format!("coal.{fact}"), value, Absence::UnsupportedByDriver);
    }

    nic.known("coal.adaptive_rx", flag(body, 11));
}

/// Features under the names ethtool(8) prints, where it has its own for one of the kernel's.
const FEATURE_NAMES: [(&str, &str); 9] = [
    ("rx-checksum", "rx-checksumming"),
    ("tx-generic-segmentation", "generic-segmentation-offload"),
    ("rx-gro", "generic-receive-offload"),
    ("rx-lro", "large-receive-offload"),
    ("rx-vlan-hw-parse", "rx-vlan-offload"),
    ("tx-vlan-hw-insert", "tx-vlan-offload"),
    ("rx-ntuple-filter", "ntuple-filters"),
    ("rx-hashing", "receive-hashing"),
    ("netns-local", "netns-local"),
];
/// Features ethtool(8) sums up: on when any of theirs is on.
const FEATURE_GROUPS: [(&str, &[&str]); 3] = [
    (
        "tx-checksumming",
        &[
            "tx-checksum-ipv4",
            "tx-checksum-ip-generic",
            "tx-checksum-ipv6",
            "tx-checksum-fcoe-crc",
            "tx-checksum-sctp",
        ],
    ),
    (
        "scatter-gather",
        &["tx-scatter-gather", "tx-scatter-gather-fraglist"],
    ),
    (
        "tcp-segmentation-offload",
        &[
            "tx-tcp-segmentation",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-tcp6-segmentation",
        ],
    ),
];

fn features(nic: &mut Recorder<'_>, body: &[u8]) {
    let set = |kind| attribute(body, kind).map(Bitset::parse).unwrap_or_default();
    let hardware = set(2);
    let wanted = set(3);
    let active = set(4);
    let unchangeable = set(5);
    for (name, changeable) in &hardware.bits {
        let on = active.has(name);
        let fixed = !changeable || unchangeable.has(name);
        let words = match (on, fixed, wanted.has(name)) {
            (true, true, _) => "on [fixed]",
            (false, true, _) => "off [fixed]",
            (true, false, false) => "on [requested off]",
            (false, false, true) => "off [requested on]",
            (true, false, true) => "on",
            (false, false, false) => "off",
        };

        let shown = FEATURE_NAMES
            .iter()
            .find(|(kernel, _)| kernel == name)
            .map_or(name.as_str(), |(_, shown)| shown);
        nic.set(format!("feat.{shown}"), words);
    }

    for (group, members) in FEATURE_GROUPS {
        let any = members.iter().any(|name| active.has(name));
        nic.set(format!("feat.{group}"), if any { "on" } else { "off" });
    }
}
