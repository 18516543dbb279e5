//! Inventory files of Ansible in the INI format: groups, groups of groups, their variables, hosts
//! and ranges.

use std::collections::BTreeMap;

use super::ansible::{Connection, host};
use super::groups::{DEPTH_MAX, GROUPS_MAX, Groups};
use super::{HOSTS_MAX, Inventory, InventoryError, check, check_size};

/// Reads an inventory. Variables other than those of the connection are passed over.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(text: &str) -> Result<Inventory, InventoryError> {
    check_size(text)?;
    let mut file = File::default();
    let mut section = Section::Hosts("ungrouped".to_owned());

    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }

        let wrong = |text: String| InventoryError::new(Some(number), text);
        if let Some(header) = line.strip_prefix('[') {
            section = section_of(header).ok_or_else(|| wrong(format!("{line:?} is no section")))?;
            file.groups.0.entry(section.group().to_owned()).or_default();
            if file.groups.0.len() > GROUPS_MAX {
                return Err(wrong(format!("more than {GROUPS_MAX} groups")));
            }
        } else {
            file.read(&section, number, line).map_err(wrong)?;
        }
    }

    file.inventory()
}

#[derive(Debug)]
enum Section {
    Hosts(String),
    Children(String),
    Vars(String),
}

impl Section {
    fn group(&self) -> &str {
        match self {
            Self::Hosts(group) | Self::Children(group) | Self::Vars(group) => group,
        }
    }
}

fn section_of(header: &str) -> Option<Section> {
    let (name, behind) = header.split_once(']')?;
    let is_end = behind.trim_start().is_empty() || behind.trim_start().starts_with('#');
    let (group, kind) = name.split_once(':').unwrap_or((name, ""));
    let group = Some(group.trim())
        .filter(|group| !group.is_empty() && is_end)?
        .to_owned();

    match kind.trim() {
        "" => Some(Section::Hosts(group)),
        "children" => Some(Section::Children(group)),
        "vars" => Some(Section::Vars(group)),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct File {
    groups: Groups,
    group_vars: BTreeMap<String, Connection>,
    /// Line and variables of each host.
    hosts: BTreeMap<String, (usize, Connection)>,
}

impl File {
    fn read(&mut self, section: &Section, number: usize, line: &str) -> Result<(), String> {
        let words = words(line)?;
        let Some(first) = words.first() else {
            return Ok(());
        };

        match section {
            Section::Children(group) => self
                .groups
                .0
                .entry(group.clone())
                .or_default()
                .children
                .push(first.clone()),
            Section::Vars(group) => {
                let (key, value) = line.split_once('=').ok_or("no `=`")?;
                let value = words_joined(value)?;
                self.group_vars
                    .entry(group.clone())
                    .or_default()
                    .set(key.trim(), &value)?;
            }
            Section::Hosts(group) => self.read_hosts(group, number, &words)?,
        }

        Ok(())
    }

    fn read_hosts(&mut self, group: &str, number: usize, words: &[String]) -> Result<(), String> {
        let Some((pattern, variables)) = words.split_first() else {
            return Ok(());
        };
        let mut connection = Connection::default();

        for variable in variables {
            let (key, value) = variable
                .split_once('=')
                .ok_or_else(|| format!("{variable:?} has no `=`"))?;
            connection.set(key, value)?;
        }

        for name in expand(pattern)? {
            let (name, port) = match name.split_once(':') {
                Some((name, port)) if !port.contains(':') => {
                    (name.to_owned(), Some(port.to_owned()))
                }
                _ => (name, None),
            };
            let of_line = Connection {
                port: connection.port.clone().or(port),
                ..connection.clone()
            };
            let (_, known) = self
                .hosts
                .entry(name.clone())
                .or_insert((number, Connection::default()));
            *known = of_line.or(known);
            self.groups
                .0
                .entry(group.to_owned())
                .or_default()
                .hosts
                .push(name);

            if self.hosts.len() > HOSTS_MAX {
                return Err(format!("more than {HOSTS_MAX} hosts"));
            }
        }

        Ok(())
    }

    /// A variable of an inner group has precedence over that of an outer one, and that of the host
    /// over both.
    fn inventory(self) -> Result<Inventory, InventoryError> {
        let deep = || {
            InventoryError::new(
                None,
                format!("groups contain each other, or deeper than {DEPTH_MAX}"),
            )
        };
        let depths = self.groups.depths().ok_or_else(deep)?;
        let of_hosts = self.groups.of_hosts();
        let mut inventory = Inventory::default();

        for (name, (line, own)) in &self.hosts {
            let groups = of_hosts.get(name.as_str()).cloned().unwrap_or_default();
            let mut inner_first: Vec<&str> = groups.iter().copied().collect();
            inner_first.sort_by_key(|group| {
                std::cmp::Reverse((depths.get(group).copied().unwrap_or(0), *group))
            });

            let vars = inner_first
                .into_iter()
                .filter(|group| *group != "all")
                .chain(["all"]);
            let vars = vars.filter_map(|group| self.group_vars.get(group));
            let connection = vars.fold(own.clone(), |inner, outer| inner.or(outer));
            inventory
                .hosts
                .push(host(name, Some(*line), &connection, &groups)?);
        }

        inventory.hosts.sort_by_key(|host| host.line);
        check::inventory(inventory)
    }
}

/// Words of a line; quotes keep spaces, and `#` after a space begins a comment.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;

    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }

    words.extend(word);
    if quote.is_some() {
        Err("a quote has no end".to_owned())
    } else {
        Ok(words)
    }
}

fn words_joined(text: &str) -> Result<String, String> {
    Ok(words(text)?.join(" "))
}

/// Ranges of Ansible: `www[01:50]`, `db[a:c]`, `n[1:9:2]`.
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let Some((before, tail)) = pattern.split_once('[') else {
        return Ok(vec![pattern.to_owned()]);
    };
    let wrong = || format!("{pattern:?} is no range; examples: www[01:50], db[a:c]");
    let (inner, after) = tail.split_once(']').ok_or_else(wrong)?;
    let mut parts = inner.split(':');
    let (first, last) = (
        parts.next().ok_or_else(wrong)?,
        parts.next().ok_or_else(wrong)?,
    );
    let step = parts
        .next()
        .map_or(Some(1), |step| step.parse::<usize>().ok())
        .filter(|step| (1..=HOSTS_MAX).contains(step));
    let step = step.filter(|_| parts.next().is_none()).ok_or_else(wrong)?;
    let values = numbers(first, last, step)
        .or_else(|| letters(first, last, step))
        .ok_or_else(wrong)?;
    let tails = expand(after)?;
    if values.len().saturating_mul(tails.len()) > HOSTS_MAX {
        return Err(format!("more than {HOSTS_MAX} hosts"));
    }

    Ok(values
        .iter()
        .flat_map(|value| {
            tails
                .iter()
                .map(move |tail| format!("{before}{value}{tail}"))
        })
        .collect())
}

fn numbers(first: &str, last: &str, step: usize) -> Option<Vec<String>> {
    let is_number = |text: &str| {
        (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(first) || !is_number(last) {
        return None;
    }

    let (from, to): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    let width = if first.starts_with('0') {
        first.len()
    } else {
        1
    };

    let values = (from..=to)
        .step_by(step)
        .take(HOSTS_MAX + 1)
        .map(|number| format!("{number:0width$}"));
    Some(values.collect::<Vec<_>>()).filter(|values| !values.is_empty())
}

fn letters(first: &str, last: &str, step: usize) -> Option<Vec<String>> {
    let letter = |text: &str| {
        Some(text.chars().next()?).filter(|c| c.is_ascii_alphabetic() && text.len() == 1)
    };
    let values = (letter(first)?..=letter(last)?)
        .step_by(step)
        .map(String::from);
    Some(values.collect::<Vec<_>>()).filter(|values| !values.is_empty())
}
