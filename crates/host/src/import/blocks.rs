//! Splits a text into blocks: the output of one command on one host.

/// Output of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block<'a> {
    pub(super) host: Option<&'a str>,
    /// The command as typed, without the prompt; empty where it is unknown.
    pub(super) command: &'a str,
    /// Lines with their number in the text.
    pub(super) lines: Vec<(usize, &'a str)>,
}

impl<'a> Block<'a> {
    /// Words of the command.
    pub(super) fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.command.split_whitespace()
    }

    /// Whether the command has this argument.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words().any(|known| known == word)
    }

    /// Option and device of an `ethtool` command, options of the shell behind it left out.
    pub(super) fn ethtool(&self) -> Option<(&'a str, &'a str)> {
        let mut words = self.words().skip_while(|word| *word == "sudo");
        if words.next()? != "ethtool" {
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

/// The blocks of a text.
pub(super) fn split(text: &str) -> Vec<Block<'_>> {
    let mut blocks = vec![Block { host: None, command: "", lines: Vec::new() }];
    let mut host = None;
    for (index, line) in text.lines().enumerate() {
        if let Some((named, command)) = header(line).or_else(|| prompt(line)).or_else(|| bare_command(line)) {
            host = named.or(host);
            blocks.push(Block { host, command, lines: Vec::new() });
        } else if let Some(block) = blocks.last_mut() {
            block.lines.push((index + 1, line));
        }
    }
    blocks.retain(|block| !block.command.is_empty() || block.lines.iter().any(|(_, line)| !line.trim().is_empty()));
    blocks
}

type Heading<'a> = (Option<&'a str>, &'a str);

/// `### host=NAME cmd=COMMAND`
fn header(line: &str) -> Option<Heading<'_>> {
    let rest = line.strip_prefix("### ")?;
    let host = rest.split_whitespace().find_map(|word| word.strip_prefix("host="));
    let command = rest.split_once("cmd=").map_or("", |(_, command)| command.trim());
    Some((host, command))
}

/// `user@host:~$ command`, `[user@host dir]# command`, `host:~$ command`, `$ command`
fn prompt(line: &str) -> Option<Heading<'_>> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Some((None, command.trim()));
    }
    let at = line.find("$ ").into_iter().chain(line.find("# ")).min()?;
    let (before, command) = (&line[..at], line[at + 2..].trim());
    let (before, bracketed) = match before.strip_prefix('[') {
        Some(inner) => (inner.strip_suffix(']')?, true),
        None => (before, false),
    };
    let end = before.find(if bracketed { ' ' } else { ':' })?;
    let name = before[..end].rsplit('@').next()?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let directory = &before[end + 1..];
    let is_prompt =
        is_name && !directory.contains(char::is_whitespace) && (bracketed || directory.starts_with(['~', '/']));
    (is_prompt && !command.is_empty()).then_some((Some(name), command))
}

/// A command that was pasted without its prompt.
fn bare_command(line: &str) -> Option<Heading<'_>> {
    const COMMANDS: [&str; 6] = ["iperf3 -", "iperf -", "ethtool -", "lspci -", "taskset -", "tc -s "];
    COMMANDS.iter().any(|command| line.starts_with(command)).then_some((None, line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_headers_name_host_and_command() {
        let rows = [
            ("### host=lab cmd=ethtool -g eth1", Some((Some("lab"), "ethtool -g eth1"))),
            ("kola:~$ taskset -c 0 iperf3 -s", Some((Some("kola"), "taskset -c 0 iperf3 -s"))),
            ("[root@client ~]# iperf3 -c h", Some((Some("client"), "iperf3 -c h"))),
            ("me@a.b:/etc$ ip link", Some((Some("a.b"), "ip link"))),
            ("$ uname -a", Some((None, "uname -a"))),
            ("iperf3 -c 192.0.2.1 -P 10", Some((None, "iperf3 -c 192.0.2.1 -P 10"))),
            ("iperf 3.12 (cJSON 1.7.15)", None),
            ("Speed: 1000Mb/s # a remark", None),
            ("P=2 147   # printed twice", None),
        ];
        for (line, expected) in rows {
            let found = header(line).or_else(|| prompt(line)).or_else(|| bare_command(line));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn options_of_ethtool() {
        let of = |command| Block { host: None, command, lines: Vec::new() };
        assert_eq!(of("sudo ethtool -S eth0 | grep x").ethtool(), Some(("-S", "eth0")));
        assert_eq!(of("ethtool eth0").ethtool(), Some(("", "eth0")));
        assert_eq!(of("ethtool -I -a eth0").ethtool(), Some(("-a", "eth0")));
        assert_eq!(of("ethtool").ethtool(), None);
    }
}
