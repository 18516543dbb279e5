//! Splits a text into blocks: the output of one command on one host.

use super::ethtool_headings::HEADINGS;

/// Output of one command.
#[derive(Default)]
pub(super) struct Block<'a> {
    pub host: Option<&'a str>,
    /// The command as typed, without the prompt; empty where it is unknown.
    pub command: &'a str,
    /// Lines with their number in the text.
    pub lines: Vec<(usize, &'a str)>,
}

impl<'a> Block<'a> {
    /// Words of the command.
    pub(super) fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.command.split_whitespace()
    }

    /// The program of the command, without its directory and without `sudo` before it; empty where
    /// it is unknown.
    pub(super) fn program(&self) -> &'a str {
        program_name(
            self.words()
                .find(|word| *word != "sudo")
                .unwrap_or_default(),
        )
    }

    /// The first argument that is a file of `/proc` or `/sys`, also behind `grep PATTERN` or
    /// `head -3`.
    pub(super) fn kernel_file(&self) -> Option<&'a str> {
        self.words()
            .skip(1)
            .find(|word| word.starts_with("/proc/") || word.starts_with("/sys/"))
    }

    /// True if the command has this argument.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words().any(|known| known == word)
    }

    /// Option and device of an `ethtool` command, options of the shell behind it left out.
    pub(super) fn ethtool(&self) -> Option<(&'a str, &'a str)> {
        let mut words = self.words().skip_while(|word| *word == "sudo");
        if program_name(words.next()?) != "ethtool" {
            return None;
        }

        let mut option = "";
        for word in words {
            match word.strip_prefix('-') {
                // `-I` only adds statistics to another option.
                Some("I" | "-include-statistics") => {}
                Some(_) => option = word,
                None => return Some((option, word)),
            }
        }

        None
    }
}

/// The blocks of a text's lines.
pub(super) fn split(lines: &[(usize, String)]) -> Vec<Block<'_>> {
    let mut blocks = vec![Block::default()];
    let mut host = None;

    for (number, line) in lines {
        if let Some((named, command)) = heading(line) {
            host = named.or(host);
            blocks.push(Block {
                host,
                command,
                lines: Vec::new(),
            });
        } else if let Some(block) = blocks.last_mut() {
            block.lines.push((*number, line));
        }
    }

    blocks.retain(|block| {
        !block.command.is_empty() || block.lines.iter().any(|(_, line)| !line.trim().is_empty())
    });
    blocks
}

/// True if a line without its indentation can only be the first of an output, or a command.
pub(super) fn is_beginning(line: &str) -> bool {
    const BEGINNINGS: [&str; 7] = [
        "NIC statistics:",
        "driver: ",
        "Connecting to host ",
        "iperf 3",
        "qdisc ",
        "Architecture:",
        "#kernel",
    ];

    let is_link = || {
        line.split_once(": ")
            .is_some_and(|(index, rest)| index.parse::<u32>().is_ok() && rest.contains(": <"))
    };
    heading(line).is_some()
        || BEGINNINGS
            .iter()
            .chain(HEADINGS.iter().map(|(words, _)| words))
            .any(|words| line.starts_with(words))
        || is_link()
}

/// Host and command that a line names.
type Heading<'a> = (Option<&'a str>, &'a str);

fn heading(line: &str) -> Option<Heading<'_>> {
    header(line)
        .or_else(|| windows_prompt(line))
        .or_else(|| prompt(line))
        .or_else(|| bare_command(line))
}

/// `### host=NAME cmd=COMMAND`
fn header(line: &str) -> Option<Heading<'_>> {
    let rest = line.strip_prefix("### ")?;
    let host = rest
        .split_whitespace()
        .find_map(|word| word.strip_prefix("host="));
    let command = rest
        .split_once("cmd=")
        .map_or("", |(_, command)| command.trim());

    Some((host, command))
}

/// `user@host:~$ command`, `[user@host dir]# command`, `user@host dir % command`,
/// `host:~$ command`, `$ command`
fn prompt(line: &str) -> Option<Heading<'_>> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Some((None, command.trim()));
    }

    // The first mark ends the prompt; the command may contain others.
    let marked = ["$ ", "# ", "% "]
        .iter()
        .filter_map(|mark| line.split_once(mark))
        .min_by_key(|(text, _)| text.len());
    let (before, command) =
        marked.or_else(|| Some((line.trim_end().strip_suffix(['$', '#', '%'])?, "")))?;

    // A Python environment stands before the prompt.
    let before = before.split_once(") ").map_or(before, |(_, rest)| rest);
    let (before, bracketed) = match before.strip_prefix('[') {
        Some(inner) => (inner.strip_suffix(']')?, true),
        None => (before, false),
    };
    let with_user = || {
        before
            .contains('@')
            .then(|| before.find(' ').unwrap_or(before.len()))
    };
    let end = before
        .find(if bracketed { ' ' } else { ':' })
        .or_else(with_user)?;
    let (user_and_host, directory) = before.split_at(end);
    let name = user_and_host.rsplit('@').next()?;
    let directory = directory.get(1..).unwrap_or_default();
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let is_prompt = is_name
        && !directory.contains(char::is_whitespace)
        && (bracketed || user_and_host.contains('@') || directory.starts_with(['~', '/']));

    is_prompt.then_some((Some(name), command.trim()))
}

/// `C:\> command` of cmd and `PS C:\Users\me> command` of PowerShell, also behind `[host]: ` of a
/// remote session.
fn windows_prompt(line: &str) -> Option<Heading<'_>> {
    let (before, command) = line.split_once('>')?;
    let (host, place) = match before
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
    {
        Some((host, place)) => (Some(host), place),
        None => (None, before),
    };
    let path = place.strip_prefix("PS ").unwrap_or(place);
    let mut characters = path.chars();
    let is_drive = characters
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic());

    (is_drive && characters.as_str().starts_with(":\\")).then_some((host, command.trim()))
}

/// Programs whose output is read. A line that begins with one of them behind `# `, `% ` or `+ ` is
/// a command.
const PROGRAMS: &str = "\
    cat conntrack dmesg ethtool grep head ip iperf iperf3 iw journalctl lscpu lshw lspci mpstat \
    mtr netstat nstat numactl ping ping6 ss sysctl taskset tc top tracepath traceroute tracert \
    uname vmstat";

/// A command that was pasted without its prompt, or behind one that names no host.
fn bare_command(line: &str) -> Option<Heading<'_>> {
    let marked = ["# ", "% ", "+ "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark));
    let command = marked.unwrap_or(line).trim();
    let plain = command.strip_prefix("sudo ").unwrap_or(command);
    let of_one_device = || {
        plain
            .strip_prefix("ethtool ")
            .is_some_and(|device| !device.contains(char::is_whitespace))
    };

    let is_known = || {
        plain
            .split_whitespace()
            .next()
            .is_some_and(|word| PROGRAMS.split(' ').any(|known| known == program_name(word)))
    };

    let is_command = include_str!("commands.txt")
        .lines()
        .any(|known| plain.starts_with(known))
        || matches!(plain, "lscpu" | "nstat" | "dmesg")
        || of_one_device()
        || (marked.is_some() && is_known());
    is_command.then_some((None, command))
}

/// The name of a program without its directory and the suffix of Windows.
fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name.strip_suffix(".exe").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_headers_name_host_and_command() {
        let rows = [
            (
                "### host=lab cmd=ethtool -g eth1",
                Some((Some("lab"), "ethtool -g eth1")),
            ),
            (
                "kola:~$ taskset -c 0 iperf3 -s",
                Some((Some("kola"), "taskset -c 0 iperf3 -s")),
            ),
            (
                "[root@client ~]# iperf3 -c h",
                Some((Some("client"), "iperf3 -c h")),
            ),
            ("me@a.b:/etc$ ip link", Some((Some("a.b"), "ip link"))),
            ("$ uname -a", Some((None, "uname -a"))),
            (
                "iperf3 -c 192.0.2.1 -P 10",
                Some((None, "iperf3 -c 192.0.2.1 -P 10")),
            ),
            ("(venv) me@a % lscpu", Some((Some("a"), "lscpu"))),
            ("root@b# ip link", Some((Some("b"), "ip link"))),
            ("me@b:~$", Some((Some("b"), ""))),
            ("# ethtool eth0", Some((None, "ethtool eth0"))),
            (
                "+ sudo ethtool -a eth0",
                Some((None, "sudo ethtool -a eth0")),
            ),
            ("ethtool shows 1000 Mb/s", None),
            ("loss: 95 % of it", None),
            ("iperf 3.12 (cJSON 1.7.15)", None),
            ("Speed: 1000Mb/s # a comment", None),
            ("P=2 147   # printed twice", None),
            (
                "C:\\> iperf3 -c 192.0.2.1 -w 64K",
                Some((None, "iperf3 -c 192.0.2.1 -w 64K")),
            ),
            (
                "C:\\Users\\me>ping -f -l 1472 192.0.2.1",
                Some((None, "ping -f -l 1472 192.0.2.1")),
            ),
            (
                "PS C:\\Users\\me> iperf3.exe -s",
                Some((None, "iperf3.exe -s")),
            ),
            (
                "[srv]: PS D:\\tools> netstat -s",
                Some((Some("srv"), "netstat -s")),
            ),
            ("rate: 5 > 4", None),
            (
                "# cat /sys/fs/cgroup/cpu.max",
                Some((None, "cat /sys/fs/cgroup/cpu.max")),
            ),
            ("# the next one is slower", None),
            ("ping: connect: Network is unreachable", None),
        ];
        for (line, expected) in rows {
            assert_eq!(heading(line), expected, "{line}");
        }
    }

    #[test]
    fn program_and_file_of_a_command() {
        for (command, program, file) in [
            (
                "sudo /usr/bin/cat /proc/net/bonding/bond0",
                "cat",
                Some("/proc/net/bonding/bond0"),
            ),
            (r".\iperf3.exe -c h", "iperf3", None),
            (
                "grep . /sys/class/net/eth0/mtu",
                "grep",
                Some("/sys/class/net/eth0/mtu"),
            ),
            ("", "", None),
        ] {
            let block = Block {
                host: None,
                command,
                lines: Vec::new(),
            };
            assert_eq!(
                (block.program(), block.kernel_file()),
                (program, file),
                "{command}"
            );
        }
    }

    #[test]
    fn options_of_ethtool() {
        let of = |command| Block {
            host: None,
            command,
            lines: Vec::new(),
        };
        assert_eq!(
            of("sudo ethtool -S eth0 | grep x").ethtool(),
            Some(("-S", "eth0"))
        );
        assert_eq!(of("ethtool eth0").ethtool(), Some(("", "eth0")));
        assert_eq!(of("ethtool -I -a eth0").ethtool(), Some(("-a", "eth0")));
        assert_eq!(
            of("sudo /usr/sbin/ethtool eth0").ethtool(),
            Some(("", "eth0"))
        );
        assert_eq!(of("ethtool").ethtool(), None);
    }
}
