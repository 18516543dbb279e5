//! Reading and writing big-endian words at fixed offsets. Words beyond the end read as absent and
//! are not written.

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_be_bytes());
}

pub(crate) fn put_half(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_be_bytes());
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(target) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..value.len()))
    {
        target.copy_from_slice(value);
    }
}

/// Moves bytes from the front of `input` until `into` has `len` of them.
pub(crate) fn take(input: &mut &[u8], into: &mut Vec<u8>, len: usize) {
    let (taken, rest) = input.split_at(len.saturating_sub(into.len()).min(input.len()));
    into.extend_from_slice(taken);
    *input = rest;
}

/// Fills `bytes` with the digits that real peers send, beginning with `0` at the start of the
/// slice.
pub fn fill_pattern(bytes: &mut [u8]) {
    for (byte, digit) in bytes.iter_mut().zip((b'0'..=b'9').cycle()) {
        *byte = digit;
    }
}
