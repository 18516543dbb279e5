//! A command line of iperf3 or iperf 2, as a user pasted it.

/// The options that matter to a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Command {
    /// iperf3, not iperf 2.
    pub is_iperf3: bool,
    /// Server or client; `None` where the command names no role.
    pub is_server: Option<bool>,
    /// `-P`
    pub streams: Option<u32>,
    /// `-t`, s
    pub seconds: Option<f64>,
    /// `-O`, s
    pub omit_s: Option<f64>,
    /// `-l`, bytes
    pub length_bytes: Option<u32>,
    /// `-w`, bytes
    pub window_bytes: Option<u32>,
    /// `-b`, bit/s; absent for 0, which is no limit.
    pub target_bps: Option<u64>,
    /// `-R`
    pub is_reverse: bool,
    /// `-u`
    pub is_udp: bool,
    /// CPUs that `taskset -c` allows.
    pub cpus: Option<String>,
}

impl Command {
    /// Reads a command; `None` where it is none of iperf3 or iperf 2.
    pub fn parse(command: &str) -> Option<Self> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let name = |word: &&str| {
            word.rsplit(['/', '\\'])
                .next()
                .unwrap_or(word)
                .trim_end_matches(".exe")
                .to_owned()
        };
        let at = words
            .iter()
            .position(|word| matches!(name(word).as_str(), "iperf3" | "iperf" | "iperf2"))?;
        let (before, options) = words.split_at_checked(at)?;
        let mut found = Self {
            is_iperf3: options.first().is_some_and(|word| name(word) == "iperf3"),
            ..Self::default()
        };

        if before.iter().any(|word| name(word) == "taskset") {
            let list = before
                .windows(2)
                .find(|pair| pair.first() == Some(&"-c"))
                .and_then(|pair| pair.get(1).copied());
            found.cpus = list.map(str::to_owned);
        }

        let mut options = options.iter().skip(1).copied().peekable();
        while let Some(option) = options.next() {
            let (option, joined) = joined_value(option);
            // The value stays in the list: an option without one may precede another option.
            let value = joined.or_else(|| options.peek().copied());
            found.option(option, value);
        }

        Some(found)
    }

    fn option(&mut self, option: &str, value: Option<&str>) {
        let number = || {
            value?
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite() && *number >= 0.0)
        };
        let size = |base: f64| {
            amount(value?, base)
                .filter(|bytes| (1.0..4e9).contains(bytes))
                .map(|bytes| bytes as u32)
        };

        match option {
            "-c" | "--client" => self.is_server = Some(false),
            "-s" | "--server" => self.is_server = Some(true),
            "-P" | "--parallel" => self.streams = value.and_then(|value| value.parse().ok()),
            "-t" | "--time" => self.seconds = number(),
            "-O" | "--omit" => self.omit_s = number(),
            "-l" | "--length" | "--len" => self.length_bytes = size(1024.0),
            "-w" | "--window" => self.window_bytes = size(1024.0),
            "-b" | "--bitrate" | "--bandwidth" => {
                let rate = value
                    // `-b 1M/10` has a burst behind the rate (iperf3(1)).
                    .and_then(|value| amount(value.split('/').next().unwrap_or(value), 1000.0));
                self.target_bps = rate
                    .filter(|rate| (1.0..1e15).contains(rate))
                    .map(|rate| rate as u64);
            }
            "-R" | "--reverse" => self.is_reverse = true,
            "-u" | "--udp" => self.is_udp = true,
            _ => {}
        }
    }
}

/// An option and the value that is written with it: `-i1`, `-P4`, `--time=5`.
fn joined_value(word: &str) -> (&str, Option<&str>) {
    if let Some((option, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return (option, Some(value));
    }

    let is_joined = !word.starts_with("--")
        && word.starts_with('-')
        && word.len() > 2
        && word.is_char_boundary(2);
    let has_value = is_joined
        && word
            .get(1..2)
            .is_some_and(|letter| "PtOlwb".contains(letter));

    if has_value {
        (word.get(..2).unwrap_or(word), word.get(2..))
    } else {
        (word, None)
    }
}

/// `128K`, `1.5M`: a number with a prefix.
fn amount(text: &str, base: f64) -> Option<f64> {
    let power = " KMG"
        .find(text.chars().last()?.to_ascii_uppercase())
        .unwrap_or(0);
    // The letter that was found is ASCII, so that it has one byte.
    let number = if power > 0 {
        text.get(..text.len() - 1)?
    } else {
        text
    };
    let number: f64 = number
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;

    Some(number * base.powi(i32::try_from(power).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_apart_and_joined() {
        let base = |is_iperf3: bool, is_server: bool| Command {
            is_iperf3,
            is_server: Some(is_server),
            ..Command::default()
        };
        let rows = [
            ("iperf3 -s -1", base(true, true)),
            (
                "iperf3 -c h -P 4 -t 5",
                Command {
                    streams: Some(4),
                    seconds: Some(5.0),
                    ..base(true, false)
                },
            ),
            (
                "iperf -e -c 192.0.2.9 -i1 -t4",
                Command {
                    seconds: Some(4.0),
                    ..base(false, false)
                },
            ),
            (
                "sudo taskset -c 0 iperf3 -s",
                Command {
                    cpus: Some("0".into()),
                    ..base(true, true)
                },
            ),
            (
                "taskset -c 0,2 /usr/bin/iperf3 -c h -R",
                Command {
                    is_reverse: true,
                    cpus: Some("0,2".into()),
                    ..base(true, false)
                },
            ),
            (
                r"C:\tools\iperf3.exe -c h -w 64K -u -b 10M/5",
                Command {
                    window_bytes: Some(65_536),
                    is_udp: true,
                    target_bps: Some(10_000_000),
                    ..base(true, false)
                },
            ),
            (
                "iperf3 -c h --time=7 -b 0 -l 128K",
                Command {
                    seconds: Some(7.0),
                    length_bytes: Some(131_072),
                    ..base(true, false)
                },
            ),
        ];
        for (command, expected) in rows {
            assert_eq!(Command::parse(command), Some(expected), "{command}");
        }

        assert_eq!(Command::parse("ethtool eth0"), None);
        assert_eq!(Command::parse("taskset -c 0"), None);
    }
}
