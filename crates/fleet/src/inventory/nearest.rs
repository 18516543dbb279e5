//! The name that a mistyped one may stand for.

/// The candidate with the fewest edits, if they are few.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let with_edits = candidates.into_iter().map(|candidate| (edits(name, candidate), candidate));
    let (count, candidate) = with_edits.min()?;
    (count <= name.chars().count().max(3) / 2).then_some(candidate)
}

/// Levenshtein distance: insertions, deletions and replacements of characters.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().take(LENGTH_MAX).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().take(LENGTH_MAX).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (above, b) in row.iter_mut().skip(1).zip(&to) {
            let cost = diagonal + usize::from(a != *b);
            diagonal = *above;
            left = cost.min(left + 1).min(*above + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Longer names are compared by their begin.
const LENGTH_MAX: usize = 64;

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
    }
}
