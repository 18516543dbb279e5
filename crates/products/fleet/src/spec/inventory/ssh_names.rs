//! Names of hosts in a configuration of ssh(1): `Host` lines and what they include. Values are
//! never read; `ssh -G NAME` prints what applies to a name.

use super::HOSTS_MAX;

/// Most files within each other, as ssh_config(5) has it.
pub const DEPTH_MAX: usize = 16;
/// Most files in all.
pub const FILES_MAX: usize = 1024;

/// Names without wildcards of all `Host` lines, in order, each once. `include` receives the
/// argument of an `Include` line, a pattern of ssh_config(5), and returns the texts of the files
/// that it names. Beyond [`DEPTH_MAX`], [`FILES_MAX`] and [`HOSTS_MAX`] nothing is read.
pub fn names(text: &str, mut include: impl FnMut(&str) -> Vec<String>) -> Vec<String> {
    let mut reader = Reader {
        names: Vec::new(),
        files: 1,
    };
    reader.read(text, 1, &mut include);
    reader.names
}

/// The name fits the pattern, whose `*` matches any characters and whose `?` for one, as in
/// ssh_config(5).
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Position behind the latest `*`, and the name's when it was met.
    let mut star: Option<(usize, usize)> = None;

    let mut p = 0;
    let mut n = 0;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(c) if *c == '?' || name.get(n) == Some(c) => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((behind, at)) = star else {
                    return false;
                };
                star = Some((behind, at + 1));
                p = behind;
                n = at + 1;
            }
        }
    }

    pattern.iter().skip(p).all(|c| *c == '*')
}

struct Reader {
    names: Vec<String>,
    files: usize,
}

impl Reader {
    fn read(&mut self, text: &str, depth: usize, include: &mut impl FnMut(&str) -> Vec<String>) {
        for line in text.lines() {
            let (keyword, arguments) = split(line);
            // Keywords have no case, arguments have (ssh_config(5)).
            if keyword.eq_ignore_ascii_case("host") {
                arguments.into_iter().for_each(|name| self.add(name));
            } else if keyword.eq_ignore_ascii_case("include") && depth < DEPTH_MAX {
                for text in arguments
                    .iter()
                    .flat_map(|pattern| include(pattern))
                    .collect::<Vec<_>>()
                {
                    self.files += 1;
                    if self.files > FILES_MAX {
                        return;
                    }
                    self.read(&text, depth + 1, include);
                }
            }
        }
    }

    fn add(&mut self, name: String) {
        let is_name = name.parse::<crate::HostId>().is_ok();
        if is_name && self.names.len() < HOSTS_MAX && !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

/// Keyword and arguments of a line: separated by spaces or one `=`, with quotes.
fn split(line: &str) -> (&str, Vec<String>) {
    let line = line.trim();
    let end = line
        .find(|c: char| c.is_whitespace() || c == '=')
        .unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    if keyword.starts_with('#') {
        return ("", Vec::new());
    }

    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    let mut arguments = Vec::new();

    for (index, piece) in rest.split('"').enumerate() {
        match index % 2 {
            1 => arguments.push(piece.to_owned()),
            _ => arguments.extend(piece.split_whitespace().map(str::to_owned)),
        }
    }

    // A comment may follow the arguments.
    let end = arguments
        .iter()
        .position(|word| word.starts_with('#'))
        .unwrap_or(arguments.len());
    arguments.truncate(end);
    (keyword, arguments)
}
