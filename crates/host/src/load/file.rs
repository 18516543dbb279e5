//! A file of the kernel that is opened once and read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use linerate_sys::error::io_text;

use super::error::ReadError;

/// Largest text that is read; the kernel's longest, that of interrupts on large hosts, is far below.
const BYTES_MAX: usize = 4 << 20;
/// Room for most files in one call.
const ROOM_BYTES: usize = 16 << 10;

/// Where texts are read into, kept between readings.
pub(crate) type Room = Vec<u8>;

/// A file of `/proc` or of a control group.
#[derive(Debug)]
pub(crate) struct KernelFile(Result<File, ReadError>);

impl KernelFile {
    /// Opens it. If it cannot be opened, every read returns the reason.
    pub(crate) fn open(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self(File::open(path).map_err(|error| ReadError::file(path, &error)))
    }

    /// Its current contents.
    ///
    /// # Errors
    /// Why not, with its name where it could not be opened.
    pub(crate) fn read<'a>(&self, room: &'a mut Room) -> Result<&'a [u8], ReadError> {
        let file = self.0.as_ref().map_err(Clone::clone)?;
        let length = read_all(file, room).map_err(|error| ReadError::System(io_text(&error)))?;
        Ok(room.get(..length).unwrap_or_default())
    }
}

fn read_all(file: &File, room: &mut Room) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == room.len() {
            if length >= BYTES_MAX {
                return Ok(length);
            }
            room.resize((length * 2).max(ROOM_BYTES), 0);
        }
        let place = room.get_mut(length..).unwrap_or_default();
        match file.read_at(place, u64::try_from(length).unwrap_or(u64::MAX)) {
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
        let mut room = Room::new();
        let first = file.read(&mut room).expect("every thread has it").to_vec();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while file.read(&mut room).expect("still") == first {
            assert!(std::time::Instant::now() < deadline, "it never changed");
        }
        let missing = KernelFile::open("/proc/self/nothing");
        let why = missing.read(&mut room).expect_err("no such file");
        assert!(why.to_string().contains("/proc/self/nothing: No such file"), "{why}");
    }
}
