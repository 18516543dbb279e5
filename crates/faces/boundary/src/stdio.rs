//! The standard streams of the C library: what is written here keeps its order with the program's
//! own `printf`.

use std::ffi::{c_int, c_void};
use std::io::{self, Write};

/// A `FILE *` (stdio(3)).
pub type CFile = *mut c_void;

unsafe extern "C" {
    #[link_name = "stdout"]
    static STDOUT: CFile;
    #[link_name = "stderr"]
    static STDERR: CFile;
    fn fwrite(data: *const c_void, size: usize, count: usize, file: CFile) -> usize;
    fn fflush(file: CFile) -> c_int;
}

/// The standard output of the program.
pub fn stdout_file() -> CFile {
    // SAFETY: the C library sets the variable before `main`; a program that changes it while
    // another thread writes breaks its own output.
    unsafe { STDOUT }
}

fn stderr_file() -> CFile {
    // SAFETY: as above.
    unsafe { STDERR }
}

/// Writes to the standard output of the program.
#[derive(Debug, Clone, Copy)]
pub struct Stdout;

/// Writes to the standard error of the program.
#[derive(Debug, Clone, Copy)]
pub struct Stderr;

impl Write for Stdout {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        write(stdout_file(), data)
    }

    fn flush(&mut self) -> io::Result<()> {
        flush(stdout_file())
    }
}

impl Write for Stderr {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        write(stderr_file(), data)
    }

    fn flush(&mut self) -> io::Result<()> {
        flush(stderr_file())
    }
}

fn write(file: CFile, data: &[u8]) -> io::Result<usize> {
    if data.is_empty() {
        return Ok(0);
    }

    // SAFETY: pointer and length describe `data`; the stream is open for the life of the program.
    let written = unsafe { fwrite(data.as_ptr().cast(), 1, data.len(), file) };
    if written == 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(written)
    }
}

fn flush(file: CFile) -> io::Result<()> {
    // SAFETY: the stream is open for the life of the program.
    if unsafe { fflush(file) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
