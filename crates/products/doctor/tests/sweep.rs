//! Goal: every reason of a sweep is given for its facts alone, and missing facts are listed.
//! Method: one row of `sweep.txt` for each scenario.

mod facts;

use linerate_doctor::sweep_reasons;
use linerate_model::stored_name;
use linerate_model::sweep::{Hosts, ReasonName, SettingFacts};
use serde_json::{Value, json};

fn read<T: serde::de::DeserializeOwned>(facts: &Value) -> T {
    serde_json::from_value(facts.clone()).expect("facts")
}

#[test]
fn every_scenario_has_its_reasons() {
    let setting = json!({
        "streams": 4, "received_bps": 5e9, "cpu_client_percent": 40.0, "cpu_server_percent": 50.0,
        "retransmits_per_s": 0.0, "rtt_us": 200.0,
    });
    let mut wrong = Vec::new();

    for [words, expected, texts] in facts::rows(include_str!("sweep.txt")) {
        let mut facts = json!({
            "best": setting, "here": setting,
            "hosts": { "client_cores": 16, "server_cores": null, "is_same_host": false },
        });
        facts["here"]["streams"] = 8.into();
        facts["here"]["received_bps"] = 1e9.into();
        facts::set(&mut facts, words);

        let best: Option<SettingFacts> = read(&facts["best"]);
        let reasons = sweep_reasons(
            best.as_ref(),
            &read(&facts["here"]),
            &read::<Hosts>(&facts["hosts"]),
        );
        let names: Vec<String> = reasons
            .iter()
            .map(|reason| stored_name(reason.name))
            .collect();

        let text: String = reasons
            .iter()
            .map(|reason| reason.sentence.as_str())
            .collect::<Vec<_>>()
            .join("; ");
        let is_window = reasons
            .iter()
            .all(|reason| reason.window.is_some() == (reason.name == ReasonName::WindowBelowBdp));

        if names.join(" ") != expected
            || !texts.split(", ").all(|part| text.contains(part))
            || !is_window
        {
            wrong.push(format!(
                "{words}: {expected} {texts}\n{} {text}",
                names.join(" ")
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
