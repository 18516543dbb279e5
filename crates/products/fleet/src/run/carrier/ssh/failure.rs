//! Why ssh(1) ended without an agent.

use super::command::NOT_EXECUTABLE_CODE;

/// Connections in all, the first included, that the messages of ssh at `LogLevel=ERROR` allow.
/// Another attempt after a refused login, a host key, a name or a port fails as well.
pub(super) fn attempts_max(errors: &str) -> u32 {
    let has = |text: &str| errors.contains(text);
    let is_final = [
        "Permission denied",
        "Host key verification failed",
        "REMOTE HOST IDENTIFICATION",
        "open failed",
    ];
    if is_final.into_iter().any(has) {
        1
    } else if has("timed out") {
        2
    } else if errors.lines().any(is_closed_early) {
        // A busy sshd drops connections at random (MaxStartups, sshd_config(5)).
        4
    } else {
        1
    }
}

/// Next step for the messages that users meet first.
pub(super) fn advice(errors: &str) -> Option<&'static str> {
    let steps = [
        (
            "Permission denied",
            "`ssh -o BatchMode=yes HOST true` has to work; a key with a passphrase needs \
             ssh-agent(1): `ssh-add KEY`",
        ),
        (
            "Host key verification failed",
            "`ssh HOST` once shows the key of the host and accepts it",
        ),
        (
            "Connection refused",
            "is sshd running there, and is its port the one of ssh_config(5)?",
        ),
        ("timed out", "is the host up, and is its ssh port open?"),
    ];
    steps
        .into_iter()
        .find(|(message, _)| errors.contains(message))
        .map(|(_, step)| step)
}

/// Before the login; behind it the message is `Connection to HOST closed by remote host.`
fn is_closed_early(line: &str) -> bool {
    let begins = [
        "kex_exchange_identification",
        "Connection closed by ",
        "Connection reset by ",
    ];
    begins
        .into_iter()
        .any(|begin| line.trim_start().starts_with(begin))
}

/// Why a copy failed.
pub(super) fn of_copy(code: Option<i32>, errors: Option<String>) -> String {
    let detail = errors.map(|text| format!(": {text}")).unwrap_or_default();
    match code {
        Some(NOT_EXECUTABLE_CODE) => {
            format!(
                "the copied agent does not run there{detail}; is the file system of the cache \
                 mounted noexec?"
            )
        }
        _ => format!("copy of the agent failed{detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_logins_come_with_a_next_step() {
        let denied = advice("root@10.0.0.1: Permission denied (publickey).").expect("a step");
        assert!(
            denied.contains("passphrase") && denied.contains("ssh-add"),
            "{denied}"
        );
        assert!(advice("ssh: connect to host 10.0.0.1 port 22: Connection refused").is_some());
        assert_eq!(
            advice("Connection to 10.0.0.1 closed by remote host."),
            None
        );
    }

    #[test]
    fn only_connections_closed_before_the_login_and_timeouts_are_repeated() {
        let rows = [
            (
                4,
                "kex_exchange_identification: Connection closed by remote host\r\n",
            ),
            (
                4,
                "kex_exchange_identification: read: Connection reset by peer\nConnection reset by \
                 10.0.0.1 port 22",
            ),
            (4, "Connection closed by 10.0.0.1 port 22\r\n"),
            (
                2,
                "ssh: connect to host 10.0.0.1 port 22: Connection timed out",
            ),
            (2, "Connection timed out during banner exchange"),
            (
                1,
                "ssh: connect to host 10.0.0.1 port 22: Connection refused",
            ),
            (
                1,
                "root@10.0.0.1: Permission denied (publickey).\r\nConnection closed by 10.0.0.1",
            ),
            (1, "Host key verification failed.\r\n"),
            (
                1,
                "ssh: Could not resolve hostname h9: Name or service not known",
            ),
            (
                1,
                "channel 0: open failed: connect failed\nConnection closed by UNKNOWN port 65535",
            ),
            (1, "Connection to 10.0.0.1 closed by remote host."),
            (1, ""),
        ];
        for (expected, errors) in rows {
            assert_eq!(attempts_max(errors), expected, "{errors}");
        }
    }
}
