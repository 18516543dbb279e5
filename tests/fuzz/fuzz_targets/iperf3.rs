//! Wire formats and machines of iperf3's dialect.
#![no_main]

use linerate_fuzz::{iperf3, one_of};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &iperf3::server_control,
        &iperf3::client_control,
        &iperf3::params_json,
        &iperf3::results_json,
    ]
));
