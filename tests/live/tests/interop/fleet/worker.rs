//! A worker without its agent: what it does with its first line, and at the end of its input.

use std::io::{self, PipeWriter, Write};
use std::process::Command;

use linerate_interop::{Process, TIMEOUT, free_port_run, listens, ours, wait_until};
use serde_json::{Value, json};

const RUN: &str = "01890a5d-ac96-774b-bcce-000000000001";

fn worker(first_line: &str) -> (Process, PipeWriter) {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    let mut command = Command::new(ours().path());
    command.args(["fleet", "worker", "--run", RUN]);

    let process = Process::start_reading(command, reader);
    writer
        .write_all(format!("{first_line}\n").as_bytes())
        .expect("the worker reads");
    (process, writer)
}

#[test]
fn server_listens_on_its_address_and_ends_with_its_input() {
    let first = free_port_run(2);
    let task = json!({ "server": { "address": "127.0.0.2", "ports": { "first": first, "last": first + 1 } } });
    let (process, input) = worker(&task.to_string());
    process.wait_for_stdout(&format!("{{\"listening\":{{\"port\":{first}}}}}\n"), 1);
    assert!(listens(first));
    drop(input);
    process.finish().expect_code(0);
    assert!(!listens(first));
}

#[test]
fn second_server_of_an_address_takes_the_next_port_and_a_third_has_none() {
    let first = free_port_run(2);
    let task = json!({ "server": { "address": "127.0.0.2", "ports": { "first": first, "last": first + 1 } } });
    let workers = [0, 1].map(|offset| {
        let (process, input) = worker(&task.to_string());
        process.wait_for_stdout(
            &format!("{{\"listening\":{{\"port\":{}}}}}\n", first + offset),
            1,
        );
        (process, input)
    });

    let (third, input) = worker(&task.to_string());
    let ended = third.finish();
    ended.expect_code(1);
    assert!(ended.json()["failed"].is_string(), "{ended:?}");
    drop((workers, input));
}

#[test]
fn first_line_that_is_no_task_is_one_line_of_json_about_it() {
    for line in ["garbage", "{\"begin\":{\"at_ns\":1}}", "[]"] {
        let (process, input) = worker(line);
        let ended = process.finish();
        ended.expect_code(2);

        let failure: Value = ended.json();
        assert!(failure["failed"].is_string(), "{line}: {ended:?}");
        drop(input);
    }
}

#[test]
fn client_without_a_begin_ends_with_its_input() {
    let task = json!({ "client": { "local": "127.0.0.2", "task": {
        "task": "000000000000000000000000000000a1", "role": "client", "peer": "127.0.0.3", "port": 5201, "path": "phys",
        "streams": 1, "time_ms": 1000,
    } } });
    let (process, input) = worker(&task.to_string());
    assert!(wait_until(TIMEOUT, || process.stdout()
        == "{\"ready\":{\"task\":\"000000000000000000000000000000a1\"}}\n"));
    drop(input);
    process.finish().expect_code(0);
}
