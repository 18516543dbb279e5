//! Lines between coordinator and agents, and the results in them.
#![no_main]

use linerate_fleet::run::fuzzing::results;
use linerate_fuzz::{fleet, in_segments, one_of};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(data, &[&in_segments(fleet::lines), &results,]));
