//! The bus behind the NIC.

use crate::rules::prelude::*;

rules! {
    Nic pci_01,
    Scope pci_02,
    Scope pci_03,
    Nic pci_04,
    Nic pci_05,
}

/// Maximum payload of the packets on the bus where it cannot be read: the smallest, so that nothing
/// is promised.
const MAX_PAYLOAD_BYTES: f64 = 128.0;

fn express(nic: &Nic<'_>) -> Result<(Reading<f64>, Reading<f64>), NoMatch> {
    nic.wired()?;
    let speed = nic.number_if_any("pci.cur_speed_gts", "not behind a PCI Express link")?;
    let width = nic.number_if_any("pci.cur_width", "not behind a PCI Express link")?;
    Ok((speed, width))
}

fn pci_01(nic: &Nic<'_>) -> Ruling {
    let (speed, width) = express(nic)?;
    let max_speed = nic.number("pci.max_speed_gts")?;
    let max_width = nic.number("pci.max_width")?;
    let best = |own: &Reading<f64>, upstream: &str| {
        // A bridge that is not known sets no bound.
        nic.number(upstream)
            .map_or(own.value, |upstream| own.value.min(upstream.value))
    };
    let best_speed = best(&max_speed, "pci.upstream_max_speed_gts");
    let best_width = best(&max_width, "pci.upstream_max_width");
    require(
        speed < best_speed || width < best_width,
        format!("{speed} GT/s x{width}: what card and slot can do"),
    )?;

    Ok(matched()
        .read(&speed, format!("{best_speed} GT/s"))
        .read(&width, format!("x{best_width}"))
        .advice(
            "read it again under load; then reseat the card or use another slot; verify with lspci \
             -vv, LnkSta",
        ))
}

fn pci_02(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let noted = scope.of_hosts_with("cards.pci.speed_gts", "card", noted_slot);
    scope.of_nics(small_slot).chain(noted).collect()
}

fn small_slot(nic: &Nic<'_>) -> Ruling {
    let (speed, width) = express(nic)?;
    let usable = usable_bps(&speed, &width, max_payload_bytes(nic))?;
    // What the port could do is enough; what it does today may be less.
    let port = nic
        .number("link.max_speed_mbps")
        .or_else(|_| nic.speed_mbps())?;
    // Flow control and descriptors take about five per cent beside the payload.
    let need = 1.05 * port.value * 1e6;
    require(
        usable < need,
        format!(
            "{} carries about {:.2} Gbit/s, the port needs {}",
            name(&speed, &width),
            usable / 1e9,
            port.value / 1000.0
        ),
    )?;

    Ok(matched()
        .read(
            &speed,
            format!("with x{width} it carries {:.2} Gbit/s", usable / 1e9),
        )
        .read(&width, "wide enough for the port")
        .read(&port, "speed of the port, Mbit/s")
        .advice("use a wider or faster slot"))
}

fn max_payload_bytes(nic: &Nic<'_>) -> f64 {
    nic.number("pci.mps_bytes")
        .map_or(MAX_PAYLOAD_BYTES, |mps| mps.value)
}

fn usable_bps(
    speed: &Reading<f64>,
    width: &Reading<f64>,
    max_payload_bytes: f64,
) -> Result<f64, NoMatch> {
    pcie_usable_bps(speed.value, width.value, max_payload_bytes)
        .or_unknown(&speed.key, "not a speed of PCI Express")
}

fn name(speed: &Reading<f64>, width: &Reading<f64>) -> String {
    match pcie_generation(speed.value) {
        Some(generation) => format!("Gen{generation} x{width}"),
        None => format!("{speed} GT/s x{width}"),
    }
}

/// The slot of a card that was only described, with both ports in use.
fn noted_slot(host: &Host<'_>) -> Ruling {
    let speed = host.number("cards.pci.speed_gts")?;
    let width = host.number("cards.pci.width")?;
    let port = host.number("cards.port_mbps")?;
    let ports = host.number("cards.ports_in_use")?;
    let usable = usable_bps(&speed, &width, MAX_PAYLOAD_BYTES)?;
    let need = 1.05 * port.value * ports.value * 1e6;
    require(usable < need, format!("carries {:.1} Gbit/s", usable / 1e9))?;

    Ok(matched()
        .read(
            &speed,
            format!("with x{width} it carries {:.1} Gbit/s", usable / 1e9),
        )
        .read(&port, format!("{ports} such ports in use"))
        .cap(Confidence::Medium)
        .advice("use one port per card, or a wider slot"))
}

fn pci_03(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let noted = scope.of_hosts_with("cards.same_card_bps", "card", shared_card_noted);
    noted.chain(scope.of_nics(shared_card)).collect()
}

/// Throughput with both ports on one card against throughput with two cards, all else equal.
fn shared_card_noted(host: &Host<'_>) -> Ruling {
    let same = host.number("cards.same_card_bps")?;
    let apart = host.number("cards.two_cards_bps")?;
    // Two ports of one card reached 36.2 Gbit/s, of 42.3 over two cards.
    require(same < 0.9 * apart.value, "as fast as over two cards")?;

    let speed = host.number("cards.pci.speed_gts")?;
    let width = host.number("cards.pci.width")?;
    let usable = usable_bps(&speed, &width, MAX_PAYLOAD_BYTES)?;
    let crossing = 2.0 * same.value;
    require(crossing > 0.85 * usable, "the shared link has room")?;

    Ok(matched()
        .because(
            same.key,
            gbits(same.value),
            "at least 0.9 of the rate over two cards",
        )
        .because(
            apart.key,
            gbits(apart.value),
            "the same path over two cards",
        )
        .because(
            "cards.pci",
            gbits(usable),
            format!("{:.1} Gbit/s cross the link in and out", crossing / 1e9),
        )
        .advice("put the two ports on two cards in two slots"))
}

fn shared_card(nic: &Nic<'_>) -> Ruling {
    let (speed, width) = express(nic)?;
    let siblings = nic.number("pci.siblings")?;
    require(siblings > 0.0, "no other port behind the same link")?;

    let slot = nic.text("pci.upstream")?;
    let shares = |other: &Nic<'_>| other.text_is("pci.upstream", slot.value);

    let period = nic.host.period()?;
    let [mut received, mut sent] = [0.0; 2];
    for port in nic.host.nics().filter(shares) {
        received += port.bytes("rx")?;
        sent += port.bytes("tx")?;
    }

    // The link carries both directions at once, each at its full rate.
    let rate = 8.0 * received.max(sent) / period.seconds;
    let usable = usable_bps(&speed, &width, max_payload_bytes(nic))?;
    require(
        rate > 0.85 * usable,
        format!("{:.1} of {:.1} Gbit/s in use", rate / 1e9, usable / 1e9),
    )?;

    Ok(matched()
        .because(slot.key, slot.value, "shared by several ports")
        .because(
            "traffic of these ports in one direction",
            gbits(rate),
            format!("at most 0.85 of {:.1} Gbit/s", usable / 1e9),
        )
        .advice("put the two ports on two cards in two slots"))
}

fn pci_04(nic: &Nic<'_>) -> Ruling {
    let (speed, width) = express(nic)?;
    let payload = nic.number("pci.mps_bytes")?;
    require(payload <= 128.0, format!("{payload} bytes"))?;

    let supported = nic.number("pci.mps_supported_bytes")?;
    require(supported >= 256.0, "the card supports no more")?;
    let bridge = nic
        .number("pci.upstream_mps_supported_bytes")
        .suspect(format!("the card supports {supported} bytes"))?;
    require(bridge >= 256.0, "the bridge supports no more")?;

    let period = nic.host.period()?;
    // Each direction of a PCI Express link has lanes of its own.
    let bytes = nic.bytes("rx")?.max(nic.bytes("tx")?);
    let rate = 8.0 * bytes / period.seconds;
    // A speed of no generation has no limit here, so that nothing is claimed.
    let usable = usable_bps(&speed, &width, payload.value).unwrap_or(f64::INFINITY);
    require(rate > 0.8 * usable, "the bus has room")?;

    Ok(matched()
        .read(&payload, "256 or more")
        .read(&supported, "supported by the card")
        .because(
            "traffic",
            gbits(rate),
            format!(
                "over 0.8 of what the bus carries, {:.1} Gbit/s",
                usable / 1e9
            ),
        )
        .advice("boot with pci=pcie_bus_perf; remove it to undo"))
}

fn pci_05(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let speed = nic.speed_mbps()?;
    require(
        speed >= 25_000.0,
        format!("{speed} Mbit/s: no effect below 25000 Mbit/s"),
    )?;

    let translation = nic
        .text("pci.iommu")
        .or_else(|_| nic.host.text("iommu.mode"))?;
    require(
        translation == "strict",
        format!("the IOMMU is {translation}"),
    )?;
    Ok(matched()
        .read(&speed, "25000 and more")
        .read_text(&translation, "passthrough or lazy")
        .advice("boot with iommu=pt; remove it to undo"))
}
