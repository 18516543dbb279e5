use linerate_model::http::HttpVersion;

use std::time::Duration;

use super::*;

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
        (plan.seed, plan.defaults.repeats, plan.defaults.ramp_per_s),
        (7, 5, None)
    );

    let protocol = Protocol {
        version: HttpVersion::Http2,
        streams: 8,
        pin_sha256: Some([0xab; 32]),
        ..Protocol::default()
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
        control: Some("10.9.0.2:8081\"\\".to_owned()),
        dev: Some("enp1s0".to_owned()),
        line_rate_bps: Some(2.5e9),
        ..Plan::parse(TOML).expect("TOML")
    };
    let trusting = |protocol| Plan {
        protocol,
        ..Plan::default()
    };
    let file = trusting(Protocol {
        cacert: Some("/etc/a \"b\\c\".pem".to_owned()),
        ..Protocol::default()
    });
    let anything = trusting(Protocol {
        insecure: true,
        ..Protocol::default()
    });

    for plan in [
        Plan::default(),
        Plan::default().quick(),
        full,
        file,
        anything,
    ] {
        let text = plan.to_toml();
        assert_eq!(Plan::parse(&text), Ok(plan), "{text}");
    }
}

#[test]
fn template_is_the_default_plan() {
    assert_eq!(Plan::parse(text::TEMPLATE), Ok(Plan::default()));
    assert_eq!(Plan::default().to_toml(), text::TEMPLATE);
}

#[test]
fn line_rates_are_bits_per_second_with_a_unit() {
    assert_eq!(
        (line_rate("1G"), line_rate("2.5g"), line_rate("64000")),
        (Ok(1e9), Ok(2.5e9), Ok(64e3))
    );
    assert!(
        ["", "G", "0", "1T", "-1G", "é"]
            .iter()
            .all(|text| line_rate(text).is_err())
    );
}

#[test]
fn unknown_key_is_named_with_its_line_and_the_allowed_ones() {
    assert_eq!(
        toml_error("seed = 1\n[phase2]\nconections = [1]\n"),
        "line 3: unknown field `conections`, expected one of `payloads`, `connections`, \
         `refine_knee`"
    );
}

#[test]
fn wrong_value_is_named_with_its_line_or_key_and_what_is_allowed() {
    let rows = include_str!("refused.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    for row in rows {
        let (text, expected) = row.split_once(" => ").expect(row);
        let found = toml_error(&text.replace("\\n", "\n"));
        assert!(found.contains(expected), "{text:?} gave {found:?}");
    }

    let many: Vec<String> = (1..=65).map(|n| n.to_string()).collect();
    assert!(
        toml_error(&format!("[phase2]\nconnections = [{}]", many.join(",")))
            .contains("at most 64 values, found 65")
    );
}

#[test]
fn too_many_runs_are_refused() {
    let numbers: Vec<String> = (1..=64).map(|n| n.to_string()).collect();
    let list = numbers.join(",");
    let text =
        format!("[defaults]\nrepeats = 3\n[phase2]\npayloads = [{list}]\nconnections = [{list}]");
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
    assert_eq!(
        plan.hash(),
        Plan::parse(&plan.to_toml()).expect("its own").hash()
    );
    assert_ne!(plan.hash(), Plan::default().hash());
    assert_ne!(Plan::default().hash(), Plan::default().quick().hash());

    let trusting = Plan::parse("[protocol]\ninsecure = true").expect("TOML");
    assert_ne!(Plan::default().hash(), trusting.hash());
    let rated = Plan::parse("line_rate = \"1G\"").expect("TOML");
    assert_eq!(
        (rated.line_rate_bps, rated.hash()),
        (Some(1e9), Plan::default().hash()),
        "no run depends on it"
    );

    // A run directory of an earlier version is resumed only while this stays as it is.
    assert_eq!(Plan::default().hash(), "4ff579ee4ac9fb63");
}
