//! The commands people use most, run by the original and by us: nothing but the numbers may differ.

use linerate_interop::{
    Program, difference, each_case, has_ipv6, normalise, original, ours, run_pair_at,
};

/// Client options, server options. A receiving client runs for two intervals, because with one
/// alone the original announces columns that it does not fill.
const COMMANDS: [(&str, &str); 25] = [
    ("-t 1", ""),
    ("-t 2 -b 20M", ""),
    ("-t 2 -b 20M -R", ""),
    ("-t 1 -b 20M --bidir", ""),
    ("-t 1 -b 20M -P 4", ""),
    ("-t 2 -b 20M -P 4 -R", ""),
    ("-t 1 -b 20M -P 2 --bidir", ""),
    ("-t 1 -u -l 1400 -b 5M", ""),
    ("-t 1 -u -l 1400 -b 5M -R", ""),
    ("-t 1 -u -l 1400 -b 5M --bidir", ""),
    ("-t 1 -u -l 1400 -b 5M -P 2", ""),
    ("-t 1 -u -l 1400 -b 5M -P 2 -R", ""),
    ("-n 4M", ""),
    ("-k 40", ""),
    ("-t 1 -b 20M -i 0.5", "-i 0.5"),
    ("-t 1 -b 20M -i 0", "-i 0"),
    ("-t 1 -b 20M -O 1", ""),
    ("-t 1 -b 20M -f m", "-f m"),
    ("-t 1 -b 20M -f K", ""),
    ("-t 1 -b 20M -Z", ""),
    ("-t 1 -b 20M -w 256K", ""),
    ("-t 1 -b 20M -T title", ""),
    ("-t 1 -b 20M --get-server-output", ""),
    ("-t 1 -b 20M -V", "-V"),
    ("-t 2 -b 20M -V -R -C reno", "-V"),
];

/// Lines that 3.12 prints differently from 3.22, after normalisation. We print what 3.21 prints.
const KNOWN_DIFFERENCES: [KnownDifference; 1] = [KnownDifference {
    reason: "since 3.18 the retransmission column of a stream's summary is one blank narrower",
    applies: |line| line.contains("[###]") && line.ends_with("#             sender"),
    modern: |line| line.replace("#             sender", "#            sender"),
}];

struct KnownDifference {
    reason: &'static str,
    applies: fn(&str) -> bool,
    modern: fn(&str) -> String,
}

#[test]
fn only_numbers_differ() {
    let over_ipv6 = has_ipv6().then_some(("::1", &COMMANDS[1]));
    let cases: Vec<_> = COMMANDS
        .iter()
        .map(|command| ("127.0.0.1", command))
        .chain(over_ipv6)
        .collect();
    each_case(&cases, |(host, (client, server))| {
        let expected = transcript(original(), host, client, server);
        let found = transcript(ours(), host, client, server);
        let reasons = KNOWN_DIFFERENCES.map(|known| known.reason);

        for (end, expected, found) in [
            ("client", &expected.0, &found.0),
            ("server", &expected.1, &found.1),
        ] {
            let (expected, found) = match goes_on_to_the_interval(client) {
                true => (without_intervals(expected), without_intervals(found)),
                false => (expected.clone(), found.clone()),
            };
            let own = if ours().is_original() {
                modern(&found)
            } else {
                layout(&found)
            };
            if let Some(rows) = difference(&modern(&expected), &own) {
                panic!("{end} of {client:?}:\n{rows}\nknown and allowed: {reasons:#?}");
            }
        }
    });
}

/// From 3.16 on the original notices the end of an amount at the end of an interval only, so there
/// is one that ours has not.
fn goes_on_to_the_interval(client: &str) -> bool {
    let is_amount = ["-n ", "-k "]
        .iter()
        .any(|option| client.starts_with(option));
    is_amount && original().release() >= 16
}

fn without_intervals(text: &str) -> String {
    let is_interval = |line: &&str| !line.ends_with("er") && interval_s(line).is_some();
    text.lines()
        .filter(|line| !is_interval(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Output of client and server when both are the same program.
fn transcript(program: &Program, host: &str, client: &str, server: &str) -> (String, String) {
    let client: Vec<_> = client.split_whitespace().collect();
    let server: Vec<_> = server.split_whitespace().collect();
    let pair = run_pair_at(host, (program, &server), (program, &client));
    (
        pair.client.expect_clean().stdout.clone(),
        pair.server.expect_clean().stdout.clone(),
    )
}

/// The layout of what the original printed, updated.
fn modern(text: &str) -> String {
    let line = |line: &str| {
        let known = KNOWN_DIFFERENCES.iter().find(|known| (known.applies)(line));
        known.map_or_else(|| line.to_owned(), |known| (known.modern)(line))
    };
    layout(text)
        .lines()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn layout(text: &str) -> String {
    normalise(&without_partial_intervals(text))
}

/// A last short interval of a test depends on microseconds, so those rows go, and so
/// does the second of two rules that then meet. The original prints a row of its own for the moment
/// in which the end travels; ours is part of the last interval.
fn without_partial_intervals(text: &str) -> String {
    const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";
    const SHORTEST_S: f64 = 0.3;

    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_partial =
            !line.ends_with("er") && interval_s(line).is_some_and(|seconds| seconds < SHORTEST_S);
        let is_second_rule = line == RULE && kept.last() == Some(&RULE);
        if !is_partial && !is_second_rule {
            kept.push(line);
        }
    }

    kept.join("\n")
}

/// Length of the interval a row is about: `[  5]   0.00-1.00   sec …`.
fn interval_s(line: &str) -> Option<f64> {
    let (row, _) = line.split_once(" sec ")?;
    let (start, end) = row.split_whitespace().next_back()?.split_once('-')?;
    Some(end.parse::<f64>().ok()? - start.parse::<f64>().ok()?)
}
