//! The program that is copied to hosts without an agent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use aws_lc_rs::digest::{Context, SHA256};

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
/// Most bytes of a program header table.
const HEADERS_MAX: usize = 1 << 16;
const PT_INTERP: u32 = 3;

impl AgentProgram {
    /// This program.
    ///
    /// # Errors
    /// The file is not readable.
    pub fn own(arguments: String) -> io::Result<Self> {
        let mut file = File::open(OWN)?;
        Ok(Self {
            kind: kind_of(&mut file)?,
            sha256: sha256_of(&mut file)?,
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

/// SHA-256 of a file, hexadecimal.
fn sha256_of(file: &mut (impl Read + Seek)) -> io::Result<String> {
    file.rewind()?;
    let mut digest = Context::new(&SHA256);
    let mut chunk = vec![0; 1 << 16];

    loop {
        match file.read(&mut chunk)? {
            0 => break,
            count => digest.update(chunk.get(..count).unwrap_or_default()),
        }
    }

    let digest = digest.finish();
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    Ok(digits.collect())
}

/// Reads the kind from the ELF header (elf(5)): 64 bits, little endian.
fn kind_of(file: &mut (impl Read + Seek)) -> io::Result<ProgramKind> {
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    // Class 2 is 64 bits, data encoding 1 is little endian (elf(5), e_ident).
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(ProgramKind::Other);
    }

    // e_machine (elf(5)): EM_X86_64, EM_AARCH64, EM_RISCV.
    let machine = match number(&header, 18, 2) {
        Some(62) => "x86_64",
        Some(183) => "aarch64",
        Some(243) => "riscv64",
        _ => return Ok(ProgramKind::Other),
    };
    // e_phoff, e_phentsize and e_phnum (elf(5)).
    let (offset, size, count) = (
        number(&header, 32, 8),
        number(&header, 54, 2),
        number(&header, 56, 2),
    );
    let (Some(offset), Some(size @ 1..), Some(count)) = (offset, size, count) else {
        return Ok(ProgramKind::Other);
    };
    let bytes = usize::try_from(size.saturating_mul(count))
        .unwrap_or(usize::MAX)
        .min(HEADERS_MAX);
    let mut table = vec![0; bytes];

    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut table)?;
    let entry_bytes = usize::try_from(size).unwrap_or(usize::MAX);
    // A static program names no dynamic loader (PT_INTERP, elf(5)).
    let is_interpreter = |entry: &[u8]| number(entry, 0, 4) == Some(u64::from(PT_INTERP));
    let is_dynamic = table.chunks(entry_bytes).any(is_interpreter);

    Ok(if is_dynamic {
        ProgramKind::Dynamic
    } else {
        ProgramKind::Static(machine)
    })
}

/// A little-endian number of some bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
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
    use std::io::Cursor;

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
        let kind = |bytes: Vec<u8>| kind_of(&mut Cursor::new(bytes)).ok();
        assert_eq!(kind(program(1)), Some(ProgramKind::Static("x86_64")));
        assert_eq!(kind(program(PT_INTERP)), Some(ProgramKind::Dynamic));
        assert_eq!(kind(vec![b'x'; 100]), Some(ProgramKind::Other));
        assert_eq!(kind(vec![b'x'; 10]), None);
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
