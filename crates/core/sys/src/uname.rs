//! Identity of the system.

use std::ffi::{CStr, c_char};
use std::fmt;

/// Identity of the system (uname(2)). Displays all five in that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uname {
    /// `Linux`.
    pub sysname: String,
    /// Host name (`nodename`).
    pub node: String,
    /// Kernel release, `6.1.0-18-amd64`.
    pub release: String,
    /// Kernel build, `#1 SMP …`.
    pub version: String,
    /// `x86_64`.
    pub machine: String,
}

impl fmt::Display for Uname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {}",
            self.sysname, self.node, self.release, self.version, self.machine
        )
    }
}

/// Calls uname(2).
pub fn uname() -> Uname {
    // SAFETY: all-zero bytes are a valid utsname.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `names` is writable during the call, which cannot fail for a valid pointer.
    unsafe { libc::uname(&raw mut names) };
    Uname {
        sysname: text(&names.sysname),
        node: text(&names.nodename),
        release: text(&names.release),
        version: text(&names.version),
        machine: text(&names.machine),
    }
}

fn text(field: &[c_char]) -> String {
    // The sign of a C character is the platform's.
    let bytes: Vec<u8> = field.iter().map(|byte| byte.to_ne_bytes()[0]).collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::from_utf8_lossy(&bytes).into_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn uname_shows_what_proc_shows_in_the_order_of_uname_a() {
        let proc = |name: &str| {
            fs::read_to_string(format!("/proc/sys/kernel/{name}"))
                .expect(name)
                .trim()
                .to_owned()
        };
        let expected = ["ostype", "hostname", "osrelease", "version"]
            .map(proc)
            .join(" ");
        let shown = uname().to_string();
        let machine = shown
            .strip_prefix(&expected)
            .expect("the first four")
            .trim();
        assert!(!machine.is_empty() && !machine.contains(' '), "{machine}");
    }
}
