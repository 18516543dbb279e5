//! Commands that change a setting of this host and cannot cut its connections. They run without a
//! shell.

use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_sys::error::io_text;
use linerate_sys::poll::{Interest, wait_fd};

use crate::is_token;

/// Kernel variables that a rule sets and that change no connection.
const VARIABLES: &str = "\
    net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog \
    net.core.rmem_max net.core.somaxconn net.core.wmem_max net.ipv4.ip_local_port_range \
    net.ipv4.tcp_mtu_probing net.ipv4.tcp_notsent_lowat net.ipv4.tcp_rmem net.ipv4.tcp_sack \
    net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_tw_reuse net.ipv4.tcp_window_scaling \
    net.ipv4.tcp_wmem net.netfilter.nf_conntrack_max vm.min_free_kbytes";
/// Properties of a link, ip-link(8), of the same kind.
const LINK_SETTINGS: [&str; 6] = [
    "gro_ipv4_max_size",
    "gro_max_size",
    "gso_ipv4_max_size",
    "gso_max_segs",
    "gso_max_size",
    "txqueuelen",
];
/// A command that takes longer is killed.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Output that is kept.
const OUTPUT_BYTES_MAX: usize = 1024;

/// The words of a command, which a shell would find as well: blanks and double quotes are all that
/// is special.
///
/// # Errors
/// Why it is refused: it may cut a connection.
pub(super) fn permitted(line: &str) -> Result<Vec<String>, String> {
    let words = split(line);
    let slices: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_permitted = match slices.as_slice() {
        ["sysctl", "-w", assignment] => sets_a_variable(assignment),
        ["tc", "qdisc", "replace" | "del", "dev", rest @ ..] => {
            // No token begins with a hyphen: `-batch FILE` would run the commands of a file.
            matches!(rest, [_, "root", ..]) && rest.iter().all(|word| is_token(word))
        }
        ["ethtool", "-K" | "-C", rest @ ..] => {
            rest.len() > 1 && rest.iter().all(|word| is_token(word))
        }
        ["ip", "link", "set", "dev", device, settings @ ..] => {
            is_token(device) && !settings.is_empty() && settings.chunks(2).all(sets_a_number)
        }
        _ => false,
    };
    if is_permitted {
        Ok(words)
    } else {
        Err(format!("`{line}` may interrupt connections of this host"))
    }
}

/// True if the words set a property of a link that interrupts nothing.
fn sets_a_number(words: &[&str]) -> bool {
    let [name, number] = words else { return false };
    LINK_SETTINGS.contains(name) && number.parse::<u32>().is_ok()
}

/// True if a word sets one of the variables to numbers or names. sysctl(8) takes a slash for a dot,
/// and the other way round, so other spellings of a name lead to other files.
fn sets_a_variable(assignment: &str) -> bool {
    let Some((name, value)) = assignment.split_once('=') else {
        return false;
    };
    VARIABLES.split(' ').any(|known| known == name) && value.split_whitespace().all(is_token)
}

/// Runs a permitted command to its end.
///
/// # Errors
/// Its output, or the reason why it did not start or end.
pub(super) fn run(line: &str) -> Result<(), String> {
    run_words(&permitted(line)?).map_err(|reason| format!("{line}: {reason}"))
}

fn run_words(words: &[String]) -> Result<(), String> {
    let text = |error: io::Error| io_text(&error);
    let (program, arguments) = words.split_first().ok_or("no command")?;
    // tc(8), ethtool(8) and sysctl(8) are in folders that the PATH of a user may lack.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let (reader, writer) = io::pipe().map_err(text)?;

    let mut child = Command::new(program)
        .args(arguments)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(writer)
        // Ctrl-C is for this process alone.
        .process_group(0)
        .spawn()
        .map_err(text)?;
    let mut output = Vec::new();
    if !read_to_end(reader, &mut output).map_err(text)? {
        // It fails only when the child has ended.
        let _ = child.kill();
        output = format!("no end within {} s", TIMEOUT.as_secs()).into_bytes();
    }

    let status = child.wait().map_err(text)?;
    let output = String::from_utf8_lossy(&output);
    match output.lines().find(|line| !line.trim().is_empty()) {
        _ if status.success() => Ok(()),
        Some(line) => Err(line.trim().to_owned()),
        None => Err(status.to_string()),
    }
}

/// Reads until the other end is closed; `false` where it is open after [`TIMEOUT`].
fn read_to_end(mut reader: PipeReader, output: &mut Vec<u8>) -> io::Result<bool> {
    let started = Instant::now();
    let mut chunk = [0; OUTPUT_BYTES_MAX];

    while let Some(left) = TIMEOUT.checked_sub(started.elapsed()) {
        if !wait_fd(&reader, Interest::READ, Some(left))? {
            continue;
        }

        match reader.read(&mut chunk)? {
            0 => return Ok(true),
            // The rest is read as well: a full pipe would block the command.
            count => output.extend(
                chunk
                    .iter()
                    .take(count.min(OUTPUT_BYTES_MAX.saturating_sub(output.len()))),
            ),
        }
    }

    Ok(false)
}

fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;

    for c in line.chars() {
        match (c, words.last_mut()) {
            ('"', _) => is_quoted = !is_quoted,
            (' ', Some(word)) if !is_quoted => {
                if !word.is_empty() {
                    words.push(String::new());
                }
            }
            (_, Some(word)) => word.push(c),
            // `words` begins with one word and never shrinks here.
            (_, None) => {}
        }
    }

    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_join_words_and_nothing_else_is_special() {
        assert_eq!(
            split("sysctl -w a=\"1 2  3\" "),
            ["sysctl", "-w", "a=1 2  3"]
        );
        assert_eq!(
            split("tc $(reboot); `x` > y"),
            ["tc", "$(reboot);", "`x`", ">", "y"]
        );
    }

    #[test]
    fn only_settings_that_keep_connections_are_permitted() {
        for line in [
            "tc qdisc del dev lr0 root",
            "tc qdisc replace dev lr0 root handle 8001: tbf rate 100000000bit burst 262144 limit \
             887144",
            "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\"",
            "ethtool -K lr0 tx on sg on",
            "ip link set dev lr0 txqueuelen 1000",
            "ip link set dev lr0 gso_max_size 524280 gro_max_size 524280",
        ] {
            assert!(permitted(line).is_ok(), "{line}");
        }

        for line in [
            "",
            "reboot",
            "sh -c true",
            "sysctl -w kernel.core_pattern=x",
            "sysctl -w net.ipv6.conf.all.disable_ipv6=1",
            "sysctl -w net.core.//.//.kernel.core_pattern=x",
            "sysctl -w net.core./../../kernel/core_pattern=x",
            "sysctl -w net/core/rmem_max=1",
            "sysctl -w net.core.rmem_max",
            "sysctl -w net.core.rmem_max.=1",
            "sysctl -w net.ipv4.tcp_rmem=\"1 ;reboot 3\"",
            "tc qdisc replace dev -batch root fq",
            "tc qdisc replace dev lr0 root -b file",
            "tc qdisc replace dev lr0 root netem loss 100% #",
            "ethtool -K -x tx on",
            "ethtool -K lr0",
            "ip link set dev -x txqueuelen 1000",
            "sysctl -p net.core.file",
            "tc qdisc add dev lr0 ingress",
            "tc -b root root dev x root",
            "ethtool -G lr0 rx 4096",
            "ethtool -s lr0 autoneg on",
            "ip link set dev lr0 mtu 1500",
            "ip link set dev lr0 txqueuelen 1000 down",
            "ip link set dev lr0 gso_max_segs down",
            "ip link set dev lr0",
            "ip link set dev lr0 gso_max_size 65536 down",
            "ip link set dev lr0 gso_max_size 65536 mtu 1280",
        ] {
            assert!(permitted(line).is_err(), "{line}");
        }
    }

    #[test]
    fn failure_has_the_message_of_the_command() {
        assert_eq!(
            run_words(&["/nonexistent/tc".to_owned()]),
            Err("No such file or directory".to_owned())
        );
        let shell = |script: &str| run_words(&["sh", "-c", script].map(str::to_owned));
        assert_eq!(shell("echo; echo why >&2; exit 2"), Err("why".to_owned()));
        assert_eq!(shell("exit 3"), Err("exit status: 3".to_owned()));
        assert_eq!(shell("head -c 100000 /dev/zero >&2"), Ok(()));
    }
}
