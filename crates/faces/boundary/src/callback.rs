//! Functions in C that are called with a text.

use std::ffi::{CString, c_char, c_void};

/// A function that receives a text, valid during the call, and the pointer it was registered with.
pub type TextFunction = extern "C" fn(text: *const c_char, user: *mut c_void);

/// A function of the caller in C and its pointer.
///
/// The caller promises that the function may be called from any thread with this pointer, one call
/// at a time, until the function that took both has returned.
#[derive(Debug, Clone, Copy)]
pub struct Callback {
    function: TextFunction,
    user: *mut c_void,
}

// SAFETY: the pointer is only passed to the function, which by the promise of its owner may receive
// it in any thread.
unsafe impl Send for Callback {}

impl Callback {
    /// `function` with `user` for its last argument.
    pub fn new(function: TextFunction, user: *mut c_void) -> Self {
        Self { function, user }
    }

    /// Calls the function. Bytes behind a NUL are left out.
    pub fn call(&self, text: &str) {
        let text = text.split('\0').next().unwrap_or_default();
        if let Ok(text) = CString::new(text) {
            (self.function)(text.as_ptr(), self.user);
        }
    }
}
