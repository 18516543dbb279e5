//! Goal: what starts agents is valid where it is used, and starts what the program understands.
//! Method: the tools that read these files, and the command lines in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_interop::{Process, ours, skip};
use serde_json::Value;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn text(name: &str) -> String {
    fs::read_to_string(packaging().join(name)).expect("a file of the repository")
}

/// Words behind the name of the program are a command line of `linerate`.
#[track_caller]
fn expect_understood(words: &[&str]) {
    let mut command = Command::new(ours().path());
    command.args(words).arg("--help");
    Process::start(command).finish().expect_code(0);
}

/// Calls systemd-analyze(1) on a copy of a unit whose program exists; `None` where it is not
/// installed.
fn analysed(unit: &str, words: &[&str]) -> Option<std::process::Output> {
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "linerate-agent.service",
        "linerate-fleet@.service",
        "linerate-fleet@.timer",
    ] {
        let text = text(name).replace("/usr/bin/linerate", "/bin/true");
        fs::write(folder.path().join(name), text).expect("written");
    }

    let file = folder.path().join(unit);
    let output = Command::new("systemd-analyze")
        .args(words)
        .arg(file)
        .output();
    if output.is_err() {
        skip("systemd-analyze is not installed (systemd)");
    }

    output.ok()
}

#[test]
fn units_are_valid_and_the_agent_is_hardened() {
    for (unit, command) in [
        (
            "linerate-agent.service",
            vec![
                "fleet",
                "agent",
                "--bus",
                "nats://127.0.0.1:4222",
                "--bus-creds",
                "x",
            ],
        ),
        (
            "linerate-fleet@.service",
            vec!["fleet", "run", "mesh", "-i", "lab.toml"],
        ),
    ] {
        let start = text(unit).lines().find_map(|line| {
            line.strip_prefix("ExecStart=/usr/bin/linerate ")
                .map(str::to_owned)
        });
        let start = start.expect("a command");
        let start = start
            .replace("${BUS}", "nats://127.0.0.1:4222")
            .replace("%d/bus.creds", "x");
        let start = start
            .replace("$RUN", "mesh")
            .replace("/etc/linerate/%i.toml", "lab.toml")
            .replace(" $OPTIONS", "");
        assert_eq!(start.split(' ').collect::<Vec<_>>(), command, "{unit}");
        expect_understood(&command);
    }

    for unit in [
        "linerate-agent.service",
        "linerate-fleet@.service",
        "linerate-fleet@.timer",
    ] {
        let Some(verified) = analysed(unit, &["verify", "--man=no"]) else {
            return;
        };
        assert!(
            verified.status.success() && verified.stderr.is_empty(),
            "{unit}: {verified:?}"
        );
    }

    // Tenths: a service without any restriction has 96, and 20 is the bound of "OK".
    let exposure = analysed(
        "linerate-agent.service",
        &["security", "--offline=true", "--threshold=20"],
    );
    assert!(
        exposure.is_some_and(|exposure| exposure.status.success()),
        "the unit exposes more than it has to"
    );
}

/// The documents of a YAML file, as JSON; `None` where no parser is installed.
fn yaml(name: &str) -> Option<Vec<Value>> {
    const TO_JSON: &str = "import json, sys, \
                           yaml\njson.dump(list(yaml.safe_load_all(open(sys.argv[1]))), \
                           sys.stdout)";

    let has_parser = Command::new("python3").args(["-c", "import yaml"]).output();
    if !has_parser.is_ok_and(|output| output.status.success()) {
        skip("no parser of YAML (python3-yaml)");
        return None;
    }

    let output = Command::new("python3")
        .args(["-c", TO_JSON])
        .arg(packaging().join(name))
        .output()
        .expect("python3");
    assert!(output.status.success(), "{name}: {output:?}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn daemon_sets_start_an_agent_in_the_network_of_nodes_and_of_pods() {
    let Some(documents) = yaml("kubernetes/linerate-agent.yaml") else {
        return;
    };
    let networks: Vec<&Value> = documents
        .iter()
        .map(|set| &set["spec"]["template"]["spec"]["hostNetwork"])
        .collect();
    assert_eq!(networks, [true, false]);

    let mut hosts = Vec::new();
    for set in &documents {
        assert_eq!(
            (&set["kind"], &set["apiVersion"]),
            (&"DaemonSet".into(), &"apps/v1".into()),
            "{set}"
        );
        let (labels, pod) = (
            &set["spec"]["template"]["metadata"]["labels"],
            &set["spec"]["template"]["spec"],
        );
        assert_eq!(&set["spec"]["selector"]["matchLabels"], labels, "{set}");

        let [container] = pod["containers"].as_array().expect("containers").as_slice() else {
            panic!("{set}")
        };
        assert_eq!(
            container["securityContext"]["readOnlyRootFilesystem"], true,
            "{container}"
        );

        let words: Vec<&str> = container["command"]
            .as_array()
            .expect("words")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let (program, words) = words.split_first().expect("a program");
        assert_eq!(*program, "/usr/bin/linerate");
        expect_understood(words);
        hosts.extend(words.last().map(|host| (*host).to_owned()));

        let volumes = pod["volumes"]
            .as_array()
            .expect("volumes")
            .iter()
            .map(|volume| &volume["name"]);
        let mounts = container["volumeMounts"]
            .as_array()
            .expect("mounts")
            .iter()
            .map(|mount| &mount["name"]);
        assert!(volumes.eq(mounts), "{pod}");
    }

    assert_eq!(
        hosts,
        ["$(NODE_NAME)", "pod-$(NODE_NAME)"],
        "two hosts of a fleet for each node"
    );
}

#[test]
fn role_of_ansible_copies_what_the_unit_reads_and_enables_it() {
    const ROLE: &str = "ansible/roles/linerate_agent";

    let Some(tasks) = yaml(&format!("{ROLE}/tasks/main.yml")) else {
        return;
    };
    let tasks = tasks[0].as_array().expect("tasks");
    let copied: Vec<&str> = tasks
        .iter()
        .flat_map(|task| {
            ["ansible.builtin.copy", "ansible.builtin.template"].map(|module| &task[module]["dest"])
        })
        .filter_map(Value::as_str)
        .collect();

    let unit = text("linerate-agent.service");
    for file in [
        "/usr/bin/linerate",
        "/etc/linerate/agent.creds",
        "/etc/default/linerate-agent",
    ] {
        assert!(
            copied.contains(&file) && unit.contains(file),
            "{file}: {copied:?}"
        );
    }

    let service = tasks
        .last()
        .map(|task| &task["ansible.builtin.systemd_service"])
        .expect("a task");
    assert_eq!(
        (&service["name"], &service["enabled"]),
        (&"linerate-agent.service".into(), &true.into())
    );
    let handlers = yaml(&format!("{ROLE}/handlers/main.yml")).expect("a parser");
    let handler = handlers[0][0]["name"].as_str();

    assert!(
        tasks
            .iter()
            .filter_map(|task| task["notify"].as_str())
            .all(|name| Some(name) == handler),
        "{handler:?}"
    );
    for file in ["defaults/main.yml", "meta/main.yml"] {
        assert!(
            yaml(&format!("{ROLE}/{file}")).is_some_and(|documents| documents[0].is_object()),
            "{file}"
        );
    }

    let playbook = packaging().join("ansible/linerate-agent.yml");
    let Ok(checked) = Command::new("ansible-playbook")
        .args(["--syntax-check", "-i", "localhost,"])
        .arg(playbook)
        .output()
    else {
        return skip("ansible-playbook is not installed (ansible-core)");
    };
    assert!(checked.status.success(), "{checked:?}");
}
