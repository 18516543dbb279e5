//! Parts of the original's engine that its interface contains: steps of a test, streams, timers,
//! and results of streams. This engine has other parts, and a program that calls one of these gets
//! its error. They take any arguments, which C permits.

use std::ffi::{c_double, c_int, c_long, c_void};

use linerate_boundary::guard;
use linerate_iperf3::wire::ErrorCode;

use crate::error::fail_with;

/// Exports functions that fail with `IEUNIMP` and return a value.
macro_rules! unavailable {
    ($($type:ty = $value:expr, $code:ident: $($name:ident)*;)*) => {
        $($(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> $type {
                guard(-1, || fail_with(ErrorCode::$code));
                $value
            }
        )*)*
    };
}

unavailable! {
    // A test is run as a whole.
    c_int = -1, Unimp: iperf_connect iperf_exchange_parameters iperf_exchange_results iperf_create_streams
        iperf_handle_message_client iperf_handle_message_server iperf_server_listen iperf_accept iperf_init_test
        iperf_create_send_timers iperf_set_send_state iperf_send iperf_recv iperf_json_start iperf_json_finish;
    () = (), Unimp: iperf_stats_callback iperf_reporter_callback iperf_check_throttle iperf_check_total_rate
        iperf_on_new_stream iperf_on_test_start iperf_on_connect iperf_on_test_finish iperf_set_test_state;
    // No pointer to a stream or its results leaves this library.
    *mut c_void = std::ptr::null_mut(), Unimp: iperf_new_stream get_protocol;
    c_int = -1, Unimp: iperf_init_stream;
    () = (), Unimp: iperf_add_stream iperf_free_stream add_to_interval_list connect_msg save_tcpinfo print_tcpinfo
        build_tcpinfo_message;
    c_long = -1, Unimp: get_total_retransmits get_snd_cwnd get_snd_wnd get_rtt get_rttvar get_pmtu;
    // The control connection stays inside a run.
    c_int = -1, Unimp: iperf_get_control_socket;
    c_int = 0, Unimp: iperf_get_control_socket_mss;
    () = (), Unimp: iperf_set_control_socket;
    // The process is the program's: its signals, its CPUs, its file with the process id, its usage
    // text.
    () = (), Unimp: iperf_catch_sigend usage usage_long;
    c_int = -1, Affinity: iperf_setaffinity iperf_clearaffinity;
    c_int = -1, PidFile: iperf_create_pidfile iperf_delete_pidfile;
    // Limits of a server that `iperf_parse_arguments` sets.
    () = (), Unimp: iperf_set_test_bitrate_limit_maximum iperf_set_test_bitrate_limit_interval
        iperf_set_test_bitrate_limit_stats_per_interval iperf_set_test_rcv_timeout;
    u64 = 0, Unimp: iperf_get_test_bitrate_limit;
    c_double = 0.0, Unimp: iperf_get_test_bitrate_limit_interval;
    c_int = 0, Unimp: iperf_get_test_bitrate_limit_stats_per_interval iperf_get_test_rcv_timeout;
}
