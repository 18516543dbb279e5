//! Order of the variants of a pair.

/// Places of `count` variants in the order in which a repetition runs them: a rotation, so that
/// over `count` repetitions each variant runs once in each place. Two variants run as A B B A.
pub(super) fn order(count: usize, repetition: u32) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + repetition as usize) % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_balanced() {
        let two: Vec<usize> = (0..4).flat_map(|repetition| order(2, repetition)).collect();
        assert_eq!(two, [0, 1, 1, 0, 0, 1, 1, 0]);
        let three: Vec<Vec<usize>> = (0..3)
            .map(|repetition| order(3, repetition).collect())
            .collect();
        assert_eq!(three, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }
}
