//! Live tests of the program: against the originals, against ourselves, and against peers that
//! break the rules.

/// A server with little memory and few descriptors, and clients that want all of both.
mod attacks {
    mod all_at_once;
    mod attacked;
    mod echo_floods;
    mod endless_plaintext;
    mod held_connections;
    mod keep_messages;
    mod one_byte_records;
    mod rate_floods;
    mod repeated_phases;
    mod tiny_chunks;
    mod udp_turns;
    mod unread_responses;
    mod wrong_tokens;
}

/// The doctor, the sweep and the first commands of a new user.
mod diagnosis {
    mod compare;
    mod doctor;
    mod drops;
    mod examined;
    mod faults;
    mod first_minutes;
    mod fixes;
    mod prove;
    mod sweep;
    mod sweep_answers;
    mod tunnels;
    mod vanished;
    mod work;
}

/// Agents of a fleet, with the test as coordinator.
mod fleet {
    mod agent;
    mod bus;
    mod cancel;
    mod check;
    mod failures;
    mod ladder;
    mod late;
    mod launchers;
    mod logins;
    mod matrix;
    mod mesh;
    mod records;
    mod report;
    mod script;
    mod signatures;
    mod simulated_agents;
    mod targets;
    mod worker;
}

/// The HTTP server, its load generator and its lab.
mod http {
    mod control;
    mod fairness;
    mod lab;
    mod lab_link;
    mod lab_tls;
    mod lab_verdicts;
    mod load;
    mod load_faults;
    mod load_latency;
    mod load_safety;
    mod load_scale;
    mod load_tls;
    mod server;
}

/// iperf 2's dialect.
mod iperf2 {
    mod as_the_originals;
    mod bounceback;
    mod bursts;
    mod flows;
    mod frames;
    mod load;
    mod measurements;
    mod options;
    mod reports;
    mod service;
    mod streams;
}

/// iperf3's dialect, one client at a time.
mod iperf3 {
    mod auth;
    mod data_paths;
    mod differences;
    mod hostile_servers;
    mod json_structure;
    mod matrix;
    mod newer_options;
    mod options;
    mod options_local;
    mod parameters;
    mod port_ranges;
    mod records;
    mod reopened_port;
    mod server_options;
    mod signals;
    mod transcripts;
    mod whole_blocks;
}

/// `linerate test` and the native dialect of the server.
mod path {
    mod delays;
    mod ends;
    mod events;
    mod expect;
    mod fallback;
    mod hops;
    mod hostile;
    mod known_link;
    mod known_middle;
    mod loss;
    mod many_clients;
    mod modes;
    mod ndt7;
    mod remapped;
    mod responsiveness;
    mod resume;
    mod shaped;
    mod stamp;
    mod trust;
    mod unreached;
}

/// One server for many clients, friendly and hostile.
mod server {
    mod attacks_at_once;
    mod browsers;
    mod control_thread;
    mod endurance;
    mod exclusive;
    mod file_modes;
    mod history;
    mod hostile_clients;
    mod limits;
    mod log_writing;
    mod many_clients;
    mod ndt7_js;
    mod never_stuck;
    mod outages;
    mod privileges;
    mod published_flaws;
    mod reflection;
    mod resource_table;
    mod responsiveness;
    mod scale;
    mod server_attacks;
    mod service;
    mod soak;
}

mod foreign_text;
mod libraries;
mod named_files;
mod pages;
mod records;
mod tutorials;
mod views;
mod watches;
