//! Functions that read and set one value.

use std::ffi::{c_char, c_int};

use linerate_boundary::Text;

use crate::test::{Test, change, read};

/// Exports `getter` and `setter` of each field that is a number.
macro_rules! numbers {
    ($($field:ident: $type:ty, $($getter:ident)?, $($setter:ident)?;)*) => {
        $(
            $(
                #[unsafe(no_mangle)]
                extern "C" fn $getter(test: Option<&Test>) -> $type {
                    read(test, <$type>::default(), |settings| settings.$field)
                }
            )?
            $(
                #[unsafe(no_mangle)]
                extern "C" fn $setter(test: Option<&Test>, value: $type) {
                    change(test, |settings| settings.$field = value);
                }
            )?
        )*
    };
}

numbers! {
    role: c_char, iperf_get_test_role, iperf_set_test_role;
    verbose: c_int, iperf_get_verbose, iperf_set_verbose;
    omit_s: c_int, iperf_get_test_omit, iperf_set_test_omit;
    duration_s: c_int, iperf_get_test_duration, iperf_set_test_duration;
    reverse: c_int, iperf_get_test_reverse, iperf_set_test_reverse;
    bidirectional: c_int,, iperf_set_test_bidirectional;
    block_len_bytes: c_int, iperf_get_test_blksize,;
    rate_bps: u64, iperf_get_test_rate, iperf_set_test_rate;
    fq_rate_bps: u64, iperf_get_test_fqrate, iperf_set_test_fqrate;
    pacing_timer_us: c_int, iperf_get_test_pacing_timer, iperf_set_test_pacing_timer;
    bytes: u64, iperf_get_test_bytes, iperf_set_test_bytes;
    blocks: u64, iperf_get_test_blocks, iperf_set_test_blocks;
    burst: c_int, iperf_get_test_burst, iperf_set_test_burst;
    socket_buffer_bytes: c_int, iperf_get_test_socket_bufsize, iperf_set_test_socket_bufsize;
    reporter_interval_s: f64, iperf_get_test_reporter_interval, iperf_set_test_reporter_interval;
    stats_interval_s: f64, iperf_get_test_stats_interval, iperf_set_test_stats_interval;
    streams: c_int, iperf_get_test_num_streams, iperf_set_test_num_streams;
    repeating_payload: c_int, iperf_get_test_repeating_payload, iperf_set_test_repeating_payload;
    timestamps: c_int, iperf_get_test_timestamps, iperf_set_test_timestamps;
    bind_port: c_int, iperf_get_test_bind_port, iperf_set_test_bind_port;
    port: c_int, iperf_get_test_server_port, iperf_set_test_server_port;
    protocol: c_int, iperf_get_test_protocol_id,;
    json: c_int, iperf_get_test_json_output, iperf_set_test_json_output;
    zerocopy: c_int, iperf_get_test_zerocopy, iperf_set_test_zerocopy;
    get_server_output: c_int, iperf_get_test_get_server_output, iperf_set_test_get_server_output;
    unit_format: c_char, iperf_get_test_unit_format, iperf_set_test_unit_format;
    udp_counters_64bit: c_int, iperf_get_test_udp_counters_64bit, iperf_set_test_udp_counters_64bit;
    one_off: c_int, iperf_get_test_one_off, iperf_set_test_one_off;
    tos: c_int, iperf_get_test_tos, iperf_set_test_tos;
    no_delay: c_int, iperf_get_test_no_delay, iperf_set_test_no_delay;
    connect_timeout_ms: c_int, iperf_get_test_connect_timeout, iperf_set_test_connect_timeout;
    dont_fragment: c_int, iperf_get_dont_fragment, iperf_set_dont_fragment;
    mss_bytes: c_int, iperf_get_test_mss, iperf_set_test_mss;
    idle_timeout_s: c_int, iperf_get_test_idle_timeout, iperf_set_test_idle_timeout;
}

/// Exports `getter` and `setter` of each field that is a string. A pointer from a getter is valid
/// until the field is set or the test is freed.
macro_rules! strings {
    ($($($field:ident).+, $($getter:ident)?, $($setter:ident)?;)*) => {
        $(strings!(@one ($($field).+), $($getter)?, $($setter)?);)*
    };
    (@one ($($field:ident).+), $($getter:ident)?,) => {
        strings!(@get ($($field).+), $($getter)?);
    };
    (@one ($($field:ident).+), $($getter:ident)?, $setter:ident) => {
        strings!(@get ($($field).+), $($getter)?);
        #[unsafe(no_mangle)]
        extern "C" fn $setter(test: Option<&Test>, value: Text) {
            change(test, |settings| settings.$($field).+.set(value.read().as_deref()));
        }
    };
    (@get ($($field:ident).+),) => {};
    (@get ($($field:ident).+), $getter:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $getter(test: Option<&Test>) -> *const c_char {
            read(test, std::ptr::null(), |settings| settings.$($field).+.as_ptr())
        }
    };
}

strings! {
    host, iperf_get_test_server_hostname, iperf_set_test_server_hostname;
    template, iperf_get_test_template, iperf_set_test_template;
    bind_address, iperf_get_test_bind_address, iperf_set_test_bind_address;
    bind_device, iperf_get_test_bind_dev, iperf_set_test_bind_dev;
    timestamp_format, iperf_get_test_timestamp_format, iperf_set_test_timestamp_format;
    congestion, iperf_get_test_congestion_control, iperf_set_test_congestion_control;
    extra_data, iperf_get_extra_data, iperf_set_test_extra_data;
    extra_data, iperf_get_test_extra_data,;
    logfile,, iperf_set_test_logfile;
    login.username,, iperf_set_test_client_username;
    login.password,, iperf_set_test_client_password;
    login.public_key,, iperf_set_test_client_rsa_pubkey;
    login.private_key,, iperf_set_test_server_rsa_privkey;
    login.users_file,, iperf_set_test_server_authorized_users;
}

#[unsafe(no_mangle)]
extern "C" fn iperf_set_test_server_skew_threshold(test: Option<&Test>, seconds: c_int) {
    change(test, |settings| settings.login.skew_s = seconds);
}

#[unsafe(no_mangle)]
extern "C" fn iperf_set_test_blksize(test: Option<&Test>, bytes: c_int) {
    change(test, |settings| {
        settings.block_len_bytes = bytes;
        settings.is_block_len_set = true;
    });
}
