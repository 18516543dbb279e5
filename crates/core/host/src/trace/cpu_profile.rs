//! What the CPUs did: stacks of the kernel, added up for each CPU.

use std::collections::BTreeMap;

use super::symbols::{Function, Symbols};

/// Samples of the CPUs of this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuProfile {
    /// Name of this process.
    pub own: Option<String>,
    /// Every stack with its number of samples, in the order of the CPUs.
    pub stacks: Vec<CpuStack>,
}

/// One stack on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuStack {
    /// Number of the CPU.
    pub cpu: u32,
    /// Name of the process; `None` for an idle CPU.
    pub process: Option<String>,
    /// Functions of the kernel, the outermost first; empty where the program itself ran.
    pub functions: Vec<Function>,
    /// Samples.
    pub samples: u64,
}

impl CpuProfile {
    /// Collapsed stacks, which programs that draw flame graphs read: one line for each, with its
    /// functions from the outermost on and its samples.
    pub fn collapsed(&self) -> String {
        let line = |stack: &CpuStack| {
            let process = stack.process.as_deref().unwrap_or("[idle]");
            // A process names itself: its separators would make frames and lines.
            let process = process.replace([';', '\n', ' '], "_");
            let functions = stack
                .functions
                .iter()
                .map(|function| format!(";{}", function.name));
            let functions: String = functions.collect();
            format!("CPU {};{process}{functions} {}\n", stack.cpu, stack.samples)
        };
        self.stacks.iter().map(line).collect()
    }
}

/// A stack as it was sampled: the innermost address first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sampled {
    pub cpu: u32,
    pub process: u32,
    pub addresses: Vec<u64>,
}

/// Stacks that are kept apart; further ones are counted without their functions.
pub(super) const STACKS_MAX: usize = 50_000;

/// The stacks with names.
pub(super) fn profile(
    sampled: &BTreeMap<Sampled, u64>,
    symbols: &Symbols,
    processes: &BTreeMap<u32, String>,
) -> CpuProfile {
    let unknown = || Function {
        name: "[unknown]".to_owned(),
        module: None,
    };
    let function = |address: &u64| symbols.function(*address).unwrap_or_else(unknown);

    let mut sums: BTreeMap<CpuStack, u64> = BTreeMap::new();
    for (stack, samples) in sampled {
        let named = CpuStack {
            cpu: stack.cpu,
            process: (stack.process != 0).then(|| {
                let name = processes.get(&stack.process);
                name.map_or("[ended]", String::as_str).to_owned()
            }),
            functions: stack.addresses.iter().rev().map(function).collect(),
            samples: 0,
        };
        *sums.entry(named).or_default() += samples;
    }

    let stacks = sums
        .into_iter()
        .map(|(stack, samples)| CpuStack { samples, ..stack });
    CpuProfile {
        own: processes.get(&std::process::id()).cloned(),
        stacks: stacks.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_with_the_same_names_are_added() {
        let sampled = |process, addresses: &[u64]| Sampled {
            cpu: 1,
            process,
            addresses: addresses.to_vec(),
        };
        let symbols = "11 t inner\n20 t outer\n";
        let found = profile(
            &[
                (sampled(7, &[0x11, 0x20]), 3),
                (sampled(7, &[0x12, 0x20]), 4),
                (sampled(7, &[]), 2),
                (sampled(0, &[0x9]), 5),
            ]
            .into(),
            &Symbols::read(symbols.as_bytes()),
            &[(7, "linerate".to_owned())].into(),
        );

        let names = |stack: &CpuStack| {
            let names = stack
                .functions
                .iter()
                .map(|function| function.name.as_str());
            names.collect::<Vec<_>>().join(";")
        };
        let parts: Vec<_> = found
            .stacks
            .iter()
            .map(|stack| (stack.process.as_deref(), names(stack), stack.samples))
            .collect();
        assert_eq!(
            parts,
            [
                (None, "[unknown]".to_owned(), 5),
                (Some("linerate"), String::new(), 2),
                (Some("linerate"), "outer;inner".to_owned(), 7),
            ]
        );
        assert_eq!(
            found.collapsed(),
            "CPU 1;[idle];[unknown] 5\nCPU 1;linerate 2\nCPU 1;linerate;outer;inner 7\n"
        );
    }
}
