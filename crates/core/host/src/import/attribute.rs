//! Facts of an interface that do not name it: PCI devices and interrupts. It is attached
//! when all is read, so the order of the blocks does not matter.

use crate::kernel::procfs::Interrupt;
use crate::prelude::*;

/// Facts not yet attributed to an interface.
#[derive(Default)]
pub(super) struct UnattributedFacts {
    /// Address, fact below the interface, value, source.
    facts: Vec<(String, String, Value, String)>,
    sysfs: Vec<String>,
    interrupts: Vec<(Option<String>, Interrupt)>,
}

/// More than any machine has; a text that repeats itself stops here.
const LOOSE_MAX: usize = 100_000;

impl UnattributedFacts {
    pub(super) fn fact(&mut self, address: &str, fact: &str, value: impl Into<Value>, src: &str) {
        if self.facts.len() < LOOSE_MAX {
            let fact = (
                address.to_owned(),
                fact.to_owned(),
                value.into(),
                src.to_owned(),
            );
            self.facts.push(fact);
        }
    }

    /// A device whose attributes were listed; what is not among them does not exist.
    pub(super) fn seen_in_sysfs(&mut self, address: &str) {
        if self.sysfs.len() < LOOSE_MAX && !self.sysfs.iter().any(|known| known == address) {
            self.sysfs.push(address.to_owned());
        }
    }

    /// An interrupt line; `device` is what the command was searching for.
    pub(super) fn interrupt(&mut self, device: Option<&str>, interrupt: Interrupt) {
        if self.interrupts.len() < LOOSE_MAX {
            self.interrupts.push((device.map(str::to_owned), interrupt));
        }
    }

    pub(super) fn attach(mut self, snapshot: &mut Snapshot) {
        // Two sources of one fact: the kernel's own attributes come last and win, whatever was
        // pasted first.
        self.facts.sort_by(|a, b| a.3.cmp(&b.3));
        let names: Vec<String> = snapshot
            .interfaces()
            .into_iter()
            .map(str::to_owned)
            .collect();

        for (address, fact, value, src) in self.facts {
            if let Some(nic) = at_address(snapshot, &names, &address) {
                snapshot.set(format!("nic.{nic}.{fact}"), value, &src);
            }
        }

        for address in self.sysfs {
            if let Some(nic) = at_address(snapshot, &names, &address) {
                for fact in ["cur_speed_gts", "cur_width", "max_speed_gts", "max_width"] {
                    let key = format!("nic.{nic}.pci.{fact}");
                    snapshot.set_absent(key, Absence::NotApplicableToKind, None, "import:sysfs");
                }
            }
        }

        for (device, interrupt) in self.interrupts {
            if let Some(nic) = owner(snapshot, &names, device.as_deref(), &interrupt.description) {
                for (cpu, count) in interrupt.per_cpu {
                    snapshot.count(
                        format!("nic.{nic}.irq.{}.cpu{cpu}", interrupt.number),
                        count,
                    );
                }
            }
        }
    }
}

fn at_address(snapshot: &Snapshot, names: &[String], address: &str) -> Option<String> {
    let bus = |name: &String| {
        snapshot
            .text(&format!("nic.{name}.drv.bus"))
            .map(str::to_owned)
    };
    if let Some(name) = names
        .iter()
        .find(|name| bus(name).is_some_and(|bus| bus == address))
    {
        return Some(name.clone());
    }

    // Text about one interface and one device belongs together, unless the interface names another
    // device.
    match names {
        [only] if bus(only).is_none() => Some(only.clone()),
        _ => None,
    }
}

/// Interface an interrupt belongs to: by its name, by the device's address, or because the user
/// searched for it.
fn owner(
    snapshot: &Snapshot,
    names: &[String],
    device: Option<&str>,
    description: &str,
) -> Option<String> {
    let named = |name: &&String| {
        description.split_whitespace().any(|word| {
            // Drivers name vectors `eth0-TxRx-1`, or `mlx5_comp1@pci:0000:01:00.0`.
            word.split(['-', '@']).any(|part| part == name.as_str()) || word == name.as_str()
        })
    };
    let at_bus = |name: &&String| {
        let bus = snapshot.text(&format!("nic.{name}.drv.bus"));
        bus.is_some_and(|bus| description.contains(bus))
    };
    let found = names
        .iter()
        .find(named)
        .or_else(|| names.iter().find(at_bus));
    let searched = || names.iter().find(|name| device == Some(name.as_str()));

    let virtio = || {
        let mut virtio = names
            .iter()
            .filter(|name| snapshot.text(&format!("nic.{name}.drv.name")) == Some("virtio_net"));
        let first = virtio.next().filter(|_| description.contains("virtio"))?;
        // Of several virtio interfaces none is the certain owner.
        virtio.next().is_none().then_some(first)
    };
    found.or_else(searched).or_else(virtio).cloned()
}
