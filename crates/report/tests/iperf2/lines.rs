//! Recorded lines: what they consist of, what is noise, and what cannot be known.

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line<'a> {
    /// `[  1] local … connected with …`.
    Connection(&'a str),
    /// Numbers of a stream: label, start, end, and what follows `sec`.
    Numbers {
        label: &'a str,
        start_s: f64,
        end_s: f64,
        rest: &'a str,
    },
    /// `[  1] Sent 183 datagrams`.
    Sent { label: &'a str, datagrams: u64 },
    /// `[  1] Server Report:`.
    ServerReport,
    /// `[  1] Client traffic to start in …`.
    StartsLater,
    /// `[ CT] final connect times …`.
    Connects(&'a str),
    /// A header, a rule, or part of a banner.
    Other(&'a str),
}

pub(crate) fn classify(line: &str) -> Line<'_> {
    let Some((label, rest)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) else {
        return Line::Other(line);
    };
    if rest.starts_with("local ") {
        Line::Connection(line)
    } else if rest == "Server Report:" {
        Line::ServerReport
    } else if rest.starts_with("Client traffic") {
        Line::StartsLater
    } else if label == " CT" {
        Line::Connects(rest)
    } else if let Some(datagrams) = rest.strip_prefix("Sent ").and_then(|rest| rest.split(' ').next()) {
        let datagrams = datagrams.parse().expect("a number");
        Line::Sent { label, datagrams }
    } else if let Some((times, rest)) = rest.split_once(" sec ") {
        let Some((start, end)) = times.split_once('-') else {
            return Line::Other(line);
        };
        let (start_s, end_s) = (start.parse().expect("a time"), end.parse().expect("a time"));
        Line::Numbers {
            label,
            start_s,
            end_s,
            rest,
        }
    } else {
        Line::Other(line)
    }
}

/// Lines of a server's standard error and of its threads, and the order in which threads happen to speak.
pub(crate) fn without_noise(text: &str) -> String {
    let noise = [
        "read tcp flags",
        "read key failed",
        "recv failed",
        "(null)local",
        "Waiting for server threads",
        "double free",
        "iperf: ",
        "shutdown failed",
        "[  3] WARNING",
        "[  4] WARNING",
    ];
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !noise.iter().any(|start| line.starts_with(start)))
        .collect();
    // Banners come first, wherever a thread was faster.
    let first_number = lines
        .iter()
        .position(|line| matches!(classify(line), Line::Numbers { .. }));
    let (opening, rest) = lines.split_at(first_number.map_or(lines.len(), |at| at.saturating_sub(1)));
    let is_connection = |line: &&&str| matches!(classify(line), Line::Connection(_) | Line::StartsLater);
    let mut ordered: Vec<&str> = Vec::new();
    if opening
        .iter()
        .filter(|line| line.starts_with("Client connecting"))
        .count()
        == 1
        && !text.starts_with("----\nServer")
    {
        let is_server = opening.iter().position(|line| line.starts_with("Server listening"));
        let is_client = opening.iter().position(|line| line.starts_with("Client connecting"));
        // A server that connects back has its own order.
        if is_server.is_some() && opening.iter().position(|line| line.starts_with("[  1] local")) < is_client {
            ordered.extend(opening);
        } else {
            ordered.extend(opening.iter().filter(|line| !is_connection(line)));
            ordered.extend(opening.iter().filter(|line| is_connection(line)));
        }
    } else {
        ordered.extend(opening);
    }
    ordered.extend(rest);
    ordered.join("\n") + "\n"
}

/// The line without what cannot be known; `None` for lines that are not compared.
pub(crate) fn mask(line: &str, release: &str) -> Option<String> {
    if line.starts_with("[ ID]") || line.starts_with("[SUM-cnt]") {
        return Some(line.to_owned());
    }
    // The original's sums end with the last record of their thread and not with their last stream.
    let is_sum = line.starts_with("[SUM") || line.starts_with("[FD");
    if is_sum && line.contains("] 0.00") && !line.contains("-1.00") {
        return None;
    }
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let position = |words: &[String], name: &str| words.iter().position(|word| word == name);
    // Printed before it is computed.
    if release == "221"
        && let Some(at) = position(&words, "target:")
    {
        words[at + 1] = "#".to_owned();
    }
    if let Some(at) = position(&words, "current") {
        words.truncate(at);
    }
    if line.contains("Client traffic") {
        words.truncate(9);
    }
    if matches!(classify(line), Line::Numbers { .. }) {
        mask_numbers(line, is_sum, &mut words);
    }
    Some(words.join(" "))
}

fn mask_numbers(line: &str, is_sum: bool, words: &mut Vec<String>) {
    if line.contains("-PDF:") {
        return;
    }
    // Network power is the last word, but for reads and timed writes behind it.
    let has_power = line.contains(" us ") && !line.contains("Tx=") && !line.contains(" rps")
        || line.contains("pkts")
        || (line.contains(" pps ") && line.contains(" ms "));
    if is_sum {
        // Load behind the rate of a sum.
        if let Some(at) = words.iter().position(|word| word == "KByte" || word == "Byte") {
            words.splice(at - 1..=at, ["#".to_owned()]);
        }
    }
    if has_power && !line.contains(" ms (") {
        *words.last_mut().expect("a word") = "#".to_owned();
    }
    if let Some(at) = words
        .iter()
        .position(|word| word == "us")
        .filter(|_| line.contains(" ms ("))
    {
        let next = words
            .iter()
            .skip(at + 1)
            .position(|word| !word.is_empty())
            .map(|skip| at + 1 + skip);
        if let Some(at) = next {
            words[at] = "#".to_owned();
        }
    }
    // Delays of bursts: load, its unit and power stand between the counts and the reads.
    if line.contains(" ms (") && !line.contains(" us ") && !line.contains("%)") {
        let from = words
            .iter()
            .position(|word| word.starts_with('(') && word.contains('/'));
        if let Some(from) = from {
            words.splice(from + 1..words.len() - 1, ["#".to_owned()]);
        }
    }
    if line.contains("%)    ") {
        *words.last_mut().expect("a word") = "#".to_owned();
    }
    let mut replace = |found: &dyn Fn(&str) -> bool| {
        for word in words.iter_mut().filter(|word| found(word)) {
            *word = "#".to_owned();
        }
    };
    replace(&|word| word.starts_with("RPS="));
    replace(&|word| word.ends_with(')') && word.contains("/0(") && !word.contains('%'));
    // Both directions together: the number of datagrams counts the first one differently.
    let is_pair = line.starts_with("[FD");
    if let Some(at) = words.iter().position(|word| word == "pps").filter(|_| is_pair) {
        let from = words
            .iter()
            .position(|word| word.ends_with("/sec"))
            .map_or(at, |rate| rate + 1);
        words.splice(from..at, ["#".to_owned()]);
    } else if let Some(at) = words.iter().position(|word| word == "rps" || (word == "pps" && is_sum)) {
        // Its width goes with it.
        let from = words[..at - 1]
            .iter()
            .rposition(|word| !word.is_empty())
            .map_or(0, |last| last + 1);
        words.splice(from..at, ["#".to_owned()]);
    }
}

/// All numbers of a text, in order. Signs count only where a number begins.
pub(crate) fn numbers(text: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let mut found = Vec::new();
    for word in text.split(|c: char| !is_part(c)) {
        if let Ok(number) = word.parse() {
            found.push(number);
        }
    }
    found
}
