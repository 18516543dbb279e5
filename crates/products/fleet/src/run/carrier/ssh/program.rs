//! The program that is copied to hosts without an agent.

use std::env::consts::ARCH;
use std::fs::{self, File};
use std::io;

use aws_lc_rs::digest::{SHA256, digest};

/// The file that runs, also when it was replaced.
const OWN: &str = "/proc/self/exe";

/// SHA-256 of the file that runs, hexadecimal.
///
/// # Errors
/// The file is not readable.
pub(super) fn sha256() -> io::Result<String> {
    let file = fs::read(OWN)?;
    let mut text = String::new();
    for byte in digest(&SHA256, &file).as_ref() {
        text += &format!("{byte:02x}");
    }

    Ok(text)
}

/// The file that runs, if a host with this system and machine can run it.
///
/// # Errors
/// Why not, with what to do.
pub(super) fn open_for(system_and_machine: &str) -> Result<File, String> {
    let why = match obstacle(cfg!(target_feature = "crt-static"), system_and_machine) {
        Some(why) => why,
        None => match File::open(OWN) {
            Ok(file) => return Ok(file),
            Err(error) => format!("{OWN} is not readable: {error}"),
        },
    };
    Err(format!(
        "no linerate on the host ({system_and_machine}), and {why}"
    ))
}

/// Why a program of this machine, static or with libraries, does not run on that host.
fn obstacle(is_static: bool, system_and_machine: &str) -> Option<String> {
    if !is_static {
        let text = "this one needs libraries; use the static one of `make dist`";
        return Some(text.to_owned());
    }

    let is_same = system_and_machine == format!("Linux {ARCH}");
    (!is_same).then(|| format!("this one is for {ARCH}; install it there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_static_program_of_the_machine_is_sent() {
        let own = format!("Linux {ARCH}");
        assert_eq!(obstacle(true, &own), None);
        assert!(obstacle(true, "Linux m68k").is_some());
        assert!(obstacle(true, &format!("FreeBSD {ARCH}")).is_some());
        let refused = obstacle(false, &own);
        assert!(refused.is_some_and(|text| text.contains("make dist")));
    }
}
