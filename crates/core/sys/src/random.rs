//! Random bytes from the kernel.

/// `N` random bytes.
///
/// # Panics
/// On a system without a source of them: Linux before 3.17 without `/dev/urandom`.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has random bytes");

    bytes
}

/// `N` random bytes as hexadecimal digits: tokens, names that cannot be guessed.
pub fn hexadecimal<const N: usize>() -> String {
    bytes::<N>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_calls_give_different_bytes() {
        assert_ne!(bytes::<32>(), bytes::<32>());
        assert_eq!(hexadecimal::<32>().len(), 64);
        assert_eq!(bytes::<0>(), []);
    }
}
