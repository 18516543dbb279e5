//! Records as text: what is written is read, and what exceeds a bound is refused with its member.

use linerate_model::measure::MeasureName;
use linerate_model::record::{
    Body, Measure, RunId, RunKind, RunRecord, RunState, Series, SeriesOf, Times, Trial, Way,
};
use linerate_store::text::{self, TextError};
use serde_json::{Value, json};

fn record() -> RunRecord {
    let series = Series::new(
        "bytes",
        SeriesOf::Stream(0),
        Way::Forward,
        Times::Ends {
            t0_ns: 0,
            ends_ns: vec![10, 20, 35],
        },
        vec![Some(1.0), None, Some(0.1)],
    );
    let measure = Measure::new(MeasureName::ReceivedBps, Way::Forward, 9.4e8);
    let mut trial = Trial::complete(35);
    trial.factors = [("streams".to_owned(), "4".to_owned())].into();
    trial.measures = vec![measure];
    trial.series = vec![series];

    let mut record = RunRecord::new(
        RunId::new(1_700_000_000_000, [7; 10]),
        RunKind::Test,
        Body::Test,
        "2023-11-14T22:13:20.000Z".into(),
        1_700_000_000_000,
    );
    record.state = RunState::Complete;
    record.elapsed_ns = 35;
    record.origin.tool = "linerate".into();
    record.trials = vec![trial];

    record
}

fn with(change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::to_value(record()).expect("a value");
    change(&mut value);
    value.to_string()
}

fn error(text: &str) -> String {
    text::read(text).expect_err("refused").to_string()
}

#[test]
fn what_is_written_is_read_and_written_alike() {
    let text = text::write(&record());
    assert_eq!(text::read(&text), Ok(record()));
    assert!(
        text.starts_with(r#"{"schema":"linerate.run/1","run_id":"#) && !text.contains('\n'),
        "{text}"
    );
}

#[test]
fn a_record_is_valid_under_the_published_schema() {
    let schema = include_str!("../../../../docs/schema/linerate.run.1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut value: Value = serde_json::from_str(&text::write(&record())).expect("JSON");
    assert!(validator.is_valid(&value));
    value["trials"][0]["measures"][0]["name"] = json!("throughput");
    assert!(!validator.is_valid(&value));
}

#[test]
fn unknown_members_are_passed_over() {
    let text = with(|value| value["trials"][0]["of_tomorrow"] = json!({"a": [1]}));
    assert_eq!(text::read(&text), Ok(record()));
}

#[test]
fn other_schemas_are_refused_by_name() {
    assert_eq!(
        error(&with(|value| value["schema"] = json!("linerate.run/2"))),
        "schema linerate.run/2: this version reads linerate.run/1"
    );
    assert_eq!(
        error(r#"{"start": {}}"#),
        "schema is missing: this version reads linerate.run/1"
    );
    assert!(error("iperf Done.").starts_with("no JSON: "));
}

#[test]
fn a_truncated_record_names_the_member_in_which_it_ends() {
    let text = text::write(&record());
    for (cut, member) in [
        (
            r#""elapsed_ns":35,"measures":[{"name":"rec"#,
            "trials[0].measures[0].name",
        ),
        (r#""ends_ns":[10,"#, "trials[0].series[0].ends_ns[1]"),
    ] {
        let end = text.find(cut).expect(cut) + cut.len();
        assert_eq!(
            text::read(&text[..end]),
            Err(TextError::Truncated(member.into()))
        );
    }
}

#[test]
fn bounds_are_named_with_their_member() {
    let long = |length: usize| Value::Array(vec![json!(1); length]);
    let mut nested = json!(1);
    (0..70).for_each(|_| nested = json!([nested.take()]));

    for (text, expected) in [
        (
            with(|value| value["title"] = json!("x".repeat(65_537))),
            "title: longer than 65536 bytes",
        ),
        (
            with(|value| value["trials"] = long(100_001)),
            "trials: more than 100000 trials",
        ),
        (
            with(|value| value["trials"][0]["series"][0]["values"] = long(1_000_001)),
            "trials[0].series[0].values: more than 1000000 items",
        ),
        (
            with(|value| value["labels"] = json!({"k".repeat(257): "v"})),
            "labels: a name longer than 256 bytes",
        ),
        (
            " ".repeat((64 << 20) + 1),
            "record: longer than 67108864 bytes",
        ),
    ] {
        assert_eq!(error(&text), expected);
    }

    let deep = error(&with(|value| value["notes"] = nested));
    assert!(
        deep.starts_with("notes[0][0]") && deep.ends_with("]: nested deeper than 64"),
        "{deep}"
    );
}

#[test]
fn wrong_types_and_unordered_times_name_their_member() {
    let typed = error(&with(|value| {
        value["trials"][0]["elapsed_ns"] = json!("long");
    }));
    assert!(
        typed.starts_with("trials[0].elapsed_ns: invalid type: string"),
        "{typed}"
    );
    let number = error(&with(|value| value["trials"][0]["state"] = json!(1234)));
    assert!(number.starts_with("trials[0].state: "), "{number}");

    let missing = error(&with(|value| {
        drop(
            value["trials"][0]
                .as_object_mut()
                .map(|trial| trial.remove("measures")),
        );
    }));
    assert_eq!(missing, "trials[0]: missing field `measures`");
    let unordered = with(|value| value["trials"][0]["series"][0]["ends_ns"] = json!([20, 10, 30]));
    assert_eq!(
        error(&unordered),
        "trials[0].series[0].ends_ns: not in ascending order"
    );

    let short = with(|value| value["trials"][0]["series"][0]["ends_ns"] = json!([20]));
    assert_eq!(
        error(&short),
        "trials[0].series[0].ends_ns: not as many as values"
    );
}

#[test]
fn texts_too_long_for_a_reader_are_cut_when_they_are_written() {
    let mut long = record();
    long.title = Some("ä".repeat(40_000));
    let read = text::read(&text::write(&long)).expect("readable");
    assert_eq!(read.title.map(|title| title.len()), Some(65_536));
}
