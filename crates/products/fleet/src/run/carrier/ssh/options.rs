//! The command line of ssh(1).

use std::path::PathBuf;
use std::process::Command;

/// Settings of ssh that the user decides. Everything else is in the user's own ssh_config(5).
#[derive(Debug, Default)]
pub struct SshOptions {
    /// Another configuration file (`-F`).
    pub config: Option<PathBuf>,
    /// Tests share the network of the control path: probes of the connection have to survive full
    /// queues.
    pub is_path_shared: bool,
}

/// Options of every connection. Decisions about keys, host keys, ciphers and agents are the user's.
const FIXED: [&str; 11] = [
    "BatchMode=yes",
    "ConnectTimeout=3",
    "ServerAliveCountMax=3",
    // A master would detach itself and outlive the run.
    "ControlMaster=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "LogLevel=ERROR",
];

/// Runs a command at a destination.
pub(super) fn connect(options: &SshOptions, destination: &str, remote: &str) -> Command {
    let mut command = ssh(options);
    // A pseudo-terminal would echo the lines and convert their ends.
    command.arg("-T");

    for option in FIXED {
        command.args(["-o", option]);
    }

    let seconds = if options.is_path_shared { 5 } else { 1 };
    command.args(["-o", &format!("ServerAliveInterval={seconds}")]);
    // After `--` a destination that begins with `-` is no option.
    command.args(["--", destination, remote]);
    command
}

/// Prints the configuration of a destination.
pub(super) fn print_configuration(options: &SshOptions, destination: &str) -> Command {
    let mut command = ssh(options);
    command.args(["-G", "--", destination]);
    command
}

fn ssh(options: &SshOptions) -> Command {
    let mut command = Command::new("ssh");
    // Messages are classified.
    command.env("LC_ALL", "C");

    if let Some(config) = &options.config {
        command.arg("-F").arg(config);
    }
    command
}

/// The jump host of a destination in the output of `ssh -G`; `None` without one. A chain counts by
/// its first host.
pub(super) fn jump_host(configuration: &str) -> Option<String> {
    let value = |line: &str| {
        line.strip_prefix("proxyjump ")
            .map(|jumps| jumps.trim().to_owned())
    };
    let jumps = configuration
        .lines()
        .find_map(value)
        .filter(|jumps| !jumps.is_empty() && jumps != "none")?;
    jumps.split(',').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(command: &Command) -> Vec<String> {
        command
            .get_args()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn options_of_a_connection_are_these_and_no_others() {
        let expected = "-T -o BatchMode=yes -o ConnectTimeout=3 -o ServerAliveCountMax=3 -o \
                        ControlMaster=no -o RemoteCommand=none -o RequestTTY=no -o \
                        ClearAllForwardings=yes -o ForwardAgent=no -o ForwardX11=no -o \
                        PermitLocalCommand=no -o LogLevel=ERROR -o ServerAliveInterval=1 -- h1 \
                        COMMAND";
        let separate = connect(&SshOptions::default(), "h1", "COMMAND");
        assert_eq!(arguments(&separate).join(" "), expected);

        let shared = SshOptions {
            config: Some("/tmp/config".into()),
            is_path_shared: true,
        };
        let expected = format!(
            "-F /tmp/config {}",
            expected.replace("Interval=1", "Interval=5")
        );
        assert_eq!(
            arguments(&connect(&shared, "h1", "COMMAND")).join(" "),
            expected
        );

        for forbidden in [
            "HostKey",
            "KnownHosts",
            "Cipher",
            "Identity",
            "Kex",
            "MACs",
            "Agent=yes",
            "Persist",
        ] {
            assert!(!expected.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn destination_that_looks_like_an_option_is_none() {
        let command = connect(&SshOptions::default(), "-oProxyCommand=x", "COMMAND");
        assert_eq!(
            arguments(&command)
                .split_last_chunk::<3>()
                .map(|(_, last)| last[0].clone()),
            Some("--".to_owned())
        );
    }

    #[test]
    fn jump_host_is_the_first_of_the_chain() {
        assert_eq!(
            jump_host("host h1\nproxyjump admin@gate:2222,inner\nport 22\n"),
            Some("admin@gate:2222".to_owned())
        );
        assert_eq!(jump_host("host h1\nproxyjump none\n"), None);
        assert_eq!(jump_host("host h1\n"), None);
    }
}
