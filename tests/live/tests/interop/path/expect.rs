//! Goal: limits decide the exit code, and each missed one is named. Method: tests of a second on
//! loopback.

use linerate_interop::{Finished, NativeHost, each_case};

fn tested(words: &[&str]) -> Finished {
    let (client, service) = (NativeHost::here(), NativeHost::here().serve(&[]));
    let target = format!("127.0.0.1:{}", service.port);
    client
        .test(
            &target,
            &[&["--json", "-q", "--profile", "quick"], words].concat(),
        )
        .finish()
}

#[test]
fn every_operator_holds_or_is_missed() {
    const WORDS: [&str; 6] = ["--only", "idle,down", "-b", "20M", "--time", "1"];

    let cases = [
        ("down>=1M", 0),
        ("down>1M", 0),
        ("down<=1G", 0),
        ("down<1G", 0),
        ("down>1M,down<1G,confidence>=low", 0),
        ("idle.p50<1s", 0),
        ("all:down>1M", 0),
        ("down>=1G", 5),
        ("down>1G", 5),
        ("down<=1M", 5),
        ("down<1M", 5),
        ("down>1M,idle.p50<1ns", 5),
        ("all:down<1M", 5),
    ];
    each_case(&cases, |(limits, code)| {
        let found = tested(&[&WORDS[..], &["--expect", limits]].concat());
        found.expect_code(*code);
        assert_eq!(found.json()["state"], "complete", "{found:?}");

        if *code == 5 {
            let clause = limits
                .rsplit(',')
                .next()
                .expect("a clause")
                .trim_start_matches("all:");
            found.expect_stderr(clause);
        }
    });
}

#[test]
fn absent_measure_misses_its_clause_with_the_reason() {
    let found = tested(&["--only", "idle", "--expect", "down>1M"]);
    found.expect_code(5).expect_stderr("down>1M");
}

#[test]
fn limits_that_cannot_be_read_are_refused_with_the_place() {
    let cases = [
        "down>=900X",
        "down=>1M",
        "speed>1M",
        "p99<5",
        "down>",
        "grade>=Z",
        ",",
        "down>1M,,up>1M",
    ];
    each_case(&cases, |limits| {
        let client = NativeHost::here();
        let found = client.test("127.0.0.1:1", &["--expect", limits]).finish();
        found.expect_code(2).expect_stderr("--expect");
        assert!(found.stdout.is_empty(), "{found:?}");
    });
}

#[test]
fn repeated_tests_are_judged_by_their_median() {
    let found = tested(&[
        "--only", "down", "-b", "20M", "--time", "1", "--repeat", "3", "--expect", "down>10M",
    ]);
    found.expect_code(0);

    let found = tested(&[
        "--only",
        "down",
        "-b",
        "20M",
        "--time",
        "1",
        "--repeat",
        "3",
        "--expect",
        "all:down>1G",
    ]);
    found.expect_code(5).expect_stderr("down>1G");
}
