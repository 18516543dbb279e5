//! Events of the kernel while a test runs: which packets it dropped, and what its CPUs did.

pub(crate) mod cpu_profile;
pub(crate) mod cpu_watch;
pub(crate) mod drop_counts;
pub(crate) mod drop_watch;
pub(crate) mod symbols;

mod format;

use linerate_model::placement::cpu_list;
use linerate_sys::perf_event::EventError;

use crate::error::ReadError;
use crate::permits::{Permit, Permits};
use crate::short_file;

/// Watches at once: a test has one of drops and one of CPUs, together with 392 KiB of locked memory
/// for every CPU.
static WATCHES: Permits = Permits::new(4);

/// A permit for a watch.
fn permit() -> Result<Permit, ReadError> {
    WATCHES
        .take()
        .ok_or_else(|| ReadError::missing("other tests are being watched"))
}

/// CPUs that can have events.
fn online_cpus() -> Vec<u32> {
    let online = short_file::read("/sys/devices/system/cpu/online");
    online.map_or_else(|| vec![0], |list| cpu_list(&list))
}

impl From<EventError> for ReadError {
    fn from(error: EventError) -> Self {
        Self::missing(error.to_string())
    }
}
