//! The name that a mistyped one may mean.

/// The candidate with the fewest edits, if they are few.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let with_edits = candidates
        .into_iter()
        .map(|candidate| (edits(name, candidate), candidate));
    let (count, candidate) = with_edits.min()?;
    (count <= name.chars().count().max(3) / 2).then_some(candidate)
}

/// Longer names are compared by their begin: the time grows with the product of the lengths.
const LENGTH_MAX: usize = 64;

fn edits(from: &str, to: &str) -> usize {
    let [from, to] = [from, to].map(|name| name.chars().take(LENGTH_MAX).collect::<String>());
    strsim::levenshtein(&from, &to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_edits_give_a_suggestion_and_many_give_none() {
        let keys = ["name", "ssh", "rack", "labels", "paths", "server"];
        assert_eq!(nearest("label", keys), Some("labels"));
        assert_eq!(nearest("pahts", keys), Some("paths"));
        assert_eq!(nearest("hostname", keys), Some("name"));
        assert_eq!(nearest("frequency", keys), None);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits(&"a".repeat(1 << 20), &"a".repeat(64)), 0);
    }
}
