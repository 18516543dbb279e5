//! What ethtool answers by ioctl only: the driver's name and its private counters (`linux/ethtool.h`, `netdevice(7)`).

use std::io;
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

use crate::error::{During, Result};
use crate::syscall::syscall;

const GET_DRIVER_INFO: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATS: u32 = 0x1d;
const GET_STRING_SET_INFO: u32 = 0x37;
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

/// A socket for questions about interfaces.
#[derive(Debug)]
pub struct Ethtool {
    socket: Socket,
}

impl Ethtool {
    /// Opens the socket. Everything here may be asked without rights.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open() -> Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).during("socket", "AF_INET")?;
        Ok(Self { socket })
    }

    /// Asks for the driver of an interface (`ETHTOOL_GDRVINFO`).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where there is no driver, as for `lo`; `ENODEV` for an unknown interface.
    pub fn driver_info(&self, device: &str) -> Result<DriverInfo> {
        // Command, five texts of 32 bytes, 12 reserved bytes, five numbers (`struct ethtool_drvinfo`).
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

    /// Reads the private counters of a driver with their names (`ETHTOOL_GSTATS`). Names may repeat.
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

    /// Number of private counters (`ETHTOOL_GSSET_INFO`).
    fn string_count(&self, device: &str) -> Result<usize> {
        // Command, reserved, mask of the sets that are asked for, one length per set.
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
            *to = from.cast_signed();
        }
        let mut request = libc::ifreq {
            ifr_name: name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_data: buffer.as_mut_ptr().cast(),
            },
        };
        // SAFETY: the request names an interface with a final zero and points to a live buffer. The kernel writes at
        // most what the command's answer holds, which the callers size: fixed structures, and room for more strings and
        // values than any driver has, because their number may grow between two calls.
        let returned = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        syscall(returned).map(|_| ()).during(operation, device)
    }
}

fn put(buffer: &mut [u8], at: usize, value: u32) {
    if let Some(slot) = buffer.get_mut(at..at + 4) {
        slot.copy_from_slice(&value.to_ne_bytes());
    }
}

/// Text up to the first zero.
fn string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_driver_and_an_unknown_interface_does_not_exist() {
        let ethtool = Ethtool::open().expect("a socket");
        assert!(ethtool.statistics("lo").is_err_and(|error| error.is_unsupported()));
        let unknown = ethtool.driver_info("lr-none").expect_err("no such interface");
        assert_eq!(unknown.errno(), Some(libc::ENODEV));
        let long = ethtool
            .driver_info("a-name-longer-than-any-interface")
            .expect_err("too long");
        assert_eq!(long.errno(), Some(libc::ENODEV));
    }
}
