//! Arbitrary input: the machines continue, and other hosts are unaffected.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::fuzzing;

/// Steps of a coordinator in which the input arrives.
const STEPS: usize = 7;
const LINES: usize = 2_000;

/// Lines that are no message, or not one of this direction: bytes, cut and damaged messages,
/// excesses.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let member = "\"(v|run|epoch|seq|type|body|round|task)\":(-?[0-9]{1,20}|\"[a-z]{0,9}\"|null|\\[\\]|\\{\\})";
    let object = format!("\\{{({member})?(,{member}){{0,6}}\\}}");
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "\\PC{0,80}".prop_map(String::into_bytes),
        prop::string::string_regex(&object).expect("a pattern").prop_map(String::into_bytes),
        (1_usize..200).prop_map(|depth| "[".repeat(depth).into_bytes()),
        (4_000_usize..6_000).prop_map(|len| format!("{{\"v\":\"{}\"}}", "x".repeat(len)).into_bytes()),
        "(hello|plan|arm|go|result|cancel)".prop_map(|kind| {
            format!(
                r#"{{"v":1,"run":"0199aaaa-0000-7000-8000-000000000001","epoch":1,"seq":9,"type":"{kind}","body":7}}"#
            )
            .into_bytes()
        }),
    ]
}

fn lines() -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let strategy = garbage();
    (0..LINES)
        .map(|_| strategy.new_tree(&mut runner).expect("a value").current())
        .collect()
}

#[test]
fn two_thousand_invalid_lines_in_each_state_of_an_agent_change_nothing() {
    let lines = lines();
    (0..fuzzing::AGENT_STEPS).for_each(|step| fuzzing::garbage_at_the_agent(&lines, step));
}

#[test]
fn two_thousand_invalid_lines_of_a_host_in_each_step_drop_that_host_alone() {
    let lines = lines();
    (0..STEPS).for_each(|step| fuzzing::garbage_at_the_coordinator(&lines, step));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn lines_do_not_depend_on_segments(cuts: Vec<u8>, lines in prop::collection::vec(garbage(), 0..9)) {
        fuzzing::lines(&cuts, &lines.join(&b'\n'));
    }

    #[test]
    fn any_events_leave_an_agent_within_its_promises(script in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzzing::agent(&script);
    }

    #[test]
    fn any_events_settle_each_task_once(script in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzzing::coordinator(&script);
    }

    #[test]
    fn any_kept_lines_give_complete_results(script in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzzing::kept(&script);
    }

    #[test]
    fn any_text_is_an_inventory_or_an_error(
        text in "(\\[\\[?(host|fleet|a:children|racks.x)\\]?\\]\n|(name|ports|ansible_host|x) ?= \
                 ?\"?[a-z0-9.:\\[\\]-]{0,12}\"?\n|\\PC{0,20}\n){0,9}"
    ) {
        fuzzing::inventories(&text);
    }
}
