//! A file of the kernel that is opened once and read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::ReadError;

/// Largest text that is read; the kernel's longest, that of interrupts on large hosts, is far
/// below.
const BYTES_MAX: usize = 4 << 20;
/// Most files fit into it.
const BUFFER_BYTES: usize = 16 << 10;

/// Where texts are read into, kept between samples.
pub(crate) type Buffer = Vec<u8>;

/// A file of `/proc` or of a control group.
#[derive(Debug)]
pub(crate) struct KernelFile {
    path: PathBuf,
    file: Result<File, ReadError>,
}

impl KernelFile {
    /// Opens it. If it cannot be opened, every read returns the reason.
    pub(crate) fn open(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self {
            path: path.to_owned(),
            file: File::open(path).map_err(|error| ReadError::file(path, &error)),
        }
    }

    /// Its current contents up to the first byte that is no text.
    ///
    /// # Errors
    /// Why not, with its name.
    pub(crate) fn read<'a>(&self, buffer: &'a mut Buffer) -> Result<&'a str, ReadError> {
        let file = self.file.as_ref().map_err(Clone::clone)?;
        let length = read_all(file, buffer).map_err(|error| ReadError::file(&self.path, &error))?;
        let bytes = buffer.get(..length).unwrap_or_default();
        Ok(bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid()))
    }
}

fn read_all(file: &File, buffer: &mut Buffer) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length >= BYTES_MAX {
                return Ok(length);
            }
            buffer.resize((length * 2).max(BUFFER_BYTES), 0);
        }

        let rest = buffer.get_mut(length..).unwrap_or_default();
        // pread(2) from the start: files of /proc are generated for each read at offset 0, so the
        // file stays open.
        match file.read_at(rest, u64::try_from(length).unwrap_or(u64::MAX)) {
            // Only a read of 0 is the end: seq_file returns short reads in between.
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_file_returns_current_contents_or_the_reason() {
        let file = KernelFile::open("/proc/thread-self/schedstat");
        let mut buffer = Buffer::new();
        let first = file
            .read(&mut buffer)
            .expect("every thread has it")
            .to_owned();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);

        while file.read(&mut buffer).expect("still") == first {
            assert!(std::time::Instant::now() < deadline, "it never changed");
        }

        let missing = KernelFile::open("/proc/self/nothing");
        let why = missing.read(&mut buffer).expect_err("no such file");
        assert!(
            why.to_string().contains("/proc/self/nothing: No such file"),
            "{why}"
        );
    }
}
