//! A plan file with a comment for every key.

type Key = (&'static str, &'static str);

/// Tables with their meaning and their keys; a meaning may be empty.
const TABLES: [(&str, &str, &[Key]); 11] = [
    (
        "",
        "",
        &[
            ("version", ""),
            ("target", "the server"),
            ("control", "its control channel; by default the next port"),
            ("dev", "device the route must take"),
            ("seed", "order of cells and Poisson arrivals"),
        ],
    ),
    (
        "protocol",
        "TLS where the target is an https URL",
        &[
            ("version", "of HTTP: \"1.1\" or \"2\""),
            ("streams", "concurrent requests on each HTTP/2 connection"),
            ("insecure", "trust any certificate"),
            ("cacert", "authorities to trust instead of this host's"),
            ("pin_sha256", "the one certificate to trust"),
        ],
    ),
    (
        "defaults",
        "",
        &[
            ("warmup", "load before the measured period"),
            ("duration", "measured period"),
            ("timeout", "age at which a request has failed"),
            ("cooldown", "least pause between runs"),
            ("repeats", "runs of each cell of phases 1 and 2"),
            ("ramp", "connections opened per second, or \"max\""),
            ("threads", "of the generator; 0 for one per CPU"),
        ],
    ),
    (
        "phase0",
        "TCP alone: the ceiling of everything after it",
        &[
            ("directions", "reverse: the server sends"),
            ("streams", "one test for each"),
            ("duration", ""),
        ],
    ),
    (
        "phase1",
        "payloads at one number of connections",
        &[
            ("payloads", "k is 1024 bytes, m is 1024 k"),
            ("connections", "no runs of its own when it is in phase 2"),
        ],
    ),
    (
        "phase2",
        "payloads by connections",
        &[
            ("payloads", ""),
            ("connections", ""),
            ("refine_knee", "at most two more cells for each payload"),
        ],
    ),
    (
        "phase3.idle",
        "idle connections",
        &[
            ("steps", ""),
            ("hold", ""),
            ("heartbeat", "\"off\", or the pause between two of a connection"),
            ("touch", "one request on each first: the server allocates its buffers"),
        ],
    ),
    (
        "phase3.lowrate",
        "few requests on many connections",
        &[
            ("connections", "0 skips this part"),
            ("rate", "requests per second over all of them"),
            ("payload", ""),
            ("duration", ""),
            ("arrival", "\"uniform\" or \"poisson\""),
        ],
    ),
    (
        "phase3.active",
        "many busy connections",
        &[("connections", "0 skips this part"), ("payloads", ""), ("duration", "")],
    ),
    (
        "slo",
        "decides the best stable case and --assert",
        &[
            ("p99", "\"none\", or the upper limit"),
            ("error_rate", "upper limit of failures as a share"),
        ],
    ),
    (
        "source",
        "",
        &[
            ("addresses", "local ones; none for that of the route"),
            ("ports", "\"auto\", \"kernel\" or \"explicit\""),
            ("close", "\"auto\", \"rst\" or \"fin\""),
        ],
    ),
];

/// Keys without a default: what could stand there.
const EXAMPLES: [(&str, &str); 5] = [
    ("target", "http://192.168.5.2:8080"),
    ("control", "http://192.168.5.2:8081"),
    ("dev", "enp1s0"),
    ("cacert", "ca.pem"),
    ("pin_sha256", "64 hexadecimal digits"),
];

/// Adds the comments, and examples of keys that are absent, to a file of keys and values alone.
pub(super) fn explained(bare: &str) -> String {
    let mut out = String::new();
    for (table, meaning, keys) in &TABLES {
        if !table.is_empty() {
            out.push('\n');
            push(&mut out, &format!("[{table}]"), meaning);
        }
        for (key, meaning) in *keys {
            if let Some(line) = line(bare, table, key) {
                push(&mut out, &line, meaning);
            }
        }
    }
    out
}

/// The line of a key, or an example behind a `#`.
fn line(bare: &str, table: &str, key: &str) -> Option<String> {
    let mut current = "";
    let found = bare.lines().find(|line| {
        if line.starts_with('[') {
            current = line.trim_matches(['[', ']']);
        }
        current == table && line.split_once(" = ").is_some_and(|(name, _)| name == key)
    });
    let example = || EXAMPLES.iter().find(|(known, _)| *known == key);
    found
        .map(str::to_owned)
        .or_else(|| example().map(|(key, example)| format!("# {key} = \"{example}\"")))
}

fn push(out: &mut String, line: &str, meaning: &str) {
    /// Column of the comments.
    const MEANINGS_AT: usize = 44;
    out.push_str(line);
    if !meaning.is_empty() {
        let gap = MEANINGS_AT.saturating_sub(line.chars().count()).max(1);
        out.push_str(&" ".repeat(gap));
        out.push_str("# ");
        out.push_str(meaning);
    }
    out.push('\n');
}
