//! Inventories of all formats, and what is refused with its line.

use super::*;

const CLASSROOM: &str = r#"
[fleet]
name = "classroom"
ports = "5301-5309"
[racks.r1]
uplink = "40G"
[racks.r2]
crossing = 4
[[host]]
name = "nas"
ssh = "admin@nas.mgmt"
rack = "r1"
labels = { role = "server" }
paths = { phys = "10.0.0.7", vf = "10.0.1.7" }
[[host]]
name = "pc[01-03]"
rack = "r2"
paths = { phys = "10.0.0.[101-103]" }
[[host]]
name = "core-iperf"
server = "10.0.0.250:5201"
"#;

fn error(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn hosts(text: &str) -> Vec<(String, Reach)> {
    let inventory = parse(text).expect(text);
    inventory
        .hosts
        .into_iter()
        .map(|host| (host.id.to_string(), host.reach))
        .collect()
}

fn ssh(id: &str, destination: &str) -> (String, Reach) {
    (id.to_owned(), Reach::Ssh(destination.to_owned()))
}

#[test]
fn toml_expands_names_with_their_addresses() {
    let inventory = parse(CLASSROOM).expect("an inventory");
    assert_eq!(inventory.name.as_deref(), Some("classroom"));
    assert_eq!(
        inventory.ports,
        Ports {
            first: 5301,
            last: 5309
        }
    );
    assert_eq!(inventory.control, Control::Separate, "paths are given");
    assert_eq!(
        inventory.racks.get("r1").and_then(|rack| rack.uplink_bps),
        Some(40_000_000_000)
    );
    assert_eq!(
        inventory.racks.get("r2").and_then(|rack| rack.crossing),
        Some(4)
    );

    let ids: Vec<&str> = inventory
        .hosts
        .iter()
        .map(|host| host.id.as_str())
        .collect();
    assert_eq!(ids, ["nas", "pc01", "pc02", "pc03", "core-iperf"]);
    assert_eq!(inventory.hosts[2].paths["phys"].to_string(), "10.0.0.102");
    assert_eq!(
        (inventory.hosts[2].line, inventory.hosts[2].rack.as_deref()),
        (Some(15), Some("r2"))
    );
    assert_eq!(
        inventory.hosts[0].reach,
        Reach::Ssh("admin@nas.mgmt".to_owned())
    );
    assert_eq!(inventory.hosts[1].reach, Reach::Ssh("pc01".to_owned()));
    assert_eq!(
        inventory.hosts[4].reach,
        Reach::Server("10.0.0.250:5201".to_owned())
    );
}

#[test]
fn servers_without_an_agent_are_behind_the_hosts_with_one() {
    let text =
        "[[host]]\nname = \"core\"\nserver = \"[2001:db8::1]:5201\"\n[[host]]\nname = \"a[1-2]\"";
    let core = (
        "core".to_owned(),
        Reach::Server("[2001:db8::1]:5201".to_owned()),
    );
    assert_eq!(hosts(text), [ssh("a1", "a1"), ssh("a2", "a2"), core]);
    assert_eq!(host_port("[2001:db8::1]:5201"), Some(("2001:db8::1", 5201)));
    assert_eq!(host_port("nas.lan:70000"), None);

    for wrong in ["2001:db8::1:5201", ":5201", "[::1:5201", "nas", "nas:"] {
        assert_eq!(host_port(wrong), None, "{wrong}");
    }
}

#[test]
fn toml_errors_name_the_line_and_the_nearest_key() {
    let host = |rest: &str| format!("[[host]]\nname = \"a\"\n{rest}\n");
    let rows = [
        (
            host("labls = {}"),
            "line 3: unknown key \"labls\"; did you mean \"labels\"?",
        ),
        (
            "[fleet]\nprots = \"1\"\n".to_owned(),
            "line 2: unknown key \"prots\"; did you mean \"ports\"?",
        ),
        (
            "[fleet]\nname = \"A B\"\n".to_owned(),
            "line 2: \"A B\" is no name of a site: 1 to 32 of a-z 0-9 -",
        ),
        (
            "[fleet]\nports = \"9-1\"\n".to_owned(),
            "line 2: \"9-1\" is no range of ports; example: 5201-5209",
        ),
        (
            "[fleet]\n[racks.r]\nuplink = \"fast\"".to_owned(),
            "line 3: \"fast\" is no rate; example: 40G",
        ),
        (
            host("ssh = \"-oProxyCommand=x\""),
            "line 1: host a: \"-oProxyCommand=x\" is no destination",
        ),
        (
            host("ssh = \"b\"\nserver = \"c:1\""),
            "line 1: a host has ssh or server, not both",
        ),
        (
            host("server = \"c\""),
            "line 1: host a: \"c\" is no HOST:PORT; example: 10.0.0.250:5201",
        ),
        (
            host("server = \"c:0\""),
            "line 1: host a: \"c:0\" is no HOST:PORT",
        ),
        (
            host("server = \"c:1\"\n[[host]]\nname = \"b\"\nserver = \"c:1\""),
            "line 4: host b: c:1 is the server of host a in line 1",
        ),
        (
            host("paths = { p = \"x\" }"),
            "line 1: paths.p: \"x\" is no address",
        ),
        (
            host("paths = { \"a b\" = \"10.0.0.1\" }"),
            "line 1: host a: \"a b\" is no name of a path: 1 to 32 of A-Z a-z 0-9 _ -",
        ),
        (
            host("[[host]]\nname = \"A\""),
            "line 3: host A is the same as host a in line 1",
        ),
        (
            "[[host]]\nname = \"a[1-2]\"\nssh = \"b[1-3]\"".to_owned(),
            "line 1: ssh: 3 values for 2 names",
        ),
        (
            "[[host]]\nname = \"a[1-2]\"\npaths = { p = \"10.0.0.1\" }".to_owned(),
            "line 1: host a2: 10.0.0.1 of path p is that of host a1 in line 1",
        ),
        (
            "[[host]]\nname = \"-a\"".to_owned(),
            "line 1: \"-a\" is no host id",
        ),
    ];
    for (text, expected) in rows {
        let error = error(&text);
        assert!(error.starts_with(expected), "{error}\nexpected: {expected}");
    }

    let syntax = error("[[host]]\nname = \"a\nssh = 1");
    assert!(syntax.starts_with("line 2: "), "{syntax}");
}

#[test]
fn inventories_have_bounds() {
    let paths: Vec<String> = (0..=PATHS_MAX)
        .map(|i| format!("p{i} = \"10.0.0.{i}\""))
        .collect();
    let labels: Vec<String> = (0..=LABELS_MAX).map(|i| format!("l{i} = \"x\"")).collect();

    let rows = [
        (
            format!("[[host]]\nname = \"a\"\npaths = {{ {} }}", paths.join(", ")),
            "more than 16 paths",
        ),
        (
            format!(
                "[[host]]\nname = \"a\"\nlabels = {{ {} }}",
                labels.join(", ")
            ),
            "more than 64 labels",
        ),
        (
            "[[host]]\nname = \"a[1-9999]\"\n[[host]]\nname = \"b[1-2]\"".to_owned(),
            "more than 10000 hosts",
        ),
        (
            format!("[fleet]\n#{}", "x".repeat(TEXT_MAX_BYTES)),
            "are allowed",
        ),
    ];
    for (text, expected) in rows {
        let error = error(&text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn ansible_ini_is_refused_with_the_command_that_converts_it() {
    let error = error("[web]\nwww[01:02].example ansible_user=deploy\n");
    assert!(
        error.contains("ansible-inventory --list | linerate fleet … -i -"),
        "{error}"
    );
}

#[test]
fn ansible_json_with_values_that_are_templates_or_malformed_is_refused() {
    let rows = [
        (
            "ansible_host",
            "{{ip}}",
            "host a: ansible_host is a template; use: ansible-inventory --list",
        ),
        ("ansible_port", "x", "host a: \"x\" is no port"),
        (
            "ansible_host",
            "-oProxyCommand=x",
            "host a: \"-oProxyCommand=x\" is no destination",
        ),
    ];
    for (name, value, expected) in rows {
        let text = format!(
            r#"{{"_meta": {{"hostvars": {{"a": {{"{name}": "{value}"}}}}}}, "web": {{"hosts": ["a"]}}}}"#
        );
        let error = error(&text);
        assert!(error.starts_with(expected), "{error}\nexpected: {expected}");
    }
}

#[test]
fn ansible_json_has_complete_variables() {
    let text = r#"{
        "_meta": {"hostvars": {"a": {"ansible_host": "fd00::1", "ansible_port": 2222, "x": [1]}, "b": {}}},
        "all": {"children": ["ungrouped", "web"]}, "web": {"hosts": ["a", "b"], "vars": {"y": 1}}
    }"#;
    assert_eq!(
        hosts(text),
        [ssh("a", "ssh://[fd00::1]:2222"), ssh("b", "b")]
    );
    let inventory = parse(text).expect("an inventory");
    assert_eq!(
        inventory.hosts[0].labels.keys().collect::<Vec<_>>(),
        ["group.web"]
    );
    assert!(error("{\"web\": 5}").starts_with("web: "));
    assert!(error("{\"web\":\n").starts_with("line 2: "));

    let circle = r#"{"x": {"children": ["y"], "hosts": ["a"]}, "y": {"children": ["x"]}}"#;
    assert_eq!(hosts(circle).len(), 1, "a circle of groups ends");
}

#[test]
fn ssh_names_are_those_without_wildcards_and_includes_end() {
    let text = "
# Host none
Host rack1-a rack1-* !rack1-x \"rack2-b\" # comment
  HostName 10.0.0.1
host=gate
Include conf.d/*
Match host x
Host rack1-a -bad
";
    let mut seen = Vec::new();
    let names = ssh_names::names(text, |pattern| {
        seen.push(pattern.to_owned());
        vec!["Host inner\nInclude conf.d/*\n".to_owned()]
    });
    assert_eq!(names, ["rack1-a", "rack2-b", "gate", "inner"]);
    assert_eq!(seen.len(), ssh_names::DEPTH_MAX - 1);
    assert!(from_names(names).is_ok());
}

#[test]
fn ssh_names_of_endless_includes_end() {
    let mut files = 0;
    let names = ssh_names::names("Include *", |_| {
        files += 1;
        vec![format!("Host h{files}\n{}", "Include a b c d\n".repeat(4)); 4]
    });
    assert!(names.len() <= ssh_names::FILES_MAX);
}

#[test]
fn patterns_of_names_have_the_wildcards_of_ssh() {
    for (pattern, name, expected) in [
        ("rack1-*", "rack1-a", true),
        ("rack1-*", "rack2-a", false),
        ("*", "", true),
        ("h?", "h1", true),
        ("h?", "h", false),
        ("*-b", "a-b-c-b", true),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXcYb", false),
    ] {
        assert_eq!(
            ssh_names::matches(pattern, name),
            expected,
            "{pattern} {name}"
        );
    }
}
