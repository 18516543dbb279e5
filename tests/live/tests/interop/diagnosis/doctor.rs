//! Goal: the doctor sees what is wrong with a live network and nothing else, and reads the same
//! facts as the tools people trust. Method: veth pairs in network namespaces of our own, traffic of
//! our own, one fault per test.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use linerate_interop::namespaces::{DEVICE, Net, SERVER, inside, run, try_run};
use linerate_interop::{
    Process, TIMEOUT, linerate, original, ours, skip, unsupported, wait_until, words,
};
use serde_json::Value;

fn ids(diagnosis: &Value) -> Vec<&str> {
    let findings = diagnosis["findings"].as_array().expect("findings");
    let serious = findings
        .iter()
        .filter(|finding| finding["severity"] != "info");

    // What this host dropped since it was started is no matter of a pair that was made just now.
    let of_pair = serious.filter(|finding| {
        (&finding["id"], &finding["confidence"]) != (&"SOFT-01".into(), &"low".into())
    });
    of_pair
        .map(|finding| finding["id"].as_str().expect("an id"))
        .collect()
}

/// Starts a test and waits until it sends.
fn sending(client: &Process) {
    client.wait_for_stdout("sec ", 1);
}

#[test]
fn an_idle_pair_is_healthy() {
    let Some(net) = Net::new() else { return };
    let diagnosis = net.doctor(&net.a, &[DEVICE]);
    assert_eq!(ids(&diagnosis), [""; 0], "{diagnosis:#}");
    assert_eq!(diagnosis["schema"], "linerate.doctor/1");
    assert_eq!(diagnosis["verdict"]["verdict"], "no-load");

    for list in ["ruled_out", "not_evaluated"] {
        assert!(
            !diagnosis[list].as_array().expect(list).is_empty(),
            "{list}"
        );
    }
}

#[test]
fn a_kept_diagnosis_is_shown_with_its_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db").display().to_string();
    let printed = linerate(&format!(
        "doctor lo --json --record=site=lab --store {store}"
    ))
    .finish();
    let diagnosis = printed.expect_code(0).json();
    let shown = linerate(&format!("history show last --json --store {store}")).finish();
    let record = shown.record();
    assert_eq!(
        (&record["kind"], &record["labels"]["site"]),
        (&"doctor".into(), &"lab".into()),
        "{record:#}"
    );
    assert_eq!(record["diagnosis"]["verdict"], diagnosis["verdict"]);
    assert!(
        record["hosts"][0]["role"] == "here" && record["hosts"][0]["snapshot"].is_object(),
        "{record:#}"
    );

    let page = linerate(&format!("history show last --store {store}")).finish();
    page.expect_clean()
        .expect_stdout(": diagnosis")
        .expect_stdout("What limits it");
    linerate(&format!("doctor lo --store {store}"))
        .finish()
        .expect_code(0);

    let list = linerate(&format!("history --csv --store {store}")).finish();
    assert_eq!(
        list.stdout.lines().count(),
        2,
        "only what was asked for: {list:?}"
    );
}

/// A report without a fact would look like one of a healthy host.
#[test]
fn unknown_input_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pasted.txt");

    let cases: [(&[u8], i32, &str); 7] = [
        (
            b"lorem ipsum\ndolor sit\n",
            1,
            "nothing in it was understood (2 lines, the first: ",
        ),
        (b"\xff\x00\xfe\n", 1, "nothing in it was understood"),
        (b"{\"a\": 1}\n", 1, "nothing in it was understood"),
        (b"", 1, "no facts in it"),
        (
            b"$ sysctl net.core.rmem_max\nnet.core.rmem_max = 212992\nlorem ipsum\n",
            0,
            ":3: lorem ipsum",
        ),
        (
            b"> $ sysctl net.core.rmem_max\r\n> net.core.rmem_max = 212992\r\n> lorem\r\n",
            0,
            ":3: lorem",
        ),
        (
            b"Hi,\n\tlr@a:~$ ethtool eth0\n\tNo data available\nbye\n",
            1,
            "the first: ",
        ),
    ];
    for (text, code, reason) in cases {
        fs::write(&path, text).expect("our folder");
        let judge = |name: &str| {
            let mut command = Command::new(ours().path());
            command.args(["doctor", "--from", name]);
            Process::start_reading(command, File::open(&path).expect("our file")).finish()
        };

        for name in ["-", path.to_str().expect("a plain name")] {
            let ended = judge(name);
            ended.expect_code(code);

            let text = if code == 0 {
                ended.stdout_unwrapped()
            } else {
                ended.stderr
            };
            assert!(text.contains(reason), "{text}");
        }
    }
}

#[test]
fn facts_are_listed_and_explained() {
    let explain = |words: &[&str]| {
        let mut command = Command::new(ours().path());
        command.args(["doctor", "--explain-fact"]).args(words);
        Process::start(command).finish()
    };
    let list = explain(&[]).expect_code(0).stdout.clone();
    assert!(list.contains("nic.*.ring.*.cur"), "{list}");

    let one = explain(&["nic.eth0.100.ring.rx.cur"])
        .expect_code(0)
        .stdout
        .clone();
    assert!(one.contains("desc") && one.contains("ethtool -g"), "{one}");
    explain(&["no.such.fact"])
        .expect_code(2)
        .expect_stderr("there is no fact no.such.fact");
}

#[test]
fn left_over_shaper_is_found() {
    for rate in ["100mbit", "1gbit"] {
        let Some(net) = Net::new() else { return };
        let shaper = format!("root tbf rate {rate} burst 256kb latency 50ms");
        run(&format!("tc -n {} qdisc add dev {DEVICE} {shaper}", net.a));

        let _server = net.server();
        let client = net.client(&["-t", "30"]);
        sending(&client);

        let diagnosis = net.doctor(&net.a, &[DEVICE, "--window", "4s"]);
        let found = ids(&diagnosis);
        let findings = diagnosis["findings"].as_array().expect("findings");
        assert!(
            findings.iter().any(|finding| finding["id"] == "QD-01"),
            "{rate}: {diagnosis:#}"
        );

        // Where BBR is the default, it paces without fq. Segments overtake where the sender moves
        // between CPUs.
        let expected =
            |id: &&str| matches!(*id, "QD-01" | "QD-05" | "CPU-02" | "CPU-09" | "PATH-07");
        assert!(found.iter().all(expected), "{rate}: {found:?}");
        assert_eq!(diagnosis["verdict"]["verdict"], "configured-rate", "{rate}");
    }
}

#[test]
fn timed_datagrams_that_overflow_a_socket_are_no_loss_of_the_network() {
    let Some(net) = Net::new() else { return };
    let overflows = || {
        let snapshot = net.snapshot(&net.b, &[DEVICE]);
        snapshot["counters"]["net.snmp.Udp.RcvbufErrors"]["v"]
            .as_u64()
            .expect("a counter")
    };

    let _server = net.server();
    let before = overflows();
    // The original sends one datagram per call. With segmentation offload a whole batch shares one
    // buffer on a veth pair, and the kernel counts its overflow once.
    let words = [
        "-c", SERVER, "-u", "-b", "0", "-l", "200", "-w", "4K", "-t", "8", "-J",
    ];
    let client = Process::start(inside(&net.a, original().path(), &words));

    assert!(
        wait_until(TIMEOUT, || overflows() > before),
        "no datagram was lost"
    );
    let diagnosis = net.doctor(&net.b, &[DEVICE, "--window", "3s"]);
    assert!(ids(&diagnosis).contains(&"UDP-01"), "{diagnosis:#}");

    let report = client.finish().json();
    let lost = report["end"]["sum_received"]["lost_packets"]
        .as_f64()
        .or_else(|| report["end"]["sum"]["lost_packets"].as_f64())
        .expect("a loss");
    #[expect(clippy::cast_precision_loss, reason = "counts of one test")]
    let dropped = (overflows() - before) as f64;
    assert!(
        (dropped - lost).abs() <= 0.01 * lost,
        "{dropped} dropped by the socket, {lost} reported as lost"
    );
}

#[test]
fn two_sizes_of_packets_are_seen_from_both_snapshots() {
    let Some(net) = Net::new() else { return };
    run(&format!("ip -n {} link set {DEVICE} mtu 1400", net.b));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let save = |namespace: &str, name: &str| {
        let path = directory
            .path()
            .join(name)
            .to_str()
            .expect("a path")
            .to_owned();
        net.doctor(namespace, &[DEVICE, "--save", &path]);
        path
    };
    let (a, b) = (save(&net.a, "a.json"), save(&net.b, "b.json"));
    let diagnosis = net.doctor(&net.a, &["--from", &a, "--from", &b]);
    assert_eq!(ids(&diagnosis), ["MTU-01", "MTU-01"], "{diagnosis:#}");

    let compared = net.doctor(&net.a, &["--diff", &a, &b]);
    let first = &compared["differences"][0];
    assert_eq!(
        (&first["key"], &first["a"], &first["b"]),
        (&"nic.*.net.mtu".into(), &"1500".into(), &"1400".into())
    );
    run(&format!("ip -n {} link set {DEVICE} mtu 1500", net.b));

    let b = save(&net.b, "c.json");
    assert_eq!(
        ids(&net.doctor(&net.a, &["--from", &a, "--from", &b])),
        [""; 0]
    );
}

#[test]
fn facts_agree_with_ethtool_ip_and_tc() {
    if !try_run("ethtool --version") {
        return skip("ethtool is not installed");
    }

    let Some(net) = Net::new() else { return };
    let shaper = "root tbf rate 50mbit burst 32kb latency 50ms";
    run(&format!("tc -n {} qdisc add dev {DEVICE} {shaper}", net.a));

    let directory = tempfile::tempdir().expect("a temporary directory");
    let commands = [
        "ethtool lr0",
        "ethtool -k lr0",
        "ethtool -g lr0",
        "ethtool -l lr0",
        "ethtool -a lr0",
        "ethtool -c lr0",
        "ethtool -i lr0",
        "ip link show lr0",
        "tc qdisc show dev lr0",
    ];

    let mut text = String::new();
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let output = inside(&net.a, Path::new(words[0]), &words[1..])
            .output()
            .expect("the tool runs");
        let output = [output.stdout, output.stderr].concat();
        text += &format!(
            "### host=h cmd={command}\n{}\n",
            String::from_utf8_lossy(&output)
        );
    }

    let pasted = directory.path().join("pasted.txt");
    std::fs::write(&pasted, text).expect("a writable directory");
    let facts = |words: &[&str]| net.snapshot(&net.a, words)["facts"].clone();
    let (live, imported) = (
        facts(&[DEVICE]),
        facts(&["--from", pasted.to_str().expect("a path")]),
    );
    let mut compared = 0;

    for (key, fact) in imported.as_object().expect("facts") {
        let described_otherwise =
            key.contains(".qdisc.") && (key.ends_with(".burst") || key.ends_with(".command"));
        if described_otherwise || fact.get("v").is_none() || live[key].get("v").is_none() {
            continue;
        }

        compared += 1;
        match (fact["v"].as_f64(), live[key]["v"].as_f64()) {
            (Some(x), Some(y)) => assert!((x - y).abs() < 1e-6, "{key}: {fact} {}", live[key]),
            _ => assert_eq!(
                fact["v"].to_string().trim_end_matches(":\""),
                live[key]["v"].to_string().trim_end_matches(":\""),
                "{key}"
            ),
        }
    }

    assert!(compared > 50, "only {compared} facts in common");
}

/// An interface of this machine with a device behind it.
fn own_device() -> Option<String> {
    let interfaces = std::fs::read_dir("/sys/class/net").ok()?.flatten();
    let mut with_device = interfaces.filter(|entry| entry.path().join("device").exists());
    let found = with_device.find_map(|entry| entry.file_name().into_string().ok());
    if found.is_none() {
        unsupported("no interface of this machine has a device");
    }
    found
}

fn diagnosis_of(words: &[&str]) -> Value {
    linerate(&format!("doctor --json {}", words.join(" ")))
        .finish()
        .json()
}

#[test]
fn a_device_with_one_queue_is_named() {
    let Some(device) = own_device() else { return };
    let queues = std::fs::read_dir(format!("/sys/class/net/{device}/queues"))
        .expect("queues")
        .flatten();
    let receive = queues
        .filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-"))
        .count();
    let diagnosis = diagnosis_of(&[&device]);
    let findings = diagnosis["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["id"] == "CHN-03");
    assert_eq!(
        found.is_some(),
        receive == 1,
        "{receive} queues: {diagnosis:#}"
    );

    if let Some(finding) = found {
        assert_eq!(finding["severity"], "info", "without load it is no fault");
    }
}

#[test]
fn facts_of_the_bus_agree_with_lspci() {
    let Some(device) = own_device() else { return };
    if !try_run("lspci --version") {
        return skip("lspci is not installed");
    }

    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("a path")
            .to_owned()
    };
    let facts = |words: &[&str], file: &str| -> Value {
        diagnosis_of(&[words, &["--save", file]].concat());
        let snapshot: Value =
            serde_json::from_str(&std::fs::read_to_string(file).expect("saved")).expect("JSON");
        snapshot["facts"].clone()
    };
    let live = facts(&[&device], &file("live.json"));
    let key = |fact: &str| format!("nic.{device}.pci.{fact}");
    let Some(address) = live[key("addr")]["v"].as_str() else {
        unsupported("the device is not on the PCI bus");
        return;
    };
    let output = std::process::Command::new("lspci")
        .args(["-vv", "-s", address])
        .output()
        .expect("lspci runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(address.trim_start_matches("0000:")), "{text}");

    let pasted = file("pasted.txt");
    std::fs::write(
        &pasted,
        format!("### host=h cmd=lspci -vv -s {address}\n{text}"),
    )
    .expect("writable");
    let imported = facts(&["--from", &pasted], &file("imported.json"));
    let of_tool = |fact: &str| {
        let mut all = imported.as_object().expect("facts").iter();
        all.find(|(known, _)| known.ends_with(&format!("pci.{fact}")))
            .map(|(_, known)| known["v"].clone())
    };

    // Both read the same registers, or neither does.
    let read_by_both = words(
        "cur_speed_gts cur_width max_speed_gts max_width mps_bytes mps_supported_bytes mrrs_bytes \
         aspm",
    );
    for fact in read_by_both {
        assert_eq!(
            of_tool(fact).as_ref(),
            live[key(fact)].get("v"),
            "{fact}: {text}"
        );
        let is_explained =
            live[key(fact)].get("v").is_some() || live[key(fact)]["absent"].is_string();
        assert!(is_explained, "{fact}: {}", live[key(fact)]);
    }

    assert_eq!(
        live[key("iommu")]["v"] == "off",
        !text.contains("IOMMU group"),
        "{text}"
    );
    let node = text
        .split("NUMA node: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    if let Some(node) = node {
        assert_eq!(
            live[format!("nic.{device}.numa.node")]["v"].to_string(),
            node,
            "{text}"
        );
    }
}

/// Facts of an interface in a namespace.
fn facts_of(net: &Net, namespace: &str) -> Value {
    net.snapshot(namespace, &[DEVICE])["facts"].clone()
}

#[test]
fn a_class_that_was_left_behind_is_found() {
    let Some(net) = Net::new() else { return };
    let tc = |words: &str| run(&format!("tc -n {} {words}", net.a));
    tc(&format!(
        "qdisc add dev {DEVICE} root handle 1: htb default 10"
    ));

    let class = |words: &str| tc(&format!("class add dev {DEVICE} parent {words}"));
    class("1: classid 1:1 htb rate 200mbit");
    // What may be borrowed limits, not what is guaranteed.
    class("1:1 classid 1:10 htb rate 20mbit ceil 100mbit burst 256kb cburst 256kb");

    let facts = facts_of(&net, &net.a);
    assert_eq!(facts["nic.lr0.qdisc.root.rate_bps"]["v"], 1e8, "{facts:#}");
    let _server = net.server();
    let client = net.client(&["-t", "30"]);
    sending(&client);

    let diagnosis = net.doctor(&net.a, &[DEVICE, "--window", "4s"]);
    assert!(ids(&diagnosis).contains(&"QD-01"), "{diagnosis:#}");
    assert_eq!(
        diagnosis["verdict"]["verdict"], "configured-rate",
        "{diagnosis:#}"
    );

    let share = diagnosis["verdict"]["share_of_time_percent"].as_u64();
    assert!(share > Some(50), "{diagnosis:#}");
}

#[test]
fn address_that_another_host_has_is_found() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "ip -n {} addr add 2001:db8::1/64 dev {DEVICE} nodad",
        net.b
    ));
    run(&format!(
        "ip -n {} addr add 2001:db8::1/64 dev {DEVICE}",
        net.a
    ));

    // The kernel takes about a second to detect it.
    assert!(
        wait_until(TIMEOUT, || ids(&net.doctor(&net.a, &[DEVICE]))
            .contains(&"ADDR-01")),
        "no duplicate address"
    );
}

#[test]
fn next_hop_and_queue_are_recorded() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root pfifo limit 7",
        net.a
    ));
    let address = "02:00:00:00:00:77";
    run(&format!(
        "ip -n {} neigh replace {SERVER} lladdr {address} dev {DEVICE}",
        net.a
    ));

    let facts = net.snapshot(&net.a, &[DEVICE, "--to", SERVER])["facts"].clone();
    assert_eq!(facts["route.peer.lladdr"]["v"], address, "{facts:#}");
    assert_eq!(facts["nic.lr0.qdisc.root.limit"]["v"], 7, "{facts:#}");
    assert_eq!(
        facts["nic.lr0.qdisc.root.limit"]["u"], "packets",
        "{facts:#}"
    );
    assert!(
        facts["nic.lr0.net.gso_max_segs"]["v"].as_u64() > Some(0),
        "{facts:#}"
    );
}

#[test]
fn test_of_another_program_is_observed_at_both_ends() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let client = net.client(&["-t", "30", "-P", "2"]);
    sending(&client);

    for (namespace, end) in [(&net.a, "sender"), (&net.b, "receiver")] {
        let facts = net.snapshot(namespace, &[DEVICE, "--window", "1s"])["facts"].clone();
        for (fact, expected) in [("tool", "other"), ("transport", "tcp"), ("end", end)] {
            assert_eq!(facts[format!("run.0.{fact}")]["v"], expected, "{facts:#}");
        }

        assert_eq!(facts["run.0.streams"]["v"], 2, "{facts:#}");
        assert!(
            facts["run.0.received_bps"]["v"].as_f64() > Some(1e6),
            "{facts:#}"
        );
        let busy = facts["run.0.busy_share"]["v"].as_f64();
        assert_eq!(busy.is_some(), end == "sender", "{facts:#}");
    }
}

#[test]
fn filters_and_rules_of_the_firewall_are_counted() {
    let Some(net) = Net::new() else { return };
    let before = facts_of(&net, &net.a);
    assert_eq!(before["nic.lr0.qdisc.filter.count"]["v"], 0, "{before:#}");

    let tc = |words: &str| run(&format!("tc -n {} {words}", net.a));
    tc(&format!("qdisc add dev {DEVICE} ingress"));

    for (priority, source) in [("3", "192.0.2.1"), ("4", "192.0.2.2")] {
        let matched = format!("u32 match ip src {source} flowid :1");
        tc(&format!(
            "filter add dev {DEVICE} parent ffff: protocol ip prio {priority} {matched}"
        ));
    }

    let facts = facts_of(&net, &net.a);
    assert_eq!(facts["nic.lr0.qdisc.filter.count"]["v"], 2, "{facts:#}");
    assert_eq!(
        facts["nic.lr0.qdisc.filter.priorities"]["v"], 2,
        "{facts:#}"
    );
    assert_eq!(facts["nic.lr0.qdisc.filter.kinds"]["v"], "u32", "{facts:#}");

    let nft = |words: &[&str]| {
        let ran = inside(&net.a, Path::new("nft"), words).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    if !nft(&["add", "table", "inet", "lr"]) {
        unsupported("nft is not installed, or the kernel has no nf_tables");
        return;
    }

    assert!(nft(&["add", "chain", "inet", "lr", "c"]));
    for port in ["1", "2", "3"] {
        assert!(nft(&[
            "add", "rule", "inet", "lr", "c", "tcp", "dport", port, "accept"
        ]));
    }

    let facts = facts_of(&net, &net.a);
    assert_eq!(facts["svc.firewall_rules"]["v"], 3, "{facts:#}");
    assert_eq!(facts["svc.conntrack"]["v"], false, "{facts:#}");
    assert_eq!(facts["firewall.uncounted_drops"]["v"], false, "{facts:#}");

    let hook = "{ type filter hook output priority 0; policy accept; }";
    assert!(nft(&["add", "chain", "inet", "lr", "out", hook]));
    assert!(nft(&[
        "add", "rule", "inet", "lr", "out", "tcp", "dport", "9", "counter", "reject"
    ]));
    assert!(nft(&[
        "add", "rule", "inet", "lr", "out", "tcp", "dport", "10", "drop"
    ]));

    let refused = inside(&net.a, ours().path(), &["iperf3", "-c", SERVER, "-p", "9"])
        .output()
        .expect("linerate runs");
    assert!(!refused.status.success());
    let snapshot = net.snapshot(&net.a, &[DEVICE]);
    assert!(
        snapshot["counters"]["firewall.drops"]["v"].as_u64() > Some(0),
        "{snapshot:#}"
    );

    let rule = snapshot["facts"]["firewall.rule.drops"]["v"].as_str();
    assert!(
        rule.is_some_and(|rule| rule.starts_with("inet lr out handle ")),
        "{snapshot:#}"
    );
    assert_eq!(
        snapshot["facts"]["firewall.uncounted_drops"]["v"], true,
        "{snapshot:#}"
    );
}
