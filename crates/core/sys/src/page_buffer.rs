//! Memory that system calls copy from and to on hot paths.
//!
//! Where a buffer begins decides how fast the kernel copies. On several AMD CPUs `rep movs`, which
//! the kernel uses to copy between a socket and user space, is three to five times slower when the
//! destination lies slightly ahead of the source modulo 4096: in 1 to 63 or to 128 (page aliasing
//! of string moves). Pages of a socket begin at offset 0, memory from the heap begins 16 bytes
//! behind a page boundary, so a receiver that reads into the heap meets exactly that case. Memory
//! that begins at a page boundary avoids it on every CPU that was measured; `make bench KIND=floor`
//! sweeps the offsets.

use std::alloc::{self, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{fmt, io};

use crate::error::{OsError, Result};

/// Alignment of every [`PageBuffer`] in bytes: the distance at which addresses alias in the copy
/// routines of CPUs. It divides the page size of every Linux system.
pub const PAGE_ALIGNMENT: usize = 4096;

/// Zeroed bytes that begin at a page boundary. The memory behind them up to the next boundary
/// belongs to the buffer. A page is resident once something was written to it: a server with a
/// thousand slow tests keeps 30 kB for each, with resident buffers it kept 290 kB.
pub struct PageBuffer {
    block: NonNull<u8>,
    /// Of the first byte in the block.
    offset: usize,
    len: usize,
    layout: Layout,
}

// SAFETY: the buffer owns its memory alone, as a `Vec<u8>` does.
unsafe impl Send for PageBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for PageBuffer {}

impl PageBuffer {
    /// `len` zeroed bytes.
    ///
    /// # Errors
    /// `OutOfMemory` when the system has none, or when `len` is larger than an allocation can be.
    pub fn zeroed(len: usize) -> Result<Self> {
        let layout = len
            .max(1)
            .checked_next_multiple_of(PAGE_ALIGNMENT)
            .and_then(|size| size.checked_add(PAGE_ALIGNMENT))
            // An allocation with a larger alignment would be zeroed by writes, which make its pages
            // resident.
            .and_then(|size| Layout::from_size_align(size, 1).ok())
            .ok_or_else(|| out_of_memory(len))?;
        // SAFETY: the layout is not empty.
        let block = NonNull::new(unsafe { alloc::alloc_zeroed(layout) })
            .ok_or_else(|| out_of_memory(len))?;

        let address = block.as_ptr().addr();
        let offset = address.next_multiple_of(PAGE_ALIGNMENT) - address;
        Ok(Self {
            block,
            offset,
            len,
            layout,
        })
    }

    /// `content` repeated, without gaps.
    ///
    /// # Errors
    /// As [`PageBuffer::zeroed`].
    pub fn repeated(content: &[u8], times: usize) -> Result<Self> {
        let len = content.len().saturating_mul(times);
        let mut buffer = Self::zeroed(len)?;
        for part in buffer.chunks_exact_mut(content.len().max(1)) {
            part.copy_from_slice(content);
        }
        Ok(buffer)
    }
}

fn out_of_memory(len: usize) -> OsError {
    OsError::new(
        "allocate",
        format_args!("{len} bytes"),
        io::ErrorKind::OutOfMemory.into(),
    )
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the block has `len` initialised bytes behind `offset`, which live as long as
        // `self`; no mutable reference exists.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().add(self.offset), self.len) }
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_ptr().add(self.offset), self.len) }
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout and is not used any more.
        unsafe { alloc::dealloc(self.block.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for PageBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageBuffer")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_at_a_page_boundary_whatever_its_length() {
        for len in [0, 1, 17, 4095, 4096, 4097, 65_535, 1 << 20] {
            let buffer = PageBuffer::zeroed(len).expect("memory");
            assert_eq!(buffer.as_ptr() as usize % PAGE_ALIGNMENT, 0, "{len}");
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn repeats_its_content() {
        let buffer = PageBuffer::repeated(b"abc", 3).expect("memory");
        assert_eq!(&buffer[..], b"abcabcabc");
        assert!(PageBuffer::repeated(b"", 3).expect("memory").is_empty());
    }

    #[test]
    fn impossible_length_is_an_error() {
        let error = PageBuffer::zeroed(usize::MAX).expect_err("no address space holds it");
        assert_eq!(error.source.kind(), io::ErrorKind::OutOfMemory);
        assert!(PageBuffer::repeated(b"ab", usize::MAX).is_err());
    }
}
