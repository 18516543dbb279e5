use super::*;
use linerate_model::http::HttpVersion;

const YAML: &str = r#"
version: 1
target: http://192.168.5.2:8080
seed: 7
protocol: {version: "2", streams: 8, pin_sha256: "AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB"}
defaults:
  warmup: 1s
  repeats: 5
  ramp: max
phase1:
  payloads: [1k, "10k", 4096]
phase2:
  connections:
    - 16
    - 64
  refine_knee: false
phase3:
  idle: {steps: [1000], heartbeat: off}
slo:
  p99: 20ms
  error_rate: 0
source:
  addresses: [10.0.0.1, "fe80::1"]
  close: rst
"#;

const TOML: &str = r#"
version = 1
target = "http://192.168.5.2:8080"
seed = 7
[protocol]
version = "2"
streams = 8
pin_sha256 = "abababababababababababababababababababababababababababababababab"
[defaults]
warmup = "1s"
repeats = 5
ramp = "max"
[phase1]
payloads = ["1k", "10k", 4096]
[phase2]
connections = [16, 64]
refine_knee = false
[phase3.idle]
steps = [1000]
heartbeat = "off"
[slo]
p99 = "20ms"
error_rate = 0
[source]
addresses = ["10.0.0.1", "fe80::1"]
close = "rst"
"#;

fn toml_error(text: &str) -> String {
    Plan::parse(text, Format::Toml).expect_err(text).to_string()
}

fn yaml_error(text: &str) -> String {
    Plan::parse(text, Format::Yaml).expect_err(text).to_string()
}

#[test]
fn an_empty_file_is_the_default_in_both_languages() {
    for format in [Format::Toml, Format::Yaml] {
        assert_eq!(Plan::parse("", format), Ok(Plan::default()));
        assert_eq!(Plan::parse("# nothing\n", format), Ok(Plan::default()));
    }
}

#[test]
fn both_languages_say_the_same_with_the_same_keys() {
    let plan = Plan::parse(TOML, Format::Toml).expect("TOML");
    assert_eq!(Plan::parse(YAML, Format::Yaml), Ok(plan.clone()));
    assert_eq!(plan.target.as_deref(), Some("http://192.168.5.2:8080"));
    assert_eq!(
        (plan.seed, plan.defaults.repeats, plan.defaults.ramp),
        (7, 5, Ramp::Max)
    );
    let protocol = Protocol {
        version: HttpVersion::Http2,
        streams: 8,
        trust: Trust::Pinned([0xab; 32]),
    };
    assert_eq!(plan.protocol, protocol);
    assert_eq!(plan.payloads.payloads_bytes, [1024, 10_240, 4096]);
    assert_eq!(plan.matrix.connections, [16, 64]);
    assert_eq!(plan.objective.p99, Some(Duration::from_millis(20)));
    assert_eq!(plan.source.close, Close::Reset);
    assert_eq!(plan.low_rate, Plan::default().low_rate);
}

#[test]
fn what_is_written_is_read_back_as_it_was() {
    let full = Plan {
        control: Some("http://10.9.0.2:8081/\"\\".to_owned()),
        dev: Some("enp1s0".to_owned()),
        ..Plan::parse(TOML, Format::Toml).expect("TOML")
    };
    let trusting = |trust| Plan {
        protocol: Protocol {
            trust,
            ..Protocol::default()
        },
        ..Plan::default()
    };
    let file = trusting(Trust::File("/etc/a \"b\\c\".pem".to_owned()));
    for plan in [
        Plan::default(),
        Plan::default().quick(),
        full,
        file,
        trusting(Trust::Anything),
    ] {
        let text = plan.to_toml();
        assert_eq!(Plan::parse(&text, Format::Toml), Ok(plan), "{text}");
    }
}

#[test]
fn the_default_explains_every_key_it_has() {
    let text = Plan::default().to_toml();
    for key in [
        "# target = ",
        "[protocol]",
        "# cacert = ",
        "# pin_sha256 = ",
        "[phase3.lowrate]",
        "refine_knee = true",
        "# \"none\", or the most it may be",
    ] {
        assert!(text.contains(key), "{key} in {text}");
    }
    assert!(!text.contains(" \n"), "{text}");
}

#[test]
fn a_key_that_does_not_exist_is_named_with_its_line_and_what_is_allowed() {
    let expected = "line 3: there is no key phase2.conections; allowed here: payloads, connections, refine_knee";
    assert_eq!(toml_error("seed = 1\n[phase2]\nconections = [1]\n"), expected);
    assert_eq!(yaml_error("seed: 1\nphase2:\n  conections: [1]\n"), expected);
    assert!(
        toml_error("\n\n[phase4]\nx = 1").starts_with("line 3: there is no key phase4; allowed here: version, target")
    );
    assert!(toml_error("[phase3]\nidel = {}").contains("allowed here: idle, lowrate, active"));
}

#[test]
fn a_value_outside_its_range_is_named_with_its_line() {
    for (text, expected) in [
        (
            "version = 2",
            "line 1: version: expected a whole number from 1 to 1, found 2",
        ),
        ("seed = -1", "line 1: seed: expected a whole number from 0 to"),
        ("seed = 99999999999999999999", "found a number beyond 64 bits"),
        ("seed = \"1\"", "found text"),
        (
            "\n[phase2]\nconnections = [16,\n0]",
            "line 4: phase2.connections: expected a whole number from 1 to 1000000",
        ),
        (
            "[phase2]\npayloads = [\"65m\"]",
            "line 2: phase2.payloads: `65m` is no payload",
        ),
        ("[phase2]\npayloads = [\"1k\", 1024]", "the same value stands twice"),
        ("[phase2]\npayloads = \"1k\"", "expected a list, found text"),
        ("[defaults]\nduration = 10", "expected a time in quotes"),
        ("[defaults]\nduration = \"500ms\"", "expected 1s to 1h, found 500ms"),
        ("[defaults]\nduration = \"10\"", "`10` is no time"),
        ("[defaults]\nrepeats = 1.5", "found a number with a point"),
        ("[defaults]\nramp = \"fast\"", "connections per second or \"max\""),
        ("[defaults]\nwarmup = 1979-05-27", "found a date"),
        ("[slo]\nerror_rate = 2", "expected a share from 0 to 1, found 2"),
        ("[slo]\nerror_rate = nan", "expected a share from 0 to 1"),
        ("[slo]\np99 = \"off\"", "`off` is no time"),
        (
            "[source]\nports = \"all\"",
            "expected one of auto, kernel, explicit, found all",
        ),
        ("[source]\naddresses = [\"10.0.0\"]", "is no address"),
        ("target = \"ftp://x\"", "is no URL"),
        (
            "[protocol]\nversion = \"3\"",
            "line 2: protocol.version: expected one of 1.1, 2, found 3",
        ),
        (
            "[protocol]\nversion = 1.1",
            "expected \"1.1\" or \"2\" in quotes, found a number with a point",
        ),
        ("[protocol]\nstreams = 1025", "expected a whole number from 1 to 1024"),
        ("[protocol]\ninsecure = 1", "expected true or false"),
        ("[protocol]\ncacert = \"\"", "is no name of a file"),
        ("[protocol]\ncacert = \"a\\nb\"", "is no name of a file"),
        ("[protocol]\npin_sha256 = \"abc\"", "64 hexadecimal digits"),
        (
            "[protocol]\ntls = true",
            "allowed here: version, streams, insecure, cacert, pin_sha256",
        ),
        ("target = \"http://x\\u0007\"", "is no URL"),
        ("dev = \"a/b\"", "is no name of a device"),
        (
            "phase2 = 3",
            "line 1: phase2: expected a table of keys, found a whole number",
        ),
        ("a = ", "line 1: this is no TOML"),
        ("seed = 1\nseed = 2", "line 2: this is no TOML"),
    ] {
        let found = toml_error(text);
        assert!(found.contains(expected), "{text:?} gave {found:?}");
    }
    let many: Vec<String> = (1..=65).map(|n| n.to_string()).collect();
    assert!(
        toml_error(&format!("[phase2]\nconnections = [{}]", many.join(","))).contains("at most 64 values, found 65")
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    assert!(toml_error("[protocol]\nstreams = 2").contains("set protocol.version to \"2\""));
    assert!(toml_error("[protocol]\ninsecure = true\ncacert = \"a\"").contains("exclude each other"));
    assert!(toml_error("[slo]\np99 = \"6s\"").contains("longer than defaults.timeout (5s)"));
    assert!(toml_error("[phase3.idle]\nheartbeat = \"1m\"").contains("longer than phase3.idle.hold (30s)"));
    let numbers: Vec<String> = (1..=64).map(|n| n.to_string()).collect();
    let list = numbers.join(",");
    let text = format!("[defaults]\nrepeats = 3\n[phase2]\npayloads = [{list}]\nconnections = [{list}]");
    assert!(
        toml_error(&text).contains("12297 runs of at most 10000"),
        "{}",
        toml_error(&text)
    );
}

#[test]
fn yaml_that_grows_beyond_its_text_is_refused() {
    let mut laughs = "a: &a [x, x]\n".to_owned();
    for pair in ["ab", "bc", "cd", "de", "ef"] {
        let (from, to) = pair.split_at(1);
        laughs.push_str(&format!("{to}: &{to} [*{from}, *{from}, *{from}, *{from}]\n"));
    }
    assert!(yaml_error(&laughs).starts_with("line 1: anchors, aliases and tags"));
    assert!(yaml_error("seed: !!int 1").contains("tags"));
    assert!(yaml_error(&"[".repeat(TEXT_BYTES_MAX)).starts_with("line 1: "));
    assert!(yaml_error(&"- ".repeat(1000)).contains("8 deep"));
    assert!(yaml_error("seed: 1\n---\nseed: 2").contains("one document"));
    assert!(yaml_error("seed: 1\nseed: 2").contains("line 2: the key seed stands twice"));
    assert!(yaml_error("? [1]\n: 2").contains("a key is a plain word"));
    assert!(yaml_error("{---").contains("this is no YAML"));
    assert!(toml_error(&"[".repeat(TEXT_BYTES_MAX)).contains("this is no TOML"));
    assert!(toml_error(&format!("a = {}", "[".repeat(1000))).contains("this is no TOML"));
    assert!(toml_error(&"#".repeat(TEXT_BYTES_MAX + 1)).contains("at most 65536 bytes"));
}

#[test]
fn the_hash_names_what_a_plan_says_and_not_how() {
    let plan = Plan::parse(TOML, Format::Toml).expect("TOML");
    assert_eq!(plan.hash(), Plan::parse(YAML, Format::Yaml).expect("YAML").hash());
    assert_eq!(
        plan.hash(),
        Plan::parse(&plan.to_toml(), Format::Toml).expect("its own").hash()
    );
    assert_ne!(plan.hash(), Plan::default().hash());
    assert_ne!(Plan::default().hash(), Plan::default().quick().hash());
    let trusting = Plan::parse("[protocol]\ninsecure = true", Format::Toml).expect("TOML");
    assert_ne!(Plan::default().hash(), trusting.hash());
    // A run directory of an earlier version is resumed only while this stays as it is.
    assert_eq!(Plan::default().hash(), "54d3d6719f2b2d6f");
}

#[test]
fn the_language_follows_the_name() {
    assert_eq!(Format::of_name("plan.yaml"), Format::Yaml);
    assert_eq!(Format::of_name("PLAN.YML"), Format::Yaml);
    assert_eq!(Format::of_name("plan.toml"), Format::Toml);
    assert_eq!(Format::of_name("plan"), Format::Toml);
}
