//! What the CPUs of a test did: shares of copying, TCP, netfilter and others, by samples of their
//! stacks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use linerate_host::{CpuProfile, CpuStack, Function};
use linerate_model::finding::{CpuWork, Diagnosis, Finding, WorkShare};
use linerate_model::snapshot::Snapshot;

use crate::arithmetic::to_f64;
use crate::limit;
use crate::observed::Observed;
use crate::table::{Columns, rows};

/// Why the CPUs of a host were not sampled.
pub(crate) const UNWATCHED: &str = "work.unwatched";
const SRC: &str = "perf_event:cpu-clock";
/// Fewer samples of a CPU have no shares: one hundredth of them has an error of its own size.
const SAMPLES_MIN: u64 = 200;
/// CPUs whose work is recorded, the busiest ones.
const CPUS_MAX: usize = 4;
/// Classes that a verdict names, and the least part of one in a list.
const NAMED_MAX: usize = 3;
const PERCENT_MIN: f64 = 1.0;
/// Those that a text names have at least this part.
const NAMED_PERCENT_MIN: f64 = 5.0;
/// Keys of the facts: `work.cpu.1.copy`, `work.cpu.1.busy_share`.
const PREFIX: &str = "work.cpu.";
const BUSY: &str = ".busy_share";

/// A class of work: a line of `work.txt`.
#[derive(Debug, PartialEq, Eq)]
struct Class {
    name: &'static str,
    words: &'static str,
    /// A report names the function or the module.
    is_named: bool,
    next: Option<&'static str>,
    /// Patterns of functions, and of modules behind `@`.
    functions: Vec<&'static str>,
}

static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| rows(include_str!("work.txt"), Class::new));

/// Functions that no line has.
static OTHER: Class = Class {
    name: "other",
    words: "other functions of the kernel",
    is_named: false,
    next: None,
    functions: Vec::new(),
};
/// No function of the kernel: the program itself.
static PROGRAM: Class = Class {
    name: "program",
    words: "the program itself",
    is_named: false,
    next: None,
    functions: Vec::new(),
};
/// The same of other programs.
static PROGRAMS: Class = Class {
    name: "programs",
    words: "other programs",
    is_named: false,
    next: Some("end the other programs, or give the test CPUs of its own (-A)"),
    functions: Vec::new(),
};
const IDLE: &str = "idle";
/// The class that a rule judges: a sampled CPU without it has a share of 0.
const CRYPTO: &str = "crypto";
/// The class of functions of modules that no line has.
const DRIVER: &str = "driver";

impl Class {
    fn new(mut columns: Columns) -> Option<Self> {
        let mut next = || columns.next();
        Some(Self {
            name: next()?,
            words: next()?,
            is_named: next()? == "named",
            next: Some(next()?).filter(|next| *next != "-"),
            functions: next()?.split(' ').collect(),
        })
    }

    fn called(name: &str) -> Option<&'static Self> {
        let others = [&PROGRAM, &PROGRAMS, &OTHER];
        CLASSES
            .iter()
            .chain(others)
            .find(|class| class.name == name)
    }

    /// Class of a function: that of its module, or else of its name; another module is a driver.
    fn of(function: &Function) -> Option<&'static Self> {
        let module = function.module.as_deref();
        let by_module = module.and_then(|module| Self::with(module, |one| one.strip_prefix('@')));
        by_module
            .or_else(|| Self::with(&function.name, Some))
            .or_else(|| Self::called(DRIVER).filter(|_| module.is_some()))
    }

    /// The first class that has a pattern for a name.
    fn with(
        name: &str,
        pattern: impl Fn(&'static str) -> Option<&'static str>,
    ) -> Option<&'static Self> {
        let is_one = |pattern: &str| match pattern.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == pattern,
        };
        CLASSES.iter().find(|class| {
            let mut patterns = class.functions.iter().filter_map(|one| pattern(one));
            patterns.any(is_one)
        })
    }
}

/// Class of a sample, and the function or module that decides it.
fn class_of<'a>(stack: &'a CpuStack, own: Option<&String>) -> (&'static Class, Option<&'a str>) {
    if stack.functions.is_empty() && stack.process.is_some() {
        let is_own = stack.process.as_ref() == own;
        return (if is_own { &PROGRAM } else { &PROGRAMS }, None);
    }

    let known = stack.functions.iter().rev().find_map(|function| {
        let name = function.module.as_deref().unwrap_or(&function.name);
        Some((Class::of(function)?, Some(name)))
    });
    known.unwrap_or((&OTHER, None))
}

/// Samples of one CPU.
#[derive(Debug, Default)]
struct Samples<'a> {
    samples: u64,
    /// Those in which it was not idle, by class.
    classes: BTreeMap<&'static str, u64>,
    /// The same by class and function.
    functions: BTreeMap<(&'static str, &'a str), u64>,
}

/// Records the work of the busiest CPUs with enough samples: the shares of their classes, of the
/// time in which they were not idle.
pub(crate) fn record(profile: &CpuProfile, snapshot: &mut Snapshot) {
    let mut cpus: BTreeMap<u32, Samples<'_>> = BTreeMap::new();
    for stack in &profile.stacks {
        let work = cpus.entry(stack.cpu).or_default();
        work.classes.entry(CRYPTO).or_default();
        work.samples += stack.samples;
        let (class, function) = class_of(stack, profile.own.as_ref());
        // Soft interrupts run on an idle CPU as well.
        let is_idle = class.name == IDLE || (stack.process.is_none() && function.is_none());
        if !is_idle {
            *work.classes.entry(class.name).or_default() += stack.samples;
            if let Some(function) = function.filter(|_| class.is_named) {
                *work.functions.entry((class.name, function)).or_default() += stack.samples;
            }
        }
    }

    let mut cpus: Vec<_> = cpus
        .into_iter()
        .map(|(cpu, work)| (work.classes.values().sum::<u64>(), cpu, work))
        .filter(|(busy, ..)| *busy >= SAMPLES_MIN)
        .collect();
    // All CPUs are sampled equally often.
    cpus.sort_by_key(|(busy, ..)| std::cmp::Reverse(*busy));

    for (busy, cpu, work) in cpus.into_iter().take(CPUS_MAX) {
        let key = |fact: &str| format!("{PREFIX}{cpu}.{fact}");
        let busy_key = format!("{PREFIX}{cpu}{BUSY}");
        snapshot.set_in(busy_key, share(busy, work.samples), "share", SRC);
        for (class, samples) in &work.classes {
            snapshot.set_in(key(class), share(*samples, busy), "share", SRC);
            let of_class = work.functions.iter().filter(|((one, _), _)| one == class);
            let most = of_class.max_by_key(|(_, samples)| **samples);
            let function = most.map(|((_, function), _)| (*function).to_owned());
            snapshot.set_known(key(&format!("{class}.function")), function, SRC);
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    to_f64(part) / to_f64(whole.max(1))
}

/// Verdicts about CPUs, whose sentence ends with the work of the busiest one.
const OF_CPUS: [&str; 5] = [
    limit::SENDER_CPU,
    limit::RECEIVER_CPU,
    limit::RECEIVER_SOFTIRQ,
    limit::HOST_CPU,
    limit::OFFLOAD,
];

/// Adds the work of the busiest CPU to a verdict about CPUs, and its next step to the finding that
/// the verdict names.
pub(crate) fn explain(diagnosis: &mut Diagnosis) {
    let Diagnosis {
        verdict,
        findings,
        work,
        ..
    } = diagnosis;
    if !OF_CPUS.contains(&verdict.verdict.as_str()) {
        return;
    }
    let is_named = |finding: &&mut Finding| {
        let end = format!("({} on {})", finding.id, finding.subject);
        verdict.sentence.ends_with(&end)
    };
    let Some(finding) = findings.iter_mut().find(is_named) else {
        return;
    };

    let host = finding.subject.split(' ').next().unwrap_or_default();
    let Some(busiest) = work.iter().find(|work| work.host == host) else {
        return;
    };
    if let Some((plain, named)) = verdict.sentence.rsplit_once(" (") {
        let spent = classes(busiest)
            .take(NAMED_MAX)
            .collect::<Vec<_>>()
            .join(", ");
        verdict.sentence = format!("{plain}: CPU {} spends {spent} ({named}", busiest.cpu);
    }

    // The class that costs most has the next step; where nothing helps, the one after it.
    let mut steps = busiest
        .classes
        .iter()
        .filter_map(|share| Class::called(&share.class)?.next);
    if let Some(next) = steps.next() {
        let former = finding.advice.take();
        finding.advice =
            Some(former.map_or_else(|| next.to_owned(), |one| format!("{next}; {one}")));
    }
}

/// The classes in words: `23 % on netfilter (nft_do_chain)`.
pub(crate) fn classes(work: &CpuWork) -> impl Iterator<Item = String> {
    let large = |share: &&WorkShare| share.percent >= NAMED_PERCENT_MIN;
    work.classes.iter().filter(large).filter_map(|share| {
        let function = share.function.as_ref().map(|name| format!(" ({name})"));
        let words = Class::called(&share.class)?.words;
        let function = function.unwrap_or_default();
        Some(format!("{:.0} % on {words}{function}", share.percent))
    })
}

/// The work of all hosts, of each the busiest CPU first.
pub(crate) fn of_hosts(observed: &[Observed]) -> Vec<CpuWork> {
    observed
        .iter()
        .flat_map(|one| of_host(&one.snapshot))
        .collect()
}

/// Hosts whose CPUs were not sampled, with the reason.
pub(crate) fn unwatched(observed: &[Observed]) -> Vec<String> {
    let reason = |one: &Observed| {
        let reason = one.snapshot.text(UNWATCHED)?;
        Some(format!("{}: {reason}", one.snapshot.host))
    };
    observed.iter().filter_map(reason).collect()
}

fn of_host(snapshot: &Snapshot) -> Vec<CpuWork> {
    let percent = |key: &str| Some(snapshot.number(&format!("{PREFIX}{key}"))? * 100.0);
    let cpu = |(key, _): (&str, _)| {
        let cpu = key.strip_suffix(BUSY)?;
        let prefix = format!("{PREFIX}{cpu}.");
        let classes = snapshot.facts_under(&prefix).filter_map(|(class, _)| {
            let key = format!("{cpu}.{class}");
            Some(WorkShare {
                class: Class::called(class)?.name.to_owned(),
                percent: percent(&key).filter(|percent| *percent >= PERCENT_MIN)?,
                function: snapshot
                    .text(&format!("{PREFIX}{key}.function"))
                    .map(str::to_owned),
            })
        });

        let mut classes: Vec<WorkShare> = classes.collect();
        classes.sort_by(|a, b| b.percent.total_cmp(&a.percent));
        Some(CpuWork {
            host: snapshot.host.clone(),
            cpu: cpu.parse().ok()?,
            busy_percent: percent(key)?,
            classes,
        })
    };

    let mut work: Vec<CpuWork> = snapshot.facts_under(PREFIX).filter_map(cpu).collect();
    work.sort_by(|a, b| b.busy_percent.total_cmp(&a.busy_percent));
    work
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::{Confidence, Severity, Verdict};
    use linerate_model::snapshot::Source;

    use super::*;

    fn function(name: &str) -> Function {
        let (name, module) = name
            .split_once('@')
            .map_or((name, None), |(name, module)| (name, Some(module)));
        Function {
            name: name.to_owned(),
            module: module.map(str::to_owned),
        }
    }

    fn stack(cpu: u32, process: &str, functions: &str, samples: u64) -> CpuStack {
        let functions = functions
            .split(';')
            .filter(|name| !name.is_empty())
            .map(function);
        CpuStack {
            cpu,
            process: (!process.is_empty()).then(|| process.to_owned()),
            functions: functions.collect(),
            samples,
        }
    }

    #[test]
    fn every_class_has_its_columns() {
        let lines = include_str!("work.txt").lines();
        let rows: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
        assert_eq!(CLASSES.len(), rows.len());
        assert!(rows.iter().all(|line| line.split(" | ").count() == 5));
        assert!(Class::called(IDLE).is_some() && Class::called(DRIVER).is_some());
    }

    /// Stacks of several kernels: the innermost function that is known decides.
    #[test]
    fn stacks_of_old_and_new_kernels_have_their_class() {
        for (expected, functions) in [
            // Linux 4.18 and 5.10: RHEL 8, Debian 11.
            (
                "copy",
                "entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;tcp_recvmsg;copyout;copy_user_enhanced_fast_string",
            ),
            ("netfilter", "ip_rcv;nf_hook_slow;ipt_do_table@ip_tables"),
            (
                "memory",
                "tcp_sendmsg;sk_page_frag_refill;skb_page_frag_refill;__alloc_pages_nodemask;get_page_from_freelist",
            ),
            // Linux 5.14 to 6.8: RHEL 9, Ubuntu 22.04 and 24.04, Debian 12.
            (
                "copy",
                "do_syscall_64;__x64_sys_sendto;tcp_sendmsg;_copy_from_iter;copy_user_generic_string",
            ),
            (
                "netfilter",
                "ip_local_deliver;nf_hook_slow;nft_do_chain_ipv4@nf_tables;nft_do_chain@nf_tables;nft_meta_get_eval@nf_tables",
            ),
            (
                "gro",
                "net_rx_action;__napi_poll;napi_complete_done;napi_gro_receive;dev_gro_receive;inet_gro_receive;tcp4_gro_receive",
            ),
            (
                "driver",
                "net_rx_action;__napi_poll;mlx5e_napi_poll@mlx5_core;mlx5e_poll_rx_cq@mlx5_core",
            ),
            // Linux 6.12 and later: Debian 13.
            (
                "copy",
                "do_syscall_64;tcp_sendmsg_locked;skb_do_copy_data_nocache;_copy_from_iter;rep_movs_alternative",
            ),
            (
                "checksum",
                "tcp_write_xmit;veth_xmit;skb_checksum_help;skb_checksum;__skb_checksum;csum_partial",
            ),
            (
                "tunnel",
                "ip_local_out;vxlan_xmit@vxlan;vxlan_xmit_one@vxlan",
            ),
            (
                "crypto",
                "process_one_work;wg_packet_encrypt_worker@wireguard;chacha20poly1305_encrypt_sg_inplace;chacha_crypt_arch",
            ),
            // The module decides where no line has the name.
            (
                "crypto",
                "process_one_work;wg_packet_decrypt_worker@wireguard;decrypt_packet@wireguard",
            ),
            ("netfilter", "nf_hook_slow;tcp_packet@nf_conntrack"),
            (
                "qdisc",
                "__dev_queue_xmit;__qdisc_run;sch_direct_xmit;fq_dequeue@sch_fq",
            ),
            (
                "tcp",
                "tcp_v4_rcv;tcp_rcv_established;tcp_ack;_raw_spin_lock",
            ),
            ("udp", "udp_sendmsg;__ip_append_data;memcg_something"),
            ("ip", "ip_finish_output2;neigh_hh_output"),
            (
                "wakeup",
                "sock_def_readable;__wake_up_sync_key;try_to_wake_up;select_task_rq_fair",
            ),
            ("syscall", "entry_SYSCALL_64_after_hwframe"),
            ("timer", "hrtimer_interrupt;ktime_get_update_offsets_now"),
            ("other", "a_function_of_next_year"),
            ("program", ""),
        ] {
            let one = stack(0, "linerate", functions, 1);
            let (class, _) = class_of(&one, Some(&"linerate".to_owned()));
            assert_eq!(class.name, expected, "{functions}");
        }
        assert_eq!(class_of(&stack(0, "rustc", "", 1), None).0.name, "programs");
    }

    #[test]
    fn functions_of_released_kernels_have_their_class() {
        let lines = include_str!("../tests/kernels.txt").lines();
        let mut classes_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split(" | ").collect();
            let [class, releases, functions] = columns[..] else {
                panic!("{line}")
            };
            for name in functions.split(' ') {
                let found = Class::of(&function(name)).map(|class| class.name);
                assert_eq!(found, Some(class), "{name}");
            }
            let all = classes_of.entry(class).or_default();
            all.extend(releases.split(' '));
        }

        for class in CLASSES.iter() {
            let releases = classes_of.get(class.name).cloned().unwrap_or_default();
            let has_all = ["11", "12", "13"].iter().all(|one| releases.contains(one));
            assert!(has_all, "{}: {releases:?}", class.name);
        }
    }

    #[test]
    fn verdicts_about_cpus_end_with_the_work_of_the_busiest_one() {
        let mut snapshot = Snapshot::new("server", Source::Live);
        let stacks = vec![
            stack(0, "", "do_idle;default_idle", 900),
            stack(0, "", "do_idle;handle_softirqs;veth_poll", 300),
            stack(1, "linerate", "tcp_recvmsg;_copy_to_iter", 410),
            stack(1, "linerate", "nf_hook_slow;nft_do_chain", 200),
            stack(1, "linerate", "nf_hook_slow;nft_lookup_eval", 30),
            stack(1, "linerate", "dev_gro_receive", 120),
            stack(1, "linerate", "some_function", 100),
            stack(1, "linerate", "", 140),
            stack(2, "linerate", "tcp_recvmsg;_copy_to_iter", SAMPLES_MIN - 1),
        ];
        let own = Some("linerate".to_owned());
        record(&CpuProfile { own, stacks }, &mut snapshot);
        assert_eq!(snapshot.number("work.cpu.1.copy"), Some(0.41));
        assert_eq!(snapshot.number("work.cpu.0.busy_share"), Some(0.25));
        assert_eq!(snapshot.number("work.cpu.2.copy"), None, "too few samples");

        let finding = Finding {
            id: "CPU-02".into(),
            severity: Severity::High,
            confidence: Confidence::High,
            subject: "server test, client to server".into(),
            title: String::new(),
            evidence: Vec::new(),
            explanation: String::new(),
            remedy: Vec::new(),
            advice: Some("more streams".into()),
            undo: Vec::new(),
            remedy_host: None,
            persist: None,
            needs: Vec::new(),
            reference: String::new(),
            retest_after: None,
        };
        let end = "(CPU-02 on server test, client to server)";
        let verdict = |name: &str| Verdict {
            verdict: name.to_owned(),
            sentence: format!("the receiver is slow {end}"),
            ..Verdict::default()
        };

        let mut diagnosis = Diagnosis::new(verdict(limit::RECEIVER_CPU));
        diagnosis.findings = vec![finding];
        diagnosis.work = of_host(&snapshot);
        let busy: Vec<_> = diagnosis
            .work
            .iter()
            .map(|one| (one.cpu, one.busy_percent))
            .collect();
        assert_eq!(busy, [(1, 100.0), (0, 25.0)]);

        explain(&mut diagnosis);
        assert_eq!(
            diagnosis.verdict.sentence,
            format!(
                "the receiver is slow: CPU 1 spends 41 % on copying, 23 % on netfilter \
                 (nft_do_chain), 14 % on the program itself {end}"
            )
        );
        let advice = diagnosis.findings[0].advice.clone().unwrap_or_default();
        assert!(
            advice.starts_with("copy less") && advice.ends_with("; more streams"),
            "{advice}"
        );

        diagnosis.verdict = verdict(limit::PATH);
        explain(&mut diagnosis);
        assert_eq!(diagnosis.verdict, verdict(limit::PATH));
    }
}
