//! Random bytes from the kernel, for names that must not collide or be guessed.

use std::fs::File;
use std::io::Read;

use linerate_sys::OsError;

/// `N` bytes of `/dev/urandom` (random(4)).
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], OsError> {
    let mut bytes = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    read.map_err(|source| OsError::new("read", "/dev/urandom", source))?;
    Ok(bytes)
}
