//! Recorded lines: what is noise, and what cannot be known.

/// `[  1] 0.0-1.0 sec …`: numbers of a stream or a sum.
fn has_numbers(line: &str) -> bool {
    let times = behind_label(line).and_then(|rest| rest.split_once(" sec "));
    times.is_some_and(|(times, _)| times.contains('-'))
}

/// `[  1] local … connected with …`, and the line about a later start.
fn is_connection(line: &str) -> bool {
    behind_label(line)
        .is_some_and(|rest| rest.starts_with("local ") || rest.starts_with("Client traffic"))
}

fn behind_label(line: &str) -> Option<&str> {
    line.strip_prefix('[')?
        .split_once("] ")
        .map(|(_, rest)| rest)
}

/// Lines of a server's standard error and of its threads, and the order in which threads happen to
/// write.
pub(crate) fn without_noise(text: &str) -> String {
    let noise = [
        "read tcp flags",
        "read key failed",
        "(null)local",
        "double free",
        "iperf: ",
        "[  4] WARNING",
    ];
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !noise.iter().any(|start| line.starts_with(start)))
        .collect();

    // Banners come first, wherever a thread was faster.
    let first_number = lines.iter().position(|line| has_numbers(line));
    let (opening, rest) =
        lines.split_at(first_number.map_or(lines.len(), |at| at.saturating_sub(1)));
    let place = |start: &str| opening.iter().position(|line| line.starts_with(start));

    // A server that connects back has its own order.
    let connects_back =
        place("Server listening").is_some() && place("[  1] local") < place("Client connecting");
    let (connections, banners): (Vec<&str>, Vec<&str>) = opening
        .iter()
        .partition(|line| !connects_back && is_connection(line));
    [&banners[..], &connections, rest].concat().join("\n") + "\n"
}

/// The line without what cannot be known; `None` for lines that are not compared.
pub(crate) fn mask(line: &str, release: &str) -> Option<String> {
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

    if line.contains("Client traffic") {
        words.truncate(9);
    }

    if has_numbers(line) {
        mask_numbers(line, is_sum, &mut words);
    }

    Some(words.join(" "))
}

fn mask_numbers(line: &str, is_sum: bool, words: &mut Vec<String>) {
    // Network power is the last word, but for reads and timed writes behind it.
    let has_power = line.contains(" us ") && !line.contains("Tx=") && !line.contains(" rps")
        || (line.contains(" pps ") && line.contains(" ms "));
    if is_sum {
        // Load behind the rate of a sum.
        if let Some(at) = words
            .iter()
            .position(|word| word == "KByte" || word == "Byte")
        {
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

    // Delays of bursts: load, its unit and power are between the counts and the reads.
    if line.contains(" ms (") && !line.contains(" us ") && !line.contains("%)") {
        let from = words
            .iter()
            .position(|word| word.starts_with('(') && word.contains('/'));
        if let Some(from) = from {
            words.splice(from + 1..words.len() - 1, ["#".to_owned()]);
        }
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
    if let Some(at) = words
        .iter()
        .position(|word| word == "pps")
        .filter(|_| is_pair)
    {
        let from = words
            .iter()
            .position(|word| word.ends_with("/sec"))
            .map_or(at, |rate| rate + 1);
        words.splice(from..at, ["#".to_owned()]);
    } else if let Some(at) = words
        .iter()
        .position(|word| word == "rps" || (word == "pps" && is_sum))
    {
        // Its width goes with it.
        let from = words[..at - 1]
            .iter()
            .rposition(|word| !word.is_empty())
            .map_or(0, |last| last + 1);
        words.splice(from..at, ["#".to_owned()]);
    }
}
