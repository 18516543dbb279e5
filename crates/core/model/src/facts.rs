//! The keys of snapshots: unit, source and meaning of every fact and counter.

/// A key, or a pattern of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactKey {
    /// The key; `*` matches a name or number, `?` one character.
    pub pattern: &'static str,
    /// Unit or kind of the value.
    pub unit: &'static str,
    /// Where the kernel has it: file, request or command, as their man pages name them.
    pub source: &'static str,
    /// Meaning of the value.
    pub meaning: &'static str,
    /// Words for a report with `{}` in the place of the value; `-` for what is no metric.
    pub phrase: Option<&'static str>,
}

/// All keys, those of one group side by side.
pub fn all() -> impl Iterator<Item = FactKey> {
    let lines = include_str!("facts.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut columns = line.split(" | ");
        let mut next = || columns.next();
        Some(FactKey {
            pattern: next()?,
            unit: next()?,
            source: next()?,
            meaning: next()?,
            phrase: next(),
        })
    })
}

/// The entry of a key such as `nic.eth0.ring.rx.cur`, or of a pattern.
pub fn find(key: &str) -> Option<FactKey> {
    all()
        // A key that is named exactly has its own line beside that of its pattern.
        .find(|fact| fact.pattern == key)
        .or_else(|| all().find(|fact| matches(fact.pattern, key)))
}

/// True if a key is one of a pattern: `*` matches at least one character; names of interfaces may contain dots.
pub fn matches(pattern: &str, key: &str) -> bool {
    let mut pattern = pattern.chars();
    match (pattern.next(), key.chars().next()) {
        (None, None) => true,
        (Some('*'), Some(first)) => {
            // An asterisk is at least one character, so that the first one is taken at once.
            let rest = &key[first.len_utf8()..];
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| matches(pattern.as_str(), &rest[at..]))
        }
        (Some(wanted), Some(found)) if wanted == found || wanted == '?' => {
            matches(pattern.as_str(), &key[found.len_utf8()..])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_columns_and_no_pattern_hides_another() {
        let lines = include_str!("facts.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        assert!(
            lines
                .clone()
                .all(|line| (4..=5).contains(&line.split(" | ").count()))
        );
        assert_eq!(all().count(), lines.count());

        for fact in all() {
            assert!(
                fact.phrase
                    .is_none_or(|phrase| phrase == "-" || phrase.matches("{}").count() == 1),
                "{fact:?}"
            );
            let key = fact.pattern.replace(['*', '?'], "1");
            let found = find(&key).map(|fact| fact.pattern);
            assert_eq!(found, Some(fact.pattern), "{key}");
        }
    }

    #[test]
    fn keys_are_found_by_their_pattern() {
        for (key, pattern) in [
            ("nic.eth0.100.ring.rx.cur", Some("nic.*.ring.*.cur")),
            ("nic.*.ring.*.cur", Some("nic.*.ring.*.cur")),
            ("sysctl.net.core.rmem_max", Some("sysctl.net.core.rmem_max")),
            ("sysctl.vm.swappiness", Some("sysctl.*")),
            ("nic..link.up", None),
            ("nothing", None),
        ] {
            assert_eq!(find(key).map(|fact| fact.pattern), pattern, "{key}");
        }
    }
}
