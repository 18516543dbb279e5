use std::net::Ipv4Addr;

use super::*;
use crate::http::cells::{Phases, runs};
use linerate_model::http::Peak;

/// A host on which nothing is wrong for the default plan.
fn healthy() -> Environment {
    Environment {
        cpus: Some(4),
        governor: Some("performance".to_owned()),
        device: Some("enp1s0".to_owned()),
        link_bps: Some(1_000_000_000),
        mtu_bytes: Some(1500),
        is_full_duplex: Some(true),
        nofile_soft: Some(200_000),
        nofile_hard: Some(200_000),
        nr_open: Some(1_048_576),
        file_max: Some(2_097_152),
        port_range: Some((32_768, 60_999)),
        time_wait: Some(Peak {
            peak: 10,
            limit: Some(262_144),
        }),
        somaxconn: Some(4096),
        backlog: Some(4096),
        max_syn_backlog: Some(4096),
        memory_available_bytes: Some(8 << 30),
        tcp_mem_pages: Some([190_000, 254_000, 381_000]),
        other_load: Some(0.01),
        steal: Some(0.0),
        is_throttled: Some(false),
        nic_errors: Some(0),
        ..Environment::default()
    }
}

const PATH: Path = Path {
    server: Some(IpAddr::V4(Ipv4Addr::new(192, 168, 5, 2))),
    client: Some(IpAddr::V4(Ipv4Addr::new(192, 168, 5, 20))),
    port: 8080,
    destinations: 1,
    clock_error_ns: Some(100_000),
    ramp_overflows: Some(0),
};

fn cells(plan: &Plan) -> Vec<CellKey> {
    let mut cells: Vec<CellKey> = runs(plan, Phases::ALL).iter().map(|run| run.key).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

fn checks_on(path: Path, text: &str, client: &Environment, server: &Environment) -> (Vec<Check>, Vec<String>) {
    let plan = Plan::parse(text).expect(text);
    let cells = cells(&plan);
    let preflight = Preflight {
        plan: &plan,
        cells: &cells,
        client,
        server: Some(server),
        path,
        generator_threads: None,
    };
    let checks = preflight.checks();
    let blocked = blocked(&checks, &cells).iter().map(cell_name).collect();
    (checks, blocked)
}

/// The one check with this name that does not pass after one host was spoilt, and the cells it blocks.
fn spoilt(side: Side, text: &str, spoil: impl FnOnce(&mut Environment)) -> (Check, Vec<String>) {
    let (mut client, mut server) = (healthy(), healthy());
    match side {
        Side::Client => spoil(&mut client),
        Side::Server => spoil(&mut server),
    }
    let (checks, blocked) = checks_on(PATH, text, &client, &server);
    let mut found: Vec<Check> = checks
        .into_iter()
        .filter(|check| check.status != CheckStatus::Pass)
        .collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    let check = found.remove(0);
    assert_eq!(check.side, side);
    (check, blocked)
}

fn assert_found(check: &Check, id: &str, status: CheckStatus, fix: &str) {
    assert_eq!((check.id.as_str(), check.status), (id, status), "{check:#?}");
    assert!(check.fix.iter().any(|line| line.contains(fix)), "{fix} in {check:#?}");
}

#[test]
fn healthy_hosts_pass_everything() {
    let (checks, blocked) = checks_on(PATH, "", &healthy(), &healthy());
    let others: Vec<&Check> = checks
        .iter()
        .filter(|check| check.status != CheckStatus::Pass)
        .collect();
    assert!(others.is_empty() && blocked.is_empty(), "{others:#?}");
    assert!(checks.len() > 25, "{}", checks.len());
}

#[test]
fn what_could_not_be_read_is_unknown_and_blocks_nothing() {
    let nothing = Environment::default();
    let (checks, blocked) = checks_on(PATH, "", &nothing, &nothing);
    assert!(blocked.is_empty());
    let unknown = checks
        .iter()
        .filter(|check| check.status == CheckStatus::Unknown)
        .count();
    assert!(unknown > 10, "{checks:#?}");
    assert!(checks.iter().all(|check| check.status != CheckStatus::Fail));
}

#[test]
fn a_low_hard_limit_blocks_the_cells_that_need_more_and_names_have_and_need() {
    let (check, blocked) = spoilt(Side::Server, "", |host| {
        host.nofile_soft = Some(1_000_000);
        host.nofile_hard = Some(1024);
    });
    assert_found(
        &check,
        "nofile.hard",
        CheckStatus::Fail,
        "sudo prlimit --pid $$ --nofile=200000:200000",
    );
    assert_found(
        &check,
        "nofile.hard",
        CheckStatus::Fail,
        "printf '* - nofile 200000\\nroot - nofile 200000\\n' | sudo tee /etc/security/limits.d/90-linerate.conf",
    );
    assert_found(&check, "nofile.hard", CheckStatus::Fail, "LimitNOFILE=200000");
    assert_eq!((check.have.as_str(), check.need.as_str()), ("1,024", "at least 20,096"));
    assert!(blocked.contains(&"matrix-1k-c1024".to_owned()) && !blocked.contains(&"matrix-1k-c512".to_owned()));
    assert!(blocked.contains(&"idle-0-c20000".to_owned()));
}

/// The plan of one idle step on a generator that may have so many descriptors.
fn few_descriptors(connections: u32, limit: u64) -> (Check, Vec<String>) {
    let text = format!("[phase3.idle]\nsteps = [{connections}]\n[source]\nports = \"explicit\"");
    let mut client = healthy();
    client.nofile_hard = Some(limit);
    let (checks, blocked) = checks_on(PATH, &text, &client, &healthy());
    let check = checks.into_iter().find(|check| check.id == "nofile.hard");
    (check.expect("looked at"), blocked)
}

#[test]
fn a_generator_gets_around_a_low_limit_by_processes_and_a_server_does_not() {
    let (check, blocked) = few_descriptors(50_000, 20_000);
    assert_found(
        &check,
        "nofile.hard",
        CheckStatus::Info,
        "3 worker processes will be used",
    );
    assert_eq!(check.side, Side::Client);
    assert!(blocked.is_empty(), "{blocked:?}");
    assert_eq!(check.cells, ["idle-0-c50000"]);
    // As many processes as that cannot be led with so few descriptors.
    let (check, blocked) = few_descriptors(50_000, 256);
    assert_found(
        &check,
        "nofile.hard",
        CheckStatus::Fail,
        "sudo prlimit --pid $$ --nofile=200000:200000",
    );
    assert!(blocked.contains(&"idle-0-c50000".to_owned()), "{blocked:?}");
    assert!(!blocked.contains(&"matrix-1k-c1024".to_owned()), "{blocked:?}");
    let (check, blocked) = few_descriptors(1000, 90);
    assert_eq!(
        check.status,
        CheckStatus::Fail,
        "no room beside what the program itself needs"
    );
    assert!(blocked.contains(&"matrix-1k-c64".to_owned()), "{blocked:?}");
}

#[test]
fn worker_processes_have_room_for_their_connections() {
    for (connections, threads, limit, expected) in [
        (64, 2, 1024, Some(1)),
        (1000, 2, 256, Some(6)),
        (2000, 2, 1024, Some(3)),
        (928, 4, 1024, Some(1)),
        (929, 4, 1024, Some(2)),
        (0, 1, 100, Some(1)),
        (10, 1, 72, None),
        (20_000, 2, 256, None),
        (u32::MAX, 1, u64::MAX, Some(1)),
        (u32::MAX, u32::MAX, 0, None),
    ] {
        let workers = worker_processes(connections, threads, limit);
        assert_eq!(workers, expected, "{connections} over {threads} threads within {limit}");
    }
}

#[test]
fn limits_that_linerate_raises_itself_are_informational() {
    let (check, blocked) = spoilt(Side::Client, "", |host| host.nofile_soft = Some(1024));
    assert_found(&check, "nofile.soft", CheckStatus::Info, "raised by linerate itself");
    assert!(blocked.is_empty());
    let (check, blocked) = spoilt(Side::Client, "", |host| {
        host.nofile_hard = Some(4096);
        host.can_raise_nofile = true;
    });
    assert_found(&check, "nofile.hard", CheckStatus::Info, "may do so");
    assert!(blocked.is_empty());
}

#[test]
fn the_kernels_bounds_of_descriptors_have_their_commands() {
    let fix = "sudo sysctl -w fs.nr_open=1048576 fs.file-max=2097152";
    let (check, blocked) = spoilt(Side::Server, "", |host| host.nr_open = Some(15_000));
    assert_found(&check, "fs.nr_open", CheckStatus::Fail, fix);
    assert_eq!(blocked, ["idle-0-c20000"]);
    let (check, _) = spoilt(Side::Server, "", |host| host.file_max = Some(30_000));
    assert_found(&check, "fs.file_max", CheckStatus::Fail, fix);
}

#[test]
fn ports_of_the_kernel_fail_beyond_their_range_and_chosen_ones_do_not() {
    let many = "[phase3.idle]\nsteps = [1000, 30000]\n[source]\nports = ";
    let (check, blocked) = spoilt(Side::Client, &format!("{many}\"kernel\""), |_| ());
    assert_found(
        &check,
        "ip_local_port_range",
        CheckStatus::Fail,
        "sudo sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"",
    );
    assert_found(&check, "ip_local_port_range", CheckStatus::Fail, "--ports explicit");
    assert_found(
        &check,
        "ip_local_port_range",
        CheckStatus::Fail,
        "sudo ip addr add 192.168.5.21/24 dev enp1s0",
    );
    assert_eq!(blocked, ["idle-0-c30000"]);
    let (check, _) = spoilt(Side::Client, &format!("{many}\"auto\""), |_| ());
    assert_found(&check, "ip_local_port_range", CheckStatus::Info, "chooses ports itself");
    for relaxed in [
        format!("{many}\"explicit\""),
        format!("{many}\"kernel\"\naddresses = [\"10.0.0.1\", \"10.0.0.2\"]"),
    ] {
        let (checks, _) = checks_on(PATH, &relaxed, &healthy(), &healthy());
        assert!(
            checks.iter().all(|check| check.status == CheckStatus::Pass),
            "{checks:#?}"
        );
    }
    let reserved = |host: &mut Environment| host.reserved_ports = Some("40000-49999".to_owned());
    let text = "[source]\nports = \"kernel\"";
    let (check, _) = spoilt(Side::Client, text, reserved);
    assert_found(&check, "ip_local_port_range", CheckStatus::Fail, "--ports explicit");
}

#[test]
fn ports_in_use_are_to_be_reserved_beside_reserved_ones() {
    let (check, _) = spoilt(Side::Client, "[source]\nports = \"explicit\"", |host| {
        host.listening_ports = vec![8080, 22, 5201, 8080, 9100];
        host.reserved_ports = Some("9100\n".to_owned());
    });
    let fix = "sudo sysctl -w net.ipv4.ip_local_reserved_ports=9100,5201,8080";
    assert_found(&check, "ip_local_reserved_ports", CheckStatus::Warn, fix);
}

#[test]
fn many_sockets_in_time_wait_warn() {
    let waiting = |peak, limit| move |host: &mut Environment| host.time_wait = Some(Peak { peak, limit });
    for spoil in [waiting(7000, Some(262_144)), waiting(200, Some(256))] {
        let (check, blocked) = spoilt(Side::Client, "", spoil);
        assert_found(
            &check,
            "time_wait",
            CheckStatus::Warn,
            "sudo sysctl -w net.ipv4.tcp_tw_reuse=1",
        );
        assert_found(&check, "time_wait", CheckStatus::Warn, "--close rst");
        assert!(blocked.is_empty());
    }
}

#[test]
fn short_queues_of_the_server_warn_when_the_ramp_is_fast() {
    let (check, _) = spoilt(Side::Server, "", |host| host.backlog = Some(128));
    assert_found(
        &check,
        "backlog",
        CheckStatus::Warn,
        "sudo sysctl -w net.core.somaxconn=65535",
    );
    assert_found(&check, "backlog", CheckStatus::Warn, "listen 80 backlog=65535;");
    assert!(check.cells.contains(&"matrix-1k-c256".to_owned()) && !check.cells.contains(&"matrix-1k-c128".to_owned()));
    let fast = "[defaults]\nramp = 2001";
    let (check, _) = spoilt(Side::Server, fast, |host| host.max_syn_backlog = Some(512));
    assert_found(
        &check,
        "tcp_max_syn_backlog",
        CheckStatus::Warn,
        "net.ipv4.tcp_max_syn_backlog=65535",
    );
    let overflowing = Path {
        ramp_overflows: Some(3),
        ..PATH
    };
    let (checks, _) = checks_on(overflowing, "", &healthy(), &healthy());
    let check = checks
        .iter()
        .find(|check| check.id == "listen_overflows")
        .expect("looked at");
    assert_found(check, "listen_overflows", CheckStatus::Warn, "a slower --ramp");
}

#[test]
fn a_small_table_of_connection_tracking_blocks_and_each_side_has_its_rules() {
    let small = |host: &mut Environment| {
        host.conntrack = Some(Peak {
            peak: 1000,
            limit: Some(9000),
        });
    };
    let (check, blocked) = spoilt(Side::Server, "", small);
    for fix in [
        "sudo sysctl -w net.netfilter.nf_conntrack_max=1048576",
        "sudo nft add table ip lr_raw",
        "sudo nft 'add chain ip lr_raw pre { type filter hook prerouting priority raw; }'",
        "sudo nft add rule ip lr_raw pre tcp dport 8080 notrack",
        "sudo nft add rule ip lr_raw output tcp sport 8080 notrack",
    ] {
        assert_found(&check, "conntrack", CheckStatus::Fail, fix);
    }
    assert!(blocked.contains(&"active-1k-c10000".to_owned()) && !blocked.contains(&"idle-0-c5000".to_owned()));
    let (check, _) = spoilt(Side::Client, "", small);
    assert_found(&check, "conntrack", CheckStatus::Fail, "output tcp dport 8080 notrack");
}

#[test]
fn memory_blocks_what_does_not_fit_and_sockets_beyond_the_kernels_mark_warn() {
    let (check, blocked) = spoilt(Side::Client, "", |host| host.memory_available_bytes = Some(160 << 20));
    assert_found(&check, "memory", CheckStatus::Fail, "smaller payloads");
    assert_eq!(blocked, ["matrix-100k-c1024", "idle-0-c20000"]);
    let (check, blocked) = spoilt(Side::Server, "", |host| {
        host.tcp_mem_pages = Some([1000, 20_000, 30_000]);
    });
    assert_found(
        &check,
        "tcp_mem",
        CheckStatus::Warn,
        "sudo sysctl -w net.ipv4.tcp_mem=\"39936 53248 79872\"",
    );
    assert!(blocked.is_empty());
}

#[test]
fn a_route_over_another_device_blocks_all_and_a_wireless_one_warns() {
    let (check, blocked) = spoilt(Side::Client, "dev = \"enp2s0\"", |_| ());
    assert_found(
        &check,
        "route",
        CheckStatus::Fail,
        "sudo ip route replace 192.168.5.2/32 dev enp2s0",
    );
    assert_eq!(blocked.len(), cells(&Plan::default()).len());
    let (check, _) = spoilt(Side::Client, "", |host| host.is_wireless_or_tunnel = true);
    assert_found(&check, "route", CheckStatus::Warn, "dev DEVICE");
}

#[test]
fn links_that_are_slow_unknown_or_broken_are_seen() {
    let (check, _) = spoilt(Side::Server, "", |host| host.is_full_duplex = Some(false));
    assert_found(&check, "link", CheckStatus::Warn, "linerate doctor enp1s0");
    let (check, _) = spoilt(Side::Server, "", |host| host.link_bps = Some(100_000_000));
    assert_found(&check, "link_speeds", CheckStatus::Warn, "linerate doctor enp1s0");
    let (check, _) = spoilt(Side::Client, "", |host| host.link_bps = None);
    assert_found(&check, "link", CheckStatus::Info, "a full link is not recognised");
    let (check, _) = spoilt(Side::Client, "", |host| host.nic_errors = Some(7));
    assert_found(&check, "nic_errors", CheckStatus::Warn, "linerate doctor");
}

#[test]
fn processors_that_are_slow_held_or_busy_warn() {
    let warns = |id, fix, spoil: fn(&mut Environment)| {
        let (check, blocked) = spoilt(Side::Server, "", spoil);
        assert_found(&check, id, CheckStatus::Warn, fix);
        assert!(blocked.is_empty());
    };
    warns("governor", "sudo cpupower frequency-set -g performance", |host| {
        host.governor = Some("powersave".to_owned());
    });
    warns("throttling", "quota", |host| host.is_throttled = Some(true));
    warns("steal", "hypervisor", |host| host.steal = Some(0.03));
    warns("other_load", "quit chrome", |host| {
        host.other_load = Some(0.4);
        host.busiest_other = Some("chrome".to_owned());
    });
}

#[test]
fn one_host_and_far_clocks_warn() {
    let local = Path {
        server: PATH.client,
        clock_error_ns: None,
        ..PATH
    };
    let (checks, blocked) = checks_on(local, "dev = \"enp9s0\"", &healthy(), &healthy());
    let found: Vec<(&str, CheckStatus)> = checks
        .iter()
        .filter(|check| check.status != CheckStatus::Pass)
        .map(|check| (check.id.as_str(), check.status))
        .collect();
    assert_eq!(found, [("same_host", CheckStatus::Warn), ("clock", CheckStatus::Warn)]);
    assert!(blocked.is_empty());
}

#[test]
fn namespaces_of_one_host_share_its_processors() {
    let with = |boot_id: &str| Environment {
        boot_id: Some(boot_id.to_owned()),
        ..healthy()
    };
    let status = |server: &Environment| {
        let (checks, _) = checks_on(PATH, "version = 1", &with("a"), server);
        let found = checks.into_iter().find(|check| check.id == "same_host");
        found.map(|check| (check.status, check.have))
    };
    let namespaces = "one host, two network namespaces".to_owned();
    assert_eq!(status(&with("a")), Some((CheckStatus::Warn, namespaces)));
    let two = "two hosts".to_owned();
    assert_eq!(status(&with("b")), Some((CheckStatus::Pass, two.clone())));
    assert_eq!(status(&healthy()), Some((CheckStatus::Pass, two)));
}

/// The preflight's checks of the generator's connections under this plan.
fn of_protocol(text: &str) -> (Vec<Check>, Vec<String>) {
    let (checks, blocked) = checks_on(PATH, text, &healthy(), &healthy());
    let of_protocol = checks.into_iter().filter(|check| check.id == "protocol");
    (of_protocol.collect(), blocked)
}

#[test]
fn more_connections_than_tls_and_http_2_may_have_are_foretold() {
    assert_eq!(
        of_protocol(""),
        (Vec::new(), Vec::new()),
        "plain text has no such bound"
    );
    for text in ["target = \"https://h/\"", "[protocol]\nversion = \"2\""] {
        let (checks, blocked) = of_protocol(text);
        assert_found(&checks[0], "protocol", CheckStatus::Fail, "in plain text");
        assert_eq!(checks[0].need, "20,000 connections");
        assert!(
            checks[0].have.contains("10,000 connections and 65,536 streams"),
            "{checks:#?}"
        );
        assert_eq!(blocked, ["idle-0-c20000"], "{text}");
    }
    let (checks, blocked) = of_protocol("[protocol]\nversion = \"2\"\nstreams = 64\n[phase3.idle]\nsteps = [1000]");
    assert_found(&checks[0], "protocol", CheckStatus::Fail, "connections or streams");
    assert_eq!(blocked, ["low_rate-1k-c10000", "active-1k-c10000"]);
    let (checks, blocked) = of_protocol("target = \"https://h/\"\n[phase3.idle]\nsteps = [10000]");
    assert_eq!((checks[0].status, blocked), (CheckStatus::Pass, Vec::new()));
    let allowed = [(10_000, 1), (10_001, 1), (1024, 64), (1025, 64)];
    let allowed = allowed.map(|(connections, streams)| too_many_connections(connections, streams).is_none());
    assert_eq!(allowed, [true, false, true, false]);
}

#[test]
fn a_connection_takes_more_memory_inside_tls() {
    let memory = |text: &str| {
        let mut client = healthy();
        client.memory_available_bytes = Some(300 << 20);
        let (checks, _) = checks_on(PATH, text, &client, &healthy());
        let found = checks.into_iter().find(|check| check.id == "memory");
        found.expect("looked at")
    };
    let text = "[phase2]\nconnections = [64]\n[phase3.idle]\nsteps = [10000]";
    assert_eq!(memory(text).status, CheckStatus::Pass);
    let inside = memory(&format!("target = \"https://h/\"\n{text}"));
    assert_found(&inside, "memory", CheckStatus::Fail, "fewer connections");
    assert!(inside.cells.contains(&"idle-0-c10000".to_owned()), "{inside:#?}");
}
