//! The PCI Express capability in the configuration space of a device (`pci_regs.h`). Only bytes in.

/// Settings that a device and its driver agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PcieLink {
    /// Largest payload of a packet the device can take, bytes.
    pub payload_supported_bytes: u32,
    /// Largest payload it uses, bytes.
    pub payload_bytes: u32,
    /// Largest read request, bytes.
    pub read_request_bytes: u32,
    /// States of power saving in use: bit 0 L0s, bit 1 L1; `None` inside the root complex, where
    /// there is no link.
    pub aspm: Option<u8>,
}

/// Why there is no capability.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoPcieCapability {
    /// Without rights the kernel shows the first 64 bytes only.
    Hidden,
    /// Conventional PCI, or a device inside the root complex without the capability.
    NotExpress,
}

/// Kinds of devices inside the root complex: an endpoint, and a collector of events.
const WITHOUT_LINK: [u16; 2] = [9, 10];

/// Length that the kernel shows to every user.
const HEADER_BYTES: usize = 64;

/// Finds the capability.
pub(crate) fn pcie_link(config: &[u8]) -> Result<PcieLink, NoPcieCapability> {
    if config.len() <= HEADER_BYTES {
        return Err(NoPcieCapability::Hidden);
    }

    let at = capability(config).ok_or(NoPcieCapability::NotExpress)?;
    let registers = || {
        // Device capabilities, device control, kind of device and link control (pci_regs.h).
        let supported = u32_at(config, at + 4)?;
        let control = u16_at(config, at + 8)?;
        let kind = u16_at(config, at + 2)? >> 4 & 0xf;
        let link = u16_at(config, at + 16).filter(|_| !WITHOUT_LINK.contains(&kind));

        Some(PcieLink {
            payload_supported_bytes: size(supported),
            // Bits 5 to 7 and bits 12 to 14 of device control.
            payload_bytes: size(u32::from(control) >> 5),
            read_request_bytes: size(u32::from(control) >> 12),
            aspm: link.and_then(|control| u8::try_from(control & 3).ok()),
        })
    };
    registers().ok_or(NoPcieCapability::NotExpress)
}

/// Sizes are encoded as powers of two from 128 bytes on.
const fn size(code: u32) -> u32 {
    128 << (code & 7)
}

/// Position of the PCI Express capability in the list of capabilities.
fn capability(config: &[u8]) -> Option<usize> {
    const STATUS: usize = 6;
    const HAS_LIST: u16 = 0x10;
    const FIRST: usize = 0x34;
    const EXPRESS: u8 = 0x10;
    // Each takes at least four of the 192 bytes there are for all; a longer list is a circle.
    const CAPABILITIES_MAX: usize = 48;

    if u16_at(config, STATUS)? & HAS_LIST == 0 {
        return None;
    }

    // The two lowest bits of such a pointer are reserved.
    let mut at = usize::from(*config.get(FIRST)?) & !3;
    for _ in 0..CAPABILITIES_MAX {
        if at < HEADER_BYTES {
            return None;
        }
        if *config.get(at)? == EXPRESS {
            return Some(at);
        }

        at = usize::from(*config.get(at + 1)?) & !3;
    }

    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..at + 2)?
        .try_into()
        .ok()
        .map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Vec<u8> {
        let mut config = vec![0_u8; 256];
        config[6] = 0x10;
        config[0x34] = 0x40;

        // Power management first, then PCI Express at 0x50.
        (config[0x40], config[0x41]) = (1, 0x50);
        config[0x50] = 0x10;
        config[0x54] = 2;
        config[0x58..0x5a].copy_from_slice(&0x2820_u16.to_le_bytes());
        config[0x60] = 2;

        config
    }

    #[test]
    fn sizes_are_found_behind_other_capabilities() {
        let expected = PcieLink {
            payload_supported_bytes: 512,
            payload_bytes: 256,
            read_request_bytes: 512,
            aspm: Some(2),
        };
        assert_eq!(pcie_link(&device()), Ok(expected));
        let mut inside = device();
        inside[0x52] = 0x92;
        assert_eq!(
            pcie_link(&inside),
            Ok(PcieLink {
                aspm: None,
                ..expected
            })
        );
    }

    #[test]
    fn hidden_fact_is_distinguished_from_absent_one() {
        assert_eq!(pcie_link(&device()[..64]), Err(NoPcieCapability::Hidden));
        assert_eq!(pcie_link(&[]), Err(NoPcieCapability::Hidden));
        assert_eq!(pcie_link(&[0; 256]), Err(NoPcieCapability::NotExpress));
        assert_eq!(
            pcie_link(&[255; 256]),
            Err(NoPcieCapability::NotExpress),
            "a device that is gone"
        );

        let mut circle = device();
        circle[0x41] = 0x40;
        assert_eq!(pcie_link(&circle), Err(NoPcieCapability::NotExpress));
        assert_eq!(
            pcie_link(&device()[..0x56]),
            Err(NoPcieCapability::NotExpress)
        );
    }
}
