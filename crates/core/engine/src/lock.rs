//! Mutexes that stay usable after a panic of another thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What a thread that panicked left is as good as any other: values change in one step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
