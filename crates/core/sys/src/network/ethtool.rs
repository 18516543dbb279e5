//! Facts that ethtool reads by ioctl only: the driver's name, its private counters, and how it
//! spreads packets over queues on kernels whose netlink lacks it (`linux/ethtool.h`,
//! `netdevice(7)`).

use std::io;
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

use crate::error::{During, Result};
use crate::syscall::syscall;

const GET_DRIVER_INFO: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATS: u32 = 0x1d;
const GET_HASH_FIELDS: u32 = 0x29;
const GET_RX_RINGS: u32 = 0x2d;
const GET_STRING_SET_INFO: u32 = 0x37;
const GET_RX_HASH: u32 = 0x46;
/// The set of strings that names the private counters.
const STATS_SET: u32 = 1;
const STRING_BYTES: usize = 32;
/// No driver has as many counters; a larger count is an error of the driver.
const STATS_MAX: usize = 65_536;

/// Who drives an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverInfo {
    /// Name of the driver: `e1000e`.
    pub driver: String,
    /// Version of the driver; mostly the kernel's.
    pub version: String,
    /// Version of the firmware; empty where there is none.
    pub firmware: String,
    /// Address on its bus: `0000:01:00.0`; empty for software.
    pub bus: String,
}

/// Distribution of received packets over queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiveHash {
    /// Queue per bucket of the hash; empty where the device has no table.
    pub table: Vec<u32>,
    /// Length of the hash key in bytes; 0 where the device has none.
    pub key_bytes: u32,
    /// Functions in use: bit 0 Toeplitz, bit 1 XOR, bit 2 CRC32.
    pub functions: u8,
}

/// No device has as many buckets; a larger count is an error of the driver.
const BUCKETS_MAX: usize = 65_536;
/// Longer keys do not exist either.
const KEY_BYTES_MAX: usize = 4096;
/// Size of `struct ethtool_rxfh` and room for `struct ethtool_rxnfc`.
const HASH_HEADER_BYTES: usize = 24;
const FLOW_QUESTION_BYTES: usize = 256;

/// A socket for questions about interfaces.
#[derive(Debug)]
pub struct Ethtool {
    socket: Socket,
}

impl Ethtool {
    /// Opens the socket. No query here needs a privilege.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open() -> Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).during("socket", "AF_INET")?;
        Ok(Self { socket })
    }

    /// Queries the driver of an interface (`ETHTOOL_GDRVINFO`).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where there is no driver, as for `lo`; `ENODEV` for an unknown interface.
    pub fn driver_info(&self, device: &str) -> Result<DriverInfo> {
        // Command, five texts of 32 bytes, 12 reserved bytes, five numbers
        // (`struct ethtool_drvinfo`).
        let mut buffer = vec![0_u8; 196];
        put(&mut buffer, 0, GET_DRIVER_INFO);
        self.ask(device, &mut buffer, "ETHTOOL_GDRVINFO")?;

        let text = |at: usize| string(buffer.get(at..at + 32).unwrap_or_default());
        Ok(DriverInfo {
            driver: text(4),
            version: text(36),
            firmware: text(68),
            bus: text(100),
        })
    }

    /// Reads the private counters of a driver with their names (`ETHTOOL_GSTATS`). Names may
    /// repeat.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver has none.
    pub fn statistics(&self, device: &str) -> Result<Vec<(String, u64)>> {
        let count = self.string_count(device)?;
        if count == 0 {
            return Ok(Vec::new());
        }

        let length = u32::try_from(count).unwrap_or(0);
        let room = count * 2 + STATS_MAX;
        let mut names = vec![0_u8; 12 + room * STRING_BYTES];
        put(&mut names, 0, GET_STRINGS);
        put(&mut names, 4, STATS_SET);
        put(&mut names, 8, length);
        self.ask(device, &mut names, "ETHTOOL_GSTRINGS")?;

        let mut values = vec![0_u8; 8 + room * 8];
        put(&mut values, 0, GET_STATS);
        put(&mut values, 4, length);
        self.ask(device, &mut values, "ETHTOOL_GSTATS")?;

        let names = names
            .get(12..)
            .unwrap_or_default()
            .chunks_exact(STRING_BYTES)
            .map(string);
        let values = values.get(8..).unwrap_or_default().chunks_exact(8);
        let values = values.map(|bytes| bytes.try_into().map_or(0, u64::from_ne_bytes));

        Ok(names.zip(values).take(count).collect())
    }

    /// Queries how received packets are spread over queues (`ETHTOOL_GRSSH`).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver has no such operation.
    pub fn receive_hash(&self, device: &str) -> Result<ReceiveHash> {
        const OPERATION: &str = "ETHTOOL_GRSSH";

        let mut header = vec![0_u8; HASH_HEADER_BYTES];
        put(&mut header, 0, GET_RX_HASH);
        self.ask(device, &mut header, OPERATION)?;

        let size = |at: usize, max: usize| usize::try_from(get(&header, at)).unwrap_or(0).min(max);
        let (buckets, key_bytes) = (size(8, BUCKETS_MAX), size(12, KEY_BYTES_MAX));
        let mut whole = vec![0_u8; HASH_HEADER_BYTES + buckets * 4 + key_bytes];
        put(&mut whole, 0, GET_RX_HASH);

        // The kernel refuses sizes that are not its own, so it cannot write more than was
        // requested.
        put(&mut whole, 8, u32::try_from(buckets).unwrap_or(0));
        put(&mut whole, 12, u32::try_from(key_bytes).unwrap_or(0));
        self.ask(device, &mut whole, OPERATION)?;

        Ok(ReceiveHash {
            table: (0..buckets)
                .map(|n| get(&whole, HASH_HEADER_BYTES + 4 * n))
                .collect(),
            key_bytes: u32::try_from(key_bytes).unwrap_or(0),
            functions: whole.get(16).copied().unwrap_or(0),
        })
    }

    /// Queries the number of queues received packets can be spread over (`ETHTOOL_GRXRINGS`).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver has no such operation.
    pub fn receive_rings(&self, device: &str) -> Result<u64> {
        self.flow_question(device, GET_RX_RINGS, 0, "ETHTOOL_GRXRINGS")
    }

    /// Queries which parts of a packet of a flow type (`TCP_V4_FLOW` is 1, `UDP_V4_FLOW` 2) go into
    /// the hash (`ETHTOOL_GRXFH`): the bits of `RXH_*`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver has no such operation.
    pub fn hash_fields(&self, device: &str, flow_type: u32) -> Result<u64> {
        self.flow_question(device, GET_HASH_FIELDS, flow_type, "ETHTOOL_GRXFH")
    }

    /// A question whose answer is the `data` of `struct ethtool_rxnfc`.
    fn flow_question(
        &self,
        device: &str,
        command: u32,
        flow_type: u32,
        operation: &'static str,
    ) -> Result<u64> {
        let mut buffer = vec![0_u8; FLOW_QUESTION_BYTES];
        put(&mut buffer, 0, command);
        put(&mut buffer, 4, flow_type);
        self.ask(device, &mut buffer, operation)?;

        let data = buffer.get(8..16).and_then(|bytes| bytes.try_into().ok());
        Ok(data.map_or(0, u64::from_ne_bytes))
    }

    /// Number of private counters (`ETHTOOL_GSSET_INFO`).
    fn string_count(&self, device: &str) -> Result<usize> {
        // Command, reserved, mask of the requested sets, one length per set.
        let mut buffer = vec![0_u8; 4 + 4 + 8 + 4];
        put(&mut buffer, 0, GET_STRING_SET_INFO);
        buffer.splice(8..16, (1_u64 << STATS_SET).to_ne_bytes());
        self.ask(device, &mut buffer, "ETHTOOL_GSSET_INFO")?;

        let mask = buffer
            .get(8..16)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_ne_bytes);
        if mask == 0 {
            let unsupported = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(unsupported).during("ioctl ETHTOOL_GSSET_INFO", device);
        }

        let count = buffer
            .get(16..20)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_ne_bytes);
        Ok(usize::try_from(count).unwrap_or(0).min(STATS_MAX))
    }

    /// One `SIOCETHTOOL` call. `buffer` begins with the command and is large enough for its answer.
    fn ask(&self, device: &str, buffer: &mut [u8], operation: &'static str) -> Result<()> {
        let mut name: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
        if device.len() >= libc::IFNAMSIZ || device.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV)).during(operation, device);
        }

        for (to, from) in name.iter_mut().zip(device.bytes()) {
            // The sign of a C character is that of the platform.
            *to = libc::c_char::from_ne_bytes([from]);
        }

        let mut request = libc::ifreq {
            ifr_name: name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_data: buffer.as_mut_ptr().cast(),
            },
        };
        // SAFETY: the request names an interface with a final zero and points to a live buffer. The
        // kernel writes at most what the command's answer holds, which the callers size: fixed
        // structures, and room for more strings and values than any driver has, because their
        // number may grow between two calls.
        let returned = unsafe {
            libc::ioctl(
                self.socket.as_raw_fd(),
                libc::SIOCETHTOOL as _,
                &raw mut request,
            )
        };
        syscall(returned).map(|_| ()).during(operation, device)
    }
}

fn put(buffer: &mut [u8], at: usize, value: u32) {
    if let Some(slot) = buffer.get_mut(at..at + 4) {
        slot.copy_from_slice(&value.to_ne_bytes());
    }
}

fn get(buffer: &[u8], at: usize) -> u32 {
    let bytes = buffer
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}

/// Text up to the first zero.
fn string(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_driver_and_an_unknown_interface_does_not_exist() {
        let ethtool = Ethtool::open().expect("a socket");
        assert!(
            ethtool
                .statistics("lo")
                .is_err_and(|error| error.is_unsupported())
        );
        let unknown = ethtool
            .driver_info("lr-none")
            .expect_err("no such interface");
        assert_eq!(unknown.errno(), Some(libc::ENODEV));
        assert!(
            ethtool
                .receive_hash("lo")
                .is_err_and(|error| error.is_unsupported())
        );
        assert!(
            ethtool
                .receive_rings("lo")
                .is_err_and(|error| error.is_unsupported())
        );
        assert!(
            ethtool
                .hash_fields("lo", 1)
                .is_err_and(|error| error.is_unsupported())
        );

        let long = ethtool
            .driver_info("a-name-longer-than-any-interface")
            .expect_err("too long");
        assert_eq!(long.errno(), Some(libc::ENODEV));
    }
}
