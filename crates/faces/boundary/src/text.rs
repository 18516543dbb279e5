//! Strings of C, and strings for C.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// A string of the caller in C, or null.
///
/// The caller promises that a pointer which is not null points to bytes that end in a NUL and do
/// not change during the call.
#[repr(transparent)]
#[derive(Debug)]
pub struct Text(*const c_char);

impl Text {
    /// The string; `None` for a null pointer. Bytes that are no UTF-8 are replaced.
    pub fn read(&self) -> Option<String> {
        Some(bytes(self.0)?.to_string_lossy().into_owned())
    }
}

/// The arguments of a command line, as `main` of a program in C receives them.
///
/// The caller promises that the array holds as many strings as the count beside it, each as
/// [`Text`] describes, or null.
#[repr(transparent)]
#[derive(Debug)]
pub struct ArgVector(*const *const c_char);

impl ArgVector {
    /// The arguments up to `count` or the first null pointer.
    pub fn read(&self, count: c_int) -> Vec<OsString> {
        let count = if self.0.is_null() {
            0
        } else {
            usize::try_from(count).unwrap_or(0)
        };
        // SAFETY: by the promise of the caller the array has `count` elements.
        let arg = |index: usize| bytes(unsafe { *self.0.add(index) });
        (0..count)
            .map_while(arg)
            .map(|arg| OsStr::from_bytes(arg.to_bytes()).to_owned())
            .collect()
    }
}

fn bytes<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    // SAFETY: by the promise of the caller the string ends in a NUL and lives during the call; both
    // callers copy it before they return.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })
}

/// A string to which the caller in C gets a pointer; it is valid until another string is stored or
/// this is dropped.
#[derive(Debug, Clone, Default)]
pub struct Kept(Option<CString>);

impl Kept {
    /// Stores a text, up to its first NUL.
    pub fn set(&mut self, text: Option<&str>) {
        self.0 = text.and_then(|text| CString::new(text.split('\0').next()?).ok());
    }

    /// Null where nothing is stored.
    pub fn as_ptr(&self) -> *const c_char {
        self.0.as_ref().map_or(ptr::null(), |text| text.as_ptr())
    }

    /// The stored text.
    pub fn get(&self) -> Option<&str> {
        self.0.as_ref()?.to_str().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_up_to_their_end() {
        assert_eq!(Text(c"eth0".as_ptr()).read().as_deref(), Some("eth0"));
        assert_eq!(Text(ptr::null()).read(), None);
        let args = [c"iperf3".as_ptr(), c"-s".as_ptr(), ptr::null()];
        assert_eq!(ArgVector(args.as_ptr()).read(2), ["iperf3", "-s"]);
        assert_eq!(ArgVector(args.as_ptr()).read(3), ["iperf3", "-s"]);
        assert!(
            ArgVector(args.as_ptr()).read(-1).is_empty()
                && ArgVector(ptr::null()).read(2).is_empty()
        );
    }

    #[test]
    fn stored_text_ends_at_its_nul() {
        let mut kept = Kept::default();
        assert!(kept.as_ptr().is_null());
        kept.set(Some("a\0b"));
        assert_eq!(kept.get(), Some("a"));
        kept.set(None);
        assert!(kept.as_ptr().is_null());
    }
}
