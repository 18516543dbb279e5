//! Names of addresses in the kernel: `/proc/kallsyms` (proc_kallsyms(5)).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its name without the suffix that a compiler adds to a part of it (`.isra.0`, `.cold`);
    /// `[unknown]` where the kernel hides it.
    pub name: String,
    /// Module that has it; `None` for the kernel itself.
    pub module: Option<String>,
}

/// All functions of the kernel, some 3 MiB.
#[derive(Debug)]
pub(super) struct Symbols {
    /// Begin, with the end of its name and module in `names`; sorted.
    functions: Vec<(u64, usize)>,
    /// One line for each function: `nft_do_chain [nf_tables]`.
    names: String,
}

/// The table of the watches that run now.
static SHARED: Mutex<Weak<Symbols>> = Mutex::new(Weak::new());

impl Symbols {
    /// The table, which is read where no other watch has it. Takes some 50 ms then.
    ///
    /// Where the kernel hides addresses (`kernel.kptr_restrict`), it is empty.
    pub(super) fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let file = File::open("/proc/kallsyms");
            let read = Arc::new(file.map_or_else(
                |_| Self::read(&b""[..]),
                |file| Self::read(BufReader::new(file)),
            ));
            *shared = Arc::downgrade(&read);
            read
        })
    }

    /// Of a text in the form of `/proc/kallsyms`.
    pub(super) fn read(mut text: impl BufRead) -> Self {
        let mut functions = Vec::new();
        let mut names = String::new();
        let mut line = String::new();

        // What cannot be read has no names.
        while text.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some((begin, name)) = function(line.trim_end()) {
                functions.push((begin, names.len()));
                names.push_str(name);
                names.push('\n');
            }
            line.clear();
        }

        functions.sort_unstable();
        Self { functions, names }
    }

    /// The last function that begins at or before an address.
    pub(super) fn function(&self, address: u64) -> Option<Function> {
        let after = self
            .functions
            .partition_point(|(begin, _)| *begin <= address);
        let (_, at) = self.functions.get(after.checked_sub(1)?)?;
        let line = self.names.get(*at..)?.lines().next()?;

        let (name, module) = line.split_once('\t').unwrap_or((line, ""));
        let module = module.trim_matches(['[', ']']);
        Some(Function {
            name: name.split('.').next().unwrap_or(name).to_owned(),
            module: (!module.is_empty()).then(|| module.to_owned()),
        })
    }
}

/// `ffffffff81f653d0 T nft_do_chain [nf_tables]`: address, kind, name and module. Kinds in either
/// case of `t` and `w` are functions. An address of 0 is one that is hidden.
fn function(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    let begin = u64::from_str_radix(address, 16).ok()?;
    (matches!(kind, "t" | "T" | "w" | "W") && begin > 0).then_some((begin, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000200 T __udp4_lib_rcv
ffffffff81000180 d some_data
ffffffff81000100 t ip_rcv_finish_core.isra.0
ffffffffc0000000 t nft_do_chain\t[nf_tables]
";

    #[test]
    fn addresses_belong_to_the_function_before_them() {
        let symbols = Symbols::read(TEXT.as_bytes());
        for (address, expected) in [
            (0x10, None),
            (0xffff_ffff_8100_01f0, Some(("ip_rcv_finish_core", None))),
            (0xffff_ffff_8100_0200, Some(("__udp4_lib_rcv", None))),
            (u64::MAX, Some(("nft_do_chain", Some("nf_tables")))),
        ] {
            let found = symbols.function(address);
            let found = found
                .as_ref()
                .map(|one| (one.name.as_str(), one.module.as_deref()));
            assert_eq!(found, expected, "{address:x}");
        }
    }

    #[test]
    fn hidden_addresses_have_no_names() {
        for text in [
            "0000000000000000 T _stext\n0000000000000000 t nft_do_chain\t[nf_tables]\n",
            "x\n \n1 T",
            "",
        ] {
            let symbols = Symbols::read(text.as_bytes());
            assert_eq!(symbols.function(0xffff_ffff_8100_0200), None, "{text}");
        }
    }

    #[test]
    fn watches_share_a_table_while_they_run() {
        let first = Symbols::shared();
        assert!(Arc::ptr_eq(&first, &Symbols::shared()));
    }
}
