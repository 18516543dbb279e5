//! Servers by name: `servers.toml` in the configuration directory of the user.

use std::collections::BTreeMap;
use std::env;
use std::io::ErrorKind;
use std::path::PathBuf;

use linerate_model::PortRange;
use linerate_sys::error::io_text;
use linerate_sys::file_system;
use serde::{Deserialize, Deserializer};

/// A server of the file.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedServer {
    /// Host name or address.
    pub address: String,
    /// Its port or ports.
    #[serde(default, deserialize_with = "port")]
    pub port: Option<PortRange>,
    /// Protocol that is demanded; without it the server's first bytes decide.
    pub protocol: Option<ServerProtocol>,
}

/// Protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServerProtocol {
    /// The server proves its identity.
    Native,
    Iperf3,
    Ndt7,
    /// That over TLS.
    Ndt7s,
}

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The server `name`; `None` where the file does not have it, or does not exist.
///
/// # Errors
/// A file that cannot be read or has an unknown key, in words.
pub(crate) fn find(name: &str) -> Result<Option<NamedServer>, String> {
    let Some(path) = file(|variable| env::var_os(variable).map(PathBuf::from)) else {
        return Ok(None);
    };

    let failed = |reason: &str| format!("{}: {reason}", path.display());
    match file_system::read_text(&path, FILE_BYTES_MAX) {
        Ok(text) => parse(&text, name).map_err(|reason| failed(&reason)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&io_text(&error))),
    }
}

/// A relative path is invalid and ignored (XDG Base Directory Specification).
fn file(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let of_user = variable("XDG_CONFIG_HOME").filter(absolute);
    let of_home = || Some(variable("HOME").filter(absolute)?.join(".config"));
    Some(of_user.or_else(of_home)?.join("linerate/servers.toml"))
}

fn parse(text: &str, name: &str) -> Result<Option<NamedServer>, String> {
    let servers: Result<BTreeMap<String, NamedServer>, _> = toml::from_str(text);
    let mut servers = servers.map_err(|error| error.to_string().trim_end().to_owned())?;
    Ok(servers.remove(name))
}

/// A number, or a range as text.
fn port<'de, D: Deserializer<'de>>(input: D) -> Result<Option<PortRange>, D::Error> {
    let value = toml::Value::deserialize(input)?;
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[lab]
address = "192.0.2.7"
port = "5201-5210"
protocol = "native"

["far lab"]
address = "far.example"
port = 5300
"#;

    #[test]
    fn servers_are_found_by_name() {
        let lab = parse(FILE, "lab").expect("a file").expect("a server");
        assert_eq!(lab.address, "192.0.2.7");
        assert_eq!(
            lab.port.map(|ports| ports.to_string()).as_deref(),
            Some("5201-5210")
        );
        assert_eq!(lab.protocol, Some(ServerProtocol::Native));

        let far = parse(FILE, "far lab").expect("a file").expect("a server");
        assert_eq!((far.port, far.protocol), (Some(5300.into()), None));
        assert_eq!(parse(FILE, "192.0.2.7"), Ok(None));
    }

    #[test]
    fn wrong_files_are_refused_with_the_place() {
        for (text, part) in [
            ("[a]\naddress = 'h'\nhost = 'x'", "host"),
            ("[a]\nport = 1", "address"),
            ("[a]\naddress = 'h'\nport = 0", "65535"),
            ("[a]\naddress = 'h'\nport = '9-1'", "65535"),
            ("[a]\naddress = 'h'\nprotocol = 'ftp'", "ftp"),
            ("a = 1", "line 1"),
        ] {
            let error = parse(text, "b").expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_file_is_in_the_configuration_directory() {
        let place = |config: &str, home: &str| {
            let value = |name: &str| PathBuf::from(if name == "HOME" { home } else { config });
            file(|name| Some(value(name)).filter(|path| !path.as_os_str().is_empty()))
        };
        assert_eq!(place("/x", "/h"), Some("/x/linerate/servers.toml".into()));
        assert_eq!(
            place("x", "/h"),
            Some("/h/.config/linerate/servers.toml".into())
        );
        assert_eq!(place("", ""), None);
    }
}
