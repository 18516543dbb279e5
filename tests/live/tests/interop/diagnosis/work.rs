//! Goal: a diagnosis names what the CPUs of a test do. Method: a test in network namespaces of our
//! own whose hosts have one reason for work, which the busiest CPU then has most of, or much.

use std::fs;
use std::path::Path;
use std::time::Duration;

use linerate_interop::namespaces::{Net, SERVER, inside};
use linerate_interop::{NativeHost, unsupported, words};
use serde_json::Value;

/// Diagnosis of a test over a pair of namespaces in which a shell made a cause; `None` where it
/// cannot be made here.
fn diagnosis(made_by: [&str; 2], options: &str) -> Option<Value> {
    let net = Net::new()?;
    for (namespace, command) in [&net.a, &net.b].into_iter().zip(made_by) {
        let made = inside(namespace, Path::new("sh"), &["-ec", command])
            .output()
            .expect("sh");
        if !made.status.success() {
            unsupported(&format!(
                "{command}: {}",
                String::from_utf8_lossy(&made.stderr).trim()
            ));
            return None;
        }
    }

    let _server = net.server();
    let options = [&["-J", "--lr-doctor", "-t", "5"][..], &words(options)].concat();
    Some(net.client(&options).finish().json()["lr_doctor"].clone())
}

/// Percent of a class on the CPU that has most of it, of the time that other programs left, with its
/// function.
fn most(diagnosis: &Value, class: &str) -> (f64, String) {
    let work = diagnosis["work"].as_array().cloned().unwrap_or_default();
    let of_class = work.iter().filter_map(|cpu| {
        let classes = cpu["classes"].as_array()?;
        let find = |name: &str| classes.iter().find(|share| share["class"] == name);
        let others = find("programs").and_then(|share| share["percent"].as_f64());
        let share = find(class)?;
        let percent = share["percent"].as_f64()? * 100.0 / (100.0 - others.unwrap_or(0.0));
        Some((
            percent,
            share["function"].as_str().unwrap_or_default().to_owned(),
        ))
    });
    of_class
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .unwrap_or_default()
}

#[track_caller]
fn assert_most(diagnosis: &Value, class: &str, percent_min: f64) {
    let (percent, _) = most(diagnosis, class);
    assert!(
        percent >= percent_min,
        "{class}: {percent} %: {:#}",
        diagnosis["work"]
    );
}

/// Rules before the one that accepts: every packet is compared with all of them.
#[test]
fn timed_many_rules_are_netfilter() {
    let rules = "{ echo 'add table inet t'; \
                 echo 'add chain inet t i { type filter hook input priority 0; }'; \
                 seq 10000 | sed 's/.*/add rule inet t i ip saddr 192.0.2.1 tcp dport & drop/'; \
                 } | nft -f -";
    let Some(diagnosis) = diagnosis(["", rules], "") else {
        return;
    };
    assert_most(&diagnosis, "netfilter", 30.0);
    let (_, function) = most(&diagnosis, "netfilter");
    assert!(function.starts_with("nf"), "{function}");
    let sentence = diagnosis["verdict"]["sentence"]
        .as_str()
        .unwrap_or_default();
    let is_of_cpus = !["other-programs", "unknown"]
        .map(Value::from)
        .contains(&diagnosis["verdict"]["verdict"]);
    assert!(
        !is_of_cpus || sentence.contains("% on netfilter (nf"),
        "{sentence}"
    );
}

#[test]
fn timed_streams_of_large_writes_are_copying() {
    let Some(diagnosis) = diagnosis(["", ""], "") else {
        return;
    };
    assert_most(&diagnosis, "copy", 15.0);
}

#[test]
fn timed_small_writes_are_system_calls_and_tcp() {
    let Some(diagnosis) = diagnosis(["", ""], "-l 32 -N") else {
        return;
    };
    let (syscalls, tcp) = (most(&diagnosis, "syscall").0, most(&diagnosis, "tcp").0);
    let (copy, _) = most(&diagnosis, "copy");
    assert!(
        syscalls + tcp > copy && tcp > 5.0,
        "{:#}",
        diagnosis["work"]
    );
}

#[test]
fn timed_checksums_without_an_offload_are_named() {
    let off = "ethtool -K lr0 tx off";
    let Some(diagnosis) = diagnosis([off, off], "") else {
        return;
    };
    assert_most(&diagnosis, "checksum", 3.0);
}

#[test]
fn timed_a_tunnel_is_named() {
    let end = |own: &str, other: &str, inner: &str| {
        format!(
            "ip link add vx0 type vxlan id 7 local {own} remote {other} dstport 4789; \
             ip addr add {inner}/24 dev vx0; ip link set vx0 up"
        )
    };
    let ends = [
        end("10.99.0.1", "10.99.0.2", "10.95.0.1"),
        end("10.99.0.2", "10.99.0.1", "10.95.0.2"),
    ];
    let Some(diagnosis) = diagnosis([&ends[0], &ends[1]], "-c 10.95.0.2 -M 1000") else {
        return;
    };
    assert_most(&diagnosis, "tunnel", 1.0);
}

#[test]
fn timed_a_shared_cpu_has_the_work_of_both_ends() {
    let Some(diagnosis) = diagnosis(["", ""], "-A 0,0") else {
        return;
    };
    // Both CPUs may be busy with other programs.
    let own = |number: u32| {
        let work = diagnosis["work"].as_array().into_iter().flatten();
        let mut cpus = work.filter(|cpu| cpu["host"] == "client" && cpu["cpu"] == number);
        let Some(cpu) = cpus.next() else { return 0.0 };
        let classes = cpu["classes"].as_array().into_iter().flatten();
        let others = classes.filter(|share| share["class"] == "programs");
        let others: f64 = others.filter_map(|share| share["percent"].as_f64()).sum();
        cpu["busy_percent"].as_f64().unwrap_or(0.0) * (1.0 - others / 100.0)
    };
    assert!(
        own(0) > 2.0 * own(1) && own(0) > 30.0,
        "{:#}",
        diagnosis["work"]
    );
}

/// The name of a program and its functions are in the text of a graph.
fn assert_drawn(file: &Path) {
    let drawn = fs::read_to_string(file).expect("a flame graph");
    assert!(drawn.starts_with("<?xml"), "{drawn:.200}");
    for name in ["linerate", "tcp_"] {
        assert!(drawn.contains(name), "no {name}: {drawn:.2000}");
    }
}

#[test]
fn a_client_of_iperf3_draws_what_its_host_did() {
    let Some(net) = Net::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("flame.svg");
    let _server = net.server();

    let options = ["-t", "4", "-J", "--lr-flame"];
    let options = [&options[..], &[file.to_str().expect("UTF-8")]].concat();
    let report = net.client(&options).finish().expect_code(0).json();
    // The option implies --lr-doctor.
    assert!(report["lr_doctor"].is_object(), "{report:#}");
    assert_drawn(&file);
}

#[test]
fn a_test_of_a_path_draws_what_its_host_did_during_the_loads() {
    let Some(net) = Net::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("flame.svg");
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&[]);

    let options = words("-q --only down,up -t 3 --flame");
    let options = [&options[..], &[file.to_str().expect("UTF-8")]].concat();
    let test = client.test(SERVER, &options);
    test.finish_within(Duration::from_secs(60)).expect_code(0);
    assert_drawn(&file);
}
