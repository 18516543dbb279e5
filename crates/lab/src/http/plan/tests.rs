use super::*;
use linerate_model::http::HttpVersion;

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
    Plan::parse(text).expect_err(text).to_string()
}

#[test]
fn empty_file_is_the_default_plan() {
    assert_eq!(Plan::parse(""), Ok(Plan::default()));
    assert_eq!(Plan::parse("# nothing\n"), Ok(Plan::default()));
}

#[test]
fn keys_of_all_tables_are_read() {
    let plan = Plan::parse(TOML).expect("TOML");
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
    assert_eq!(plan.c10k.low_rate, Plan::default().c10k.low_rate);
}

#[test]
fn written_plan_is_read_back_unchanged() {
    let full = Plan {
        control: Some("http://10.9.0.2:8081/\"\\".to_owned()),
        dev: Some("enp1s0".to_owned()),
        ..Plan::parse(TOML).expect("TOML")
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
        assert_eq!(Plan::parse(&text), Ok(plan), "{text}");
    }
}

#[test]
fn template_is_the_default_plan() {
    assert_eq!(Plan::parse(explained::TEMPLATE), Ok(Plan::default()));
    assert_eq!(Plan::default().to_toml(), explained::TEMPLATE);
}

#[test]
fn unknown_key_is_named_with_its_line_and_the_allowed_ones() {
    assert_eq!(
        toml_error("seed = 1\n[phase2]\nconections = [1]\n"),
        "line 3: unknown field `conections`, expected one of `payloads`, `connections`, `refine_knee`"
    );
    assert!(toml_error("\n\n[phase4]\nx = 1").starts_with("line 3: unknown field `phase4`, expected one of `version`"));
    assert!(toml_error("[phase3]\nidel = {}").contains("expected one of `idle`, `lowrate`, `active`"));
}

#[test]
fn wrong_value_is_named_with_its_line_or_key_and_what_is_allowed() {
    for (text, expected) in [
        ("version = 2", "version: expected a whole number from 1 to 1, found 2"),
        ("seed = -1", "line 1: invalid value: integer `-1`, expected u64"),
        ("seed = 99999999999999999999", "line 1: "),
        ("seed = \"1\"", "line 1: invalid type: string \"1\", expected u64"),
        (
            "\n[phase2]\nconnections = [16,\n0]",
            "phase2.connections: expected a whole number from 1 to 1000000, found 0",
        ),
        (
            "[phase2]\npayloads = [\"65m\"]",
            "line 2: `65m` is no payload: expected 0 to 64m",
        ),
        (
            "[phase2]\npayloads = [\"1k\", 1024]",
            "phase2.payloads: a value is in the list twice",
        ),
        (
            "[phase2]\npayloads = \"1k\"",
            "line 2: invalid type: string \"1k\", expected a sequence",
        ),
        (
            "[defaults]\nduration = 10",
            "line 2: `10` is no time: expected for instance 500ms",
        ),
        (
            "[defaults]\nduration = \"500ms\"",
            "defaults.duration: expected 1s to 1h, found 500ms",
        ),
        ("[defaults]\nduration = \"10\"", "`10` is no time"),
        (
            "[defaults]\nrepeats = 1.5",
            "line 2: invalid type: floating point `1.5`, expected u32",
        ),
        ("[defaults]\nramp = \"fast\"", "connections per second or \"max\""),
        ("[defaults]\nwarmup = 1979-05-27", "line 2: "),
        (
            "[defaults]\nwarmup = true",
            "expected one value in quotes, for instance \"2s\"",
        ),
        (
            "[slo]\nerror_rate = 2",
            "slo.error_rate: expected a share from 0 to 1, found 2",
        ),
        ("[slo]\nerror_rate = nan", "expected a share from 0 to 1"),
        (
            "[slo]\np99 = \"off\"",
            "`off` is no time: expected for instance 500ms, 2s or 1m, or \"none\"",
        ),
        (
            "[source]\nports = \"all\"",
            "line 2: unknown variant `all`, expected one of `auto`, `kernel`, `explicit`",
        ),
        (
            "[source]\naddresses = [\"10.0.0\"]",
            "line 2: invalid IP address syntax",
        ),
        ("target = \"ftp://x\"", "target: `ftp://x` is no URL"),
        (
            "[protocol]\nversion = \"3\"",
            "line 2: unknown variant `3`, expected `1.1` or `2`",
        ),
        ("[protocol]\nversion = 1.1", "line 2: "),
        (
            "[protocol]\nstreams = 1025",
            "protocol.streams: expected a whole number from 1 to 1024",
        ),
        (
            "[protocol]\ninsecure = 1",
            "line 2: invalid type: integer `1`, expected a boolean",
        ),
        ("[protocol]\ncacert = \"\"", "is no name of a file"),
        ("[protocol]\ncacert = \"a\\nb\"", "is no name of a file"),
        ("[protocol]\npin_sha256 = \"abc\"", "64 hexadecimal digits"),
        (
            "[protocol]\ntls = true",
            "expected one of `version`, `streams`, `insecure`, `cacert`, `pin_sha256`",
        ),
        ("target = \"http://x\\u0007\"", "is no URL"),
        ("dev = \"a/b\"", "dev: `a/b` is no name of a device"),
        (
            "phase2 = 3",
            "line 1: invalid type: integer `3`, expected struct MatrixPhase",
        ),
        ("a = ", "line 1: "),
        ("seed = 1\nseed = 2", "line 2: duplicate key"),
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
fn contradicting_values_are_refused() {
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
fn hostile_text_is_refused() {
    assert!(toml_error(&"[".repeat(TEXT_BYTES_MAX)).starts_with("line 1: "));
    assert!(toml_error(&format!("a = {}", "[".repeat(1000))).starts_with("line 1: "));
    assert!(toml_error(&"#".repeat(TEXT_BYTES_MAX + 1)).contains("at most 65536 bytes"));
}

#[test]
fn hash_depends_on_values_only() {
    let plan = Plan::parse(TOML).expect("TOML");
    assert_eq!(plan.hash(), Plan::parse(&plan.to_toml()).expect("its own").hash());
    assert_ne!(plan.hash(), Plan::default().hash());
    assert_ne!(Plan::default().hash(), Plan::default().quick().hash());
    let trusting = Plan::parse("[protocol]\ninsecure = true").expect("TOML");
    assert_ne!(Plan::default().hash(), trusting.hash());
    // A run directory of an earlier version is resumed only while this stays as it is.
    assert_eq!(Plan::default().hash(), "4ff579ee4ac9fb63");
}
