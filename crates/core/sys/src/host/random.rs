//! Random bytes from the kernel.

/// `N` random bytes (getrandom(2)).
///
/// # Panics
/// On a kernel older than 3.17, which does not have the call.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let rest = &mut bytes[filled..];
        // SAFETY: the pointer and the length are those of a slice that this function borrows alone.
        let count = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(count) {
            Ok(count) => filled += count,
            Err(_) => {
                let error = std::io::Error::last_os_error();
                // A signal may interrupt the wait for the first random bytes after boot.
                assert_eq!(
                    error.raw_os_error(),
                    Some(libc::EINTR),
                    "getrandom: {error}"
                );
            }
        }
    }

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
