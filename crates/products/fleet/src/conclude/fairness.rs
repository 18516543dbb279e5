//! Fairness of rates that share a link.

/// Index of Jain, Chiu and Hawe (DEC-TR-301, 1984): the square of the sum over the number times the
/// sum of the squares. 1 where all rates are equal, 1/n where one has everything; `None` of nothing
/// and of zeros.
pub fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let index = sum * sum / (rates.len() as f64 * squares);
    // No rates and rates of 0 make the index 0/0.
    index.is_finite().then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_has_its_published_ends() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[3.0; 7]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
    }
}
