//! Random numbers for secrets.

use aws_lc_rs::rand;

/// Random bytes that cannot be predicted: of tokens, secrets, cookies.
///
/// # Panics
/// When the random number source fails, which getrandom(2) excludes for requests of this size.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).expect("the random number source of the kernel does not fail");
    bytes
}

/// Random bytes as hexadecimal digits.
pub(crate) fn random_digits<const N: usize>() -> String {
    random::<N>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(random::<32>(), random::<32>());
        assert_eq!(random_digits::<32>().len(), 64);
        assert_eq!(random::<0>(), []);
    }
}
