//! Goal: the verdict on a test names the part that limits it, and a finding that stands in the list. Method: one fault in
//! network namespaces of our own: at one of the two hosts, or at a bridge between them.

use std::process::Command;
use std::thread::available_parallelism;

use linerate_interop::namespaces::{CLIENT_PORT, DEVICE, Net, SERVER_PORT, inside, run, try_run};
use linerate_interop::{Process, original, skip};
use serde_json::Value;

/// The diagnosis of a test of ours against ours.
fn diagnosis(net: &Net, words: &[&str]) -> Value {
    let _server = net.server();
    let report = net.client(&[&["-J", "--lr-doctor", "-t", "5"], words].concat()).finish().json();
    report["lr_doctor"].clone()
}

/// The verdict is this one, and the finding it names is in the list; returns that finding.
#[track_caller]
fn explained<'a>(diagnosis: &'a Value, verdict: &str, id: &str) -> &'a Value {
    assert_eq!(diagnosis["verdict"]["verdict"], verdict, "{diagnosis:#}");
    let sentence = diagnosis["verdict"]["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains(id), "{sentence}");
    let of_rule = |list: &str| diagnosis[list].as_array().into_iter().flatten().filter(|rule| rule["id"] == id);
    let finding = of_rule("findings").next().unwrap_or_else(|| panic!("no {id}: {diagnosis:#}"));
    for list in ["ruled_out", "not_evaluated"] {
        // A rule about one of the hosts is applied to the other as well.
        let is_here = of_rule(list).any(|rule| rule["subject"] == finding["subject"]);
        assert!(!is_here, "{id} is also in {list}: {diagnosis:#}");
    }
    finding
}

#[test]
fn a_narrow_hop_between_the_hosts_is_the_path() {
    let Some(net) = Net::bridged() else { return };
    let middle = net.middle.as_deref().unwrap_or_default();
    run(&format!("tc -n {middle} qdisc add dev {SERVER_PORT} root tbf rate 100mbit burst 32k limit 500000"));
    for words in [&["-C", "cubic"][..], &["-C", "bbr"]] {
        let diagnosis = diagnosis(&net, words);
        explained(&diagnosis, "path", "PATH-10");
    }
}

#[test]
fn a_policer_between_the_hosts_is_the_path() {
    let Some(net) = Net::bridged() else { return };
    let middle = net.middle.as_deref().unwrap_or_default();
    let rules = format!(
        "table bridge t {{ chain c {{ type filter hook forward priority 0; \
         iifname {CLIENT_PORT} limit rate over 25 mbytes/second burst 200 kbytes drop; }}; }}"
    );
    let mut nft = Command::new("ip");
    nft.args(["netns", "exec", middle, "nft", &rules]);
    if !nft.output().is_ok_and(|output| output.status.success()) {
        return skip("nftables has no limits on a bridge");
    }
    let diagnosis = diagnosis(&net, &["-C", "cubic"]);
    let finding = explained(&diagnosis, "path", "PATH-10");
    let evidence = finding["evidence"].to_string();
    assert!(evidence.contains("retransmit_share"), "{evidence}");
}

#[test]
fn a_small_maximum_of_the_receive_buffer_is_the_window() {
    let Some(net) = Net::new() else { return };
    let mut sysctl = Command::new("ip");
    sysctl.args(["netns", "exec", &net.b, "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 16384 16384"]);
    assert!(sysctl.status().expect("sysctl").success());
    let diagnosis = diagnosis(&net, &["-C", "cubic"]);
    let finding = explained(&diagnosis, "receiver-window", "WIN-01");
    assert!(finding["remedy"].to_string().contains("net.ipv4.tcp_rmem"), "{finding:#}");
    assert!(finding["undo"].to_string().contains("4096 16384 16384"), "{finding:#}");
}

#[test]
fn a_rule_of_the_firewall_that_drops_is_named() {
    let Some(net) = Net::new() else { return };
    let rules = "table ip t { chain c { type filter hook input priority 0; \
                 meta l4proto udp numgen random mod 20 == 0 counter drop; }; }";
    let mut nft = Command::new("ip");
    nft.args(["netns", "exec", &net.b, "nft", rules]);
    assert!(nft.output().is_ok_and(|output| output.status.success()), "nft");
    let diagnosis = diagnosis(&net, &["-u", "-b", "50M"]);
    let found = explained(&diagnosis, "firewall", "FW-01");
    assert!(found["evidence"].to_string().contains("ip t c"), "{found:#}");
    let split = &diagnosis["loss"][0];
    let [firewall, lost] = ["firewall", "lost"].map(|part| split[part].as_u64().expect("a number"));
    // The firewall is read before and after the data flow.
    assert!(firewall * 10 > lost * 9, "{split}");
}

#[test]
fn datagrams_lost_between_the_hosts_are_the_path() {
    let Some(net) = Net::bridged() else { return };
    let middle = net.middle.as_deref().unwrap_or_default();
    run(&format!("tc -n {middle} qdisc add dev {SERVER_PORT} root tbf rate 50mbit burst 32k limit 100000"));
    let words = ["-u", "-b", "100M"];
    explained(&diagnosis(&net, &words), "path", "PATH-11");
    // The original reports nothing of its host.
    let server = Process::start(inside(&net.b, original().path(), &["-s", "--forceflush"]));
    server.wait_for_stdout("Server listening", 1);
    let report = net.client(&[&["-J", "--lr-doctor", "-t", "5"], &words[..]].concat()).finish().json();
    let finding = explained(&report["lr_doctor"], "path-or-receiver", "PATH-11");
    assert!(finding["advice"].to_string().contains("UdpRcvbufErrors"), "{finding:#}");
}

#[test]
fn a_shaper_that_holds_a_sender_of_datagrams_is_the_limit() {
    let Some(net) = Net::new() else { return };
    run(&format!("tc -n {} qdisc add dev {DEVICE} root tbf rate 50mbit burst 32k latency 50ms", net.a));
    for words in [&["-u", "-b", "100M"][..], &["-u", "-b", "100M", "-l", "200"]] {
        explained(&diagnosis(&net, words), "configured-rate", "QD-01");
    }
}

#[test]
fn programs_that_use_the_cpu_of_one_end_are_named() {
    if available_parallelism().map_or(1, usize::from) < 2 || !try_run("taskset -c 1 true") {
        return skip("needs CPUs 0 and 1");
    }
    let Some(net) = Net::new() else { return };
    let burners: Vec<Process> = (0..2)
        .map(|_| {
            let mut burner = Command::new("taskset");
            burner.args(["-c", "1", "sh", "-c", "while :; do :; done"]);
            Process::start(burner)
        })
        .collect();
    let diagnosis = diagnosis(&net, &["-A", "0,1"]);
    drop(burners);
    let finding = explained(&diagnosis, "other-programs", "CPU-07");
    assert!(finding["evidence"].to_string().contains("sh"), "{finding:#}");
}

#[test]
fn the_cpus_limit_a_test_over_a_virtual_pair() {
    let Some(net) = Net::new() else { return };
    for words in [&["-C", "cubic"][..], &["-C", "cubic", "-R"], &["-C", "cubic", "-P", "4"]] {
        let diagnosis = diagnosis(&net, words);
        let verdict = diagnosis["verdict"]["verdict"].as_str().unwrap_or_default();
        assert!(matches!(verdict, "host-cpu" | "other-programs" | "cpu-steal"), "{words:?} on {DEVICE}: {diagnosis:#}");
    }
}
