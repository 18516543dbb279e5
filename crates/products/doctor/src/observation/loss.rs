//! Parts of the datagrams that a test lost, by the counters of both hosts.

use linerate_model::finding::LossSplit;
use linerate_model::snapshot::Snapshot;

use crate::arithmetic::to_f64;
use crate::classes::Class;
use crate::drops::{COUNTED, SAMPLE_PERIOD, of_host};
use crate::judge::with_derived;
use crate::observed::Observed;
use crate::scope::{Facts, Host};
use crate::timeline::RunFacts;

/// Where the datagrams of a test were lost: the number of the run and its parts.
pub(super) fn loss(observed: &[Observed], runs: &[Option<RunFacts>; 2]) -> Vec<(usize, LossSplit)> {
    with_derived(observed, |scope| {
        let client = scope.hosts.first();
        let server = scope.hosts.get(1);
        // The first run is forward, in which the client sends.
        let ends = [(client, server), (server, client)];
        let existing = runs.iter().zip(ends).filter(|(run, _)| run.is_some());

        let split = |(index, (run, (sender, receiver))): (usize, (&Option<RunFacts>, _))| {
            Some((index, of_run(run.as_ref()?, sender, receiver)?))
        };
        existing.enumerate().filter_map(split).collect()
    })
}

fn of_run(
    run: &RunFacts,
    sender: Option<&Host<'_>>,
    receiver: Option<&Host<'_>>,
) -> Option<LossSplit> {
    let number = |name: &str| run.get(name)?.number();
    let label = run.get("label").map(ToString::to_string);

    Some(split_loss(LossSplit {
        label: label.unwrap_or_default(),
        lost: whole(number("lost_packets")?),
        sender: sender.and_then(|host| sender_drops(host, number("sent_packets"))),
        nic: receiver.and_then(nic_drops),
        backlog: receiver.and_then(|host| growth(host, &["softnet.dropped"])),
        firewall: receiver.and_then(|host| firewall_drops(host, number("block_len_bytes"))),
        socket: receiver.and_then(socket_drops),
        kernel: receiver.and_then(kernel_drops),
        ..LossSplit::default()
    }))
}

/// Records the parts of the lost datagrams with every run; a part whose counters were not read is
/// absent.
pub(super) fn record_loss(snapshot: &mut Snapshot, loss: &[(usize, LossSplit)]) {
    for (run, split) in loss {
        for (place, lost) in [
            ("network", Some(split.network)),
            ("sender", split.sender),
            ("nic", split.nic),
            ("backlog", split.backlog),
            ("firewall", split.firewall),
            ("socket", split.socket),
            ("kernel", split.kernel),
        ] {
            snapshot.set_known(format!("run.{run}.lost_in_{place}"), lost, "test");
        }
    }
}

/// Completes the parts of the lost datagrams, what sender and receiver disagree on; they are
/// counters over the same period.
///
/// `None` is a counter that was not read; its share is then attributed to the network, from which
/// it cannot be distinguished. Counters of a whole host may include other traffic, so no part
/// exceeds what is left.
fn split_loss(mut split: LossSplit) -> LossSplit {
    split.network = split.lost;
    let LossSplit {
        socket,
        firewall,
        backlog,
        nic,
        sender,
        kernel,
        network,
        ..
    } = &mut split;
    for part in [socket, firewall, backlog, nic, kernel, sender]
        .into_iter()
        .flatten()
    {
        *part = (*part).min(*network);
        *network -= *part;
    }

    split
}

fn whole(number: f64) -> u64 {
    // A float cast saturates.
    number.max(0.0) as u64
}

/// Growth of the first counters that were read.
fn growth(host: &Host<'_>, keys: &[&str]) -> Option<u64> {
    host.period?;
    host.growth_of(keys).ok().map(|growth| growth.value)
}

/// Datagrams that the firewall dropped. The kernel may have joined several to one packet, which has
/// one header.
fn firewall_drops(host: &Host<'_>, payload_bytes: Option<f64>) -> Option<u64> {
    // 20 bytes of IPv4 and 8 of UDP.
    const HEADER_BYTES: f64 = 28.0;
    // A rule without a counter of its own is known by its drops alone.
    let by_reason = drops_in(host, |place| place == "firewall");
    let packets = growth(host, &["firewall.drops"]).max(by_reason)?;
    // Without a count of bytes each dropped packet is one datagram.
    let bytes = growth(host, &["firewall.drop_bytes"]).unwrap_or(0);
    let payload = to_f64(bytes) - HEADER_BYTES * to_f64(packets);
    Some(packets.max(payload_bytes.map_or(0, |each| whole(payload / each))))
}

/// Drops of all sockets, because those of a socket are last read before it is closed; none where no
/// socket of the test dropped.
fn socket_drops(host: &Host<'_>) -> Option<u64> {
    let own = host.own_socket_drops().filter(|drops| *drops == 0);
    own.or_else(|| {
        growth(
            host,
            &["net.snmp.Udp.RcvbufErrors", "net.snmp6.Udp6RcvbufErrors"],
        )
    })
}

/// Drops of the kernel in places that have no counter among the parts.
fn kernel_drops(host: &Host<'_>) -> Option<u64> {
    drops_in(host, |place| !COUNTED.contains(&place))
}

/// Drops of the kernel by their place; `None` where they were not watched.
fn drops_in(host: &Host<'_>, is_wanted: impl Fn(&str) -> bool) -> Option<u64> {
    host.number(SAMPLE_PERIOD).ok()?;
    let drops = of_host(host.name(), host.snapshot, host.period?);
    let wanted = drops
        .iter()
        .filter(|drop| drop.place.as_deref().is_some_and(&is_wanted));
    Some(wanted.map(|drop| drop.packets).fold(0, u64::saturating_add))
}

fn nic_drops(host: &Host<'_>) -> Option<u64> {
    host.period?;
    let drops: Vec<u64> = host
        .nics()
        .filter_map(|nic| nic.class_growth(Class::RxRingFull).ok())
        .map(|growth| growth.value)
        .collect();
    (!drops.is_empty()).then(|| drops.iter().sum())
}

/// Datagrams the sender's own socket or queueing discipline refused. The kernel counts packets,
/// each of which may be several datagrams that it cuts later, and a packet that the discipline
/// dropped at the socket as well.
fn sender_drops(host: &Host<'_>, datagrams: Option<f64>) -> Option<u64> {
    let socket = growth(
        host,
        &["net.snmp.Udp.SndbufErrors", "net.snmp6.Udp6SndbufErrors"],
    );
    let queues = host
        .nics()
        .filter_map(|nic| growth(host, &[&nic.key("qdisc.root.drops")]));
    let dropped = socket.max(queues.reduce(u64::saturating_add))?;

    let sent = growth(
        host,
        &["net.snmp.Udp.OutDatagrams", "net.snmp6.Udp6OutDatagrams"],
    )
    .unwrap_or(0);
    let packets = to_f64(sent.saturating_add(socket.unwrap_or(0)));
    let joined = datagrams
        .filter(|_| packets > 0.0)
        .map_or(1.0, |datagrams| (datagrams / packets).max(1.0));

    Some(whole(to_f64(dropped) * joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lost_datagram_is_counted_once() {
        let parts = |lost, sender, nic, socket| {
            let split = split_loss(LossSplit {
                lost,
                sender,
                nic,
                socket,
                ..LossSplit::default()
            });
            (split.sender, split.nic, split.socket, split.network)
        };
        assert_eq!(
            parts(1000, Some(10), Some(200), Some(600)),
            (Some(10), Some(200), Some(600), 190)
        );

        // Drops of other traffic do not count.
        assert_eq!(
            parts(100, None, Some(5000), Some(60)),
            (None, Some(40), Some(60), 0)
        );
        assert_eq!(parts(7, None, None, None), (None, None, None, 7));
    }
}
