//! Recorded system calls of real clients and servers.

use std::path::PathBuf;

/// One recorded test.
pub(crate) struct Capture {
    /// Release and mode, for example `wire-218/tcp_X`.
    pub name: String,
    pub client: Vec<Call>,
    pub server: Vec<Call>,
}

/// A call that moved data.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// It sent, as opposed to received.
    pub is_sent: bool,
    /// Descriptor.
    pub fd: u32,
    /// Bytes that were moved.
    pub len: usize,
    /// The first of them, up to 160.
    pub bytes: Vec<u8>,
}

impl Capture {
    /// Bytes of one side, in order.
    pub(crate) fn sent(calls: &[Call]) -> impl Iterator<Item = &Call> {
        calls.iter().filter(|call| call.is_sent && call.len > 0)
    }

    pub(crate) fn is_new_release(&self) -> bool {
        self.name.starts_with("wire-221/")
    }

    pub(crate) fn mode(&self) -> &str {
        self.name.split('/').nth(1).unwrap_or_default()
    }

    pub(crate) fn is_udp(&self) -> bool {
        self.mode().starts_with("udp")
    }
}

/// All recordings of both releases.
pub(crate) fn captures() -> Vec<Capture> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/iperf2");
    let mut captures = Vec::new();

    for release in ["wire-218", "wire-221"] {
        let dir = root.join(release);
        let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
            .expect("fixtures are part of the repository")
            .map(|entry| entry.expect("a readable entry").path())
            .collect();
        paths.sort();

        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a readable fixture");
            let mode = path
                .file_stem()
                .expect("a file")
                .to_string_lossy()
                .into_owned();

            let (client, server) = text.split_once("=== server ===").unwrap_or((&text, ""));
            captures.push(Capture {
                name: format!("{release}/{mode}"),
                client: calls(client),
                server: calls(server),
            });
        }
    }

    captures
}

/// Calls with data, such as `18:47:37.467190 C T1 sendto(3, ..., 80, MSG_DONTWAIT) = 80` and the
/// dump behind it.
fn calls(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut repeats = false;

    for line in text.lines() {
        if let Some(dump) = line.strip_prefix("      ") {
            let Some(call) = calls.last_mut() else {
                continue;
            };
            read_dump(dump, call, &mut repeats);
        } else if let Some(call) = call(line) {
            calls.push(call);
            repeats = false;
        }
    }

    calls
}

fn call(line: &str) -> Option<Call> {
    let (head, result) = line.rsplit_once(" = ")?;
    let len = result.trim().parse().ok()?;
    let (before, arguments) = head.split_once('(')?;
    let is_sent = match before.rsplit(' ').next()? {
        "sendto" | "write" | "sendmsg" => true,
        "recvfrom" | "read" | "recvmsg" => false,
        _ => return None,
    };

    let fd = arguments.split(',').next()?.trim().parse().ok()?;
    Some(Call {
        is_sent,
        fd,
        len,
        bytes: Vec::new(),
    })
}

/// A line of a dump, or the asterisk in place of lines like the one before.
fn read_dump(dump: &str, call: &mut Call, repeats: &mut bool) {
    if dump.trim() == "*" {
        *repeats = true;
        return;
    }

    let Some((offset, rest)) = dump.split_once("  ") else {
        return;
    };
    let Ok(offset) = usize::from_str_radix(offset.trim(), 16) else {
        return;
    };

    if *repeats {
        let at = call.bytes.len().saturating_sub(16);
        let line = call.bytes[at..].to_vec();

        while call.bytes.len() < offset {
            call.bytes.extend(&line);
        }

        *repeats = false;
    }

    let hex = rest.split("  ").next().unwrap_or_default();
    let digits = hex.split(' ').filter(|digits| !digits.is_empty());
    call.bytes
        .extend(digits.map(|digits| u8::from_str_radix(digits, 16).expect("hexadecimal digits")));
    call.bytes.truncate(call.len);
}

#[test]
fn the_recordings_are_read() {
    let captures = captures();
    assert_eq!(captures.len(), 98);
    let x = captures
        .iter()
        .find(|c| c.name == "wire-218/tcp_X_triptimes")
        .expect("recorded");
    let sent: Vec<(usize, u32)> = Capture::sent(&x.client)
        .map(|call| (call.len, call.fd))
        .collect();
    assert_eq!(sent, [(80, 3), (131_072, 3), (131_072, 3)]);
    assert_eq!(
        Capture::sent(&x.server)
            .next()
            .expect("an answer")
            .bytes
            .len(),
        52
    );
}
