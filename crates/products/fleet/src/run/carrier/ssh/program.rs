//! The program that is copied to hosts without an agent.

use std::fs::{self, File};
use std::io;

use aws_lc_rs::digest::{SHA256, digest};

/// The file that runs, and for which machine it is.
#[derive(Debug)]
pub struct AgentProgram {
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
    /// Kind of the program.
    pub kind: ProgramKind,
    /// Its arguments on a host: words without characters of a shell.
    pub arguments: String,
}

/// Requirements of an executable file on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// Nothing but a kernel of this machine, as `uname -m` names it.
    Static(&'static str),
    /// Libraries of this host.
    Dynamic,
    /// It is no program that can be sent.
    Other,
}

/// The file that runs, also when it was replaced.
const OWN: &str = "/proc/self/exe";
const PT_INTERP: u64 = 3;

impl AgentProgram {
    /// This program.
    ///
    /// # Errors
    /// The file is not readable.
    pub fn own(arguments: String) -> io::Result<Self> {
        let file = fs::read(OWN)?;
        Ok(Self {
            sha256: hex_digest(&file),
            kind: kind_of(&file),
            arguments,
        })
    }

    /// The file, if a host with this system and machine can run it.
    ///
    /// # Errors
    /// Why not, with what to do.
    pub(super) fn open_for(&self, system_and_machine: &str) -> Result<File, String> {
        let needed = || format!("no linerate on the host ({system_and_machine})");
        match self.kind {
            ProgramKind::Static(machine) if system_and_machine == format!("Linux {machine}") => {
                File::open(OWN)
                    .map_err(|error| format!("{}, and {OWN} is not readable: {error}", needed()))
            }
            ProgramKind::Static(machine) => Err(format!(
                "{}, and this one is for {machine}; install it there",
                needed()
            )),
            ProgramKind::Dynamic => Err(format!(
                "{}, and this one needs libraries; use the static one of `make dist`",
                needed()
            )),
            ProgramKind::Other => Err(format!("{}; install it there", needed())),
        }
    }
}

/// SHA-256, hexadecimal.
fn hex_digest(file: &[u8]) -> String {
    let digest = digest(&SHA256, file);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// Reads the kind from the ELF header (elf(5)): 64 bits, little endian.
fn kind_of(file: &[u8]) -> ProgramKind {
    // Class 2 is 64 bits, data encoding 1 is little endian (elf(5), e_ident).
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return ProgramKind::Other;
    }

    // e_machine (elf(5)): EM_X86_64, EM_AARCH64, EM_RISCV.
    let machine = match number(file, 18, 2) {
        Some(62) => "x86_64",
        Some(183) => "aarch64",
        Some(243) => "riscv64",
        _ => return ProgramKind::Other,
    };
    // e_phoff, e_phentsize and e_phnum (elf(5)).
    let header = (
        number(file, 32, 8),
        number(file, 54, 2),
        number(file, 56, 2),
    );
    let (Some(offset), Some(size), Some(count)) = header else {
        return ProgramKind::Other;
    };

    // A static program names no dynamic loader (PT_INTERP, elf(5)).
    let is_interpreter = |entry: u64| {
        let at = offset.saturating_add(size.saturating_mul(entry));
        number(file, at, 4) == Some(PT_INTERP)
    };
    if (0..count).any(is_interpreter) {
        ProgramKind::Dynamic
    } else {
        ProgramKind::Static(machine)
    }
}

/// A little-endian number of some bytes.
fn number(bytes: &[u8], at: u64, len: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |all, byte| all << 8 | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An x86-64 program with one program header of this type.
    fn program(header_type: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 62;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&header_type.to_le_bytes());

        bytes
    }

    #[test]
    fn programs_without_an_interpreter_are_static() {
        assert_eq!(kind_of(&program(1)), ProgramKind::Static("x86_64"));
        assert_eq!(kind_of(&program(3)), ProgramKind::Dynamic);
        assert_eq!(kind_of(&[b'x'; 100]), ProgramKind::Other);
        assert_eq!(kind_of(b"\x7fELF\x02\x01"), ProgramKind::Other);
    }

    #[test]
    fn only_a_static_program_of_the_machine_is_sent() {
        let own = |kind| AgentProgram {
            sha256: String::new(),
            kind,
            arguments: String::new(),
        };
        assert!(
            own(ProgramKind::Static("x86_64"))
                .open_for("Linux x86_64")
                .is_ok()
        );
        assert!(
            own(ProgramKind::Static("x86_64"))
                .open_for("Linux aarch64")
                .is_err()
        );
        assert!(
            own(ProgramKind::Static("x86_64"))
                .open_for("FreeBSD x86_64")
                .is_err()
        );

        let refused = own(ProgramKind::Dynamic)
            .open_for("Linux x86_64")
            .map(|_| ());
        assert!(refused.is_err_and(|text| text.contains("make dist")));
    }
}
