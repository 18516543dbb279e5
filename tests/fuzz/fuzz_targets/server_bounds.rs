//! Tables of a server that remote peers fill.
#![no_main]

use linerate_engine::fuzzing::{half_open_flows, quotas};
use linerate_fuzz::one_of;

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(data, &[&half_open_flows, &quotas,]));
