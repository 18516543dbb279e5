//! Fingerprints of servers that this user has tested against.

mod list;

use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use self::list::{HostList, HostName};
use crate::files::{self, FileError};
use crate::fingerprint::Fingerprint;

/// Upper bound of the file: more than ten thousand hosts.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The file `known_hosts`: a line `HOST:PORT FINGERPRINT` per server, IPv6 addresses in brackets,
/// `#` starts a comment.
///
/// A server whose line is damaged, or has lines that contradict each other, is unknown; so are all
/// servers while others may change the file.
#[derive(Debug, Clone)]
pub struct KnownHosts {
    path: PathBuf,
    list: HostList,
    warnings: Vec<KnownHostsWarning>,
}

/// A problem of the file that does not prevent a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHostsWarning {
    path: PathBuf,
    /// Number of the line, from 1; `None` for the whole file.
    line: Option<usize>,
    reason: String,
}

/// Why a server is not remembered or forgotten.
#[derive(Debug, thiserror::Error)]
pub enum KnownHostsError {
    /// The file cannot be read or written, or others may change it.
    #[error("known hosts {0}")]
    File(#[from] FileError),
    /// The name cannot be written on a line of its own.
    #[error("{0:?} is no name of a host")]
    Name(String),
}

impl KnownHosts {
    /// Reads the file. One that does not exist is empty.
    ///
    /// # Errors
    /// A file that cannot be read. One that is too long, or that others may change, is a warning,
    /// and all hosts are unknown.
    pub fn load(path: &Path) -> Result<Self, KnownHostsError> {
        let mut known = Self {
            path: path.to_owned(),
            list: HostList::default(),
            warnings: Vec::new(),
        };
        match read(path) {
            Ok(list) => known.set(list),
            Err(error @ FileError::Io { .. }) => return Err(error.into()),
            Err(error) => {
                let reason = format!("{error}; all hosts are unknown");
                known.warnings.push(KnownHostsWarning {
                    path: path.to_owned(),
                    line: None,
                    reason,
                });
            }
        }

        Ok(known)
    }

    /// Problems of the file, in the order of its lines.
    pub fn warnings(&self) -> &[KnownHostsWarning] {
        &self.warnings
    }

    /// Fingerprint of a server; `None` for an unknown one. `host` is the name or address that the
    /// user gave: letters of either case and forms of the same IPv6 address are equal.
    pub fn get(&self, host: &str, port: u16) -> Option<Fingerprint> {
        self.list.get(&HostName::new(host, port)?)
    }

    /// Sets the fingerprint of a server and writes the file, mode 0600, by rename. Lines of other
    /// servers are read again and kept as they are, damaged ones too. Of two processes that write
    /// at the same moment one is lost.
    ///
    /// # Errors
    /// A host that cannot be written on a line; a file that cannot be written, or that others may
    /// change: to keep its lines would be to trust them.
    pub fn remember(
        &mut self,
        host: &str,
        port: u16,
        fingerprint: Fingerprint,
    ) -> Result<(), KnownHostsError> {
        let name =
            HostName::new(host, port).ok_or_else(|| KnownHostsError::Name(host.to_owned()))?;
        let mut list = read(&self.path)?;
        list.set(&name, fingerprint);
        self.write(list)
    }

    /// Removes all lines of a server and writes the file. Returns whether there were any.
    ///
    /// # Errors
    /// Those of [`KnownHosts::remember`].
    pub fn forget(&mut self, host: &str, port: u16) -> Result<bool, KnownHostsError> {
        let name =
            HostName::new(host, port).ok_or_else(|| KnownHostsError::Name(host.to_owned()))?;
        let mut list = read(&self.path)?;
        let was_known = list.remove(&name);
        if was_known {
            self.write(list)?;
        }

        Ok(was_known)
    }

    fn write(&mut self, list: HostList) -> Result<(), KnownHostsError> {
        files::replace(&self.path, &list.to_bytes())?;
        self.set(list);
        Ok(())
    }

    fn set(&mut self, list: HostList) {
        let warning = |(line, damage): (usize, list::Damage)| {
            let reason = format!("{damage}; the host is unknown");
            KnownHostsWarning {
                path: self.path.clone(),
                line: Some(line),
                reason,
            }
        };
        self.warnings = list.damages().into_iter().map(warning).collect();
        self.list = list;
    }
}

fn read(path: &Path) -> Result<HostList, FileError> {
    match files::read_trusted(path, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(HostList::parse(&bytes)),
        Err(error) if error.is_not_found() => Ok(HostList::default()),
        Err(error) => Err(error),
    }
}

impl fmt::Display for KnownHostsWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(
                f,
                "known hosts {} line {line}: {}",
                self.path.display(),
                self.reason
            ),
            None => write!(f, "known hosts {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const A: Fingerprint = Fingerprint::new([1; 32]);
    const B: Fingerprint = Fingerprint::new([2; 32]);

    fn texts(known: &KnownHosts) -> Vec<String> {
        known.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_survive_in_a_private_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("linerate/known_hosts");
        let mut known = KnownHosts::load(&path).expect("no file yet");
        assert_eq!(
            (known.get("lab.example", 5201), known.warnings().len()),
            (None, 0)
        );
        assert!(!known.forget("lab.example", 5201).expect("unknown") && !path.exists());
        known.remember("lab.example", 5201, A).expect("written");
        known.remember("2001:DB8::7", 5201, B).expect("written");
        assert_eq!(
            fs::metadata(&path).expect("a file").permissions().mode() & 0o7777,
            0o600
        );
        assert_eq!(
            fs::read_to_string(&path).expect("text"),
            format!("lab.example:5201 {A}\n[2001:db8::7]:5201 {B}\n")
        );

        let mut again = KnownHosts::load(&path).expect("read");
        for (host, port, expected) in [
            ("lab.example", 5201, Some(A)),
            ("LAB.example.", 5201, Some(A)),
            ("lab.example", 5202, None),
            ("2001:db8:0::7", 5201, Some(B)),
            ("[2001:db8::7]", 5201, Some(B)),
            ("2001:db8::7", 5202, None),
        ] {
            assert_eq!(again.get(host, port), expected, "{host} {port}");
        }

        assert!(again.forget("lab.example", 5201).expect("written"));
        assert_eq!(again.get("lab.example", 5201), None);
        assert_eq!(
            fs::read_to_string(&path).expect("text"),
            format!("[2001:db8::7]:5201 {B}\n")
        );
    }

    #[test]
    fn lines_of_another_process_are_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("known_hosts");
        let mut one = KnownHosts::load(&path).expect("empty");
        let mut other = KnownHosts::load(&path).expect("empty");

        one.remember("a", 1, A).expect("written");
        other.remember("b", 1, B).expect("written");
        let known = KnownHosts::load(&path).expect("read");
        assert_eq!((known.get("a", 1), known.get("b", 1)), (Some(A), Some(B)));
    }

    #[test]
    fn damaged_lines_are_reported_kept_and_replaced_by_their_own_host_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("known_hosts");
        let text = format!("# mine\r\n\na:1 {A}\nb:1 sha256:damaged\n\u{e9}\nc:1 {A}\nc:1 {B}\n");
        fs::write(&path, [text.as_bytes(), b"\xff\xfe 1"].concat()).expect("our file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our file");

        let mut known = KnownHosts::load(&path).expect("read");
        let file = path.display();
        assert_eq!(
            texts(&known),
            [
                format!(
                    "known hosts {file} line 4: a fingerprint is `sha256:` and 43 characters of \
                     base64url; the host is unknown"
                ),
                format!(
                    "known hosts {file} line 5: no `HOST:PORT FINGERPRINT`; the host is unknown"
                ),
                format!("known hosts {file} line 7: contradicts line 6; the host is unknown"),
                format!(
                    "known hosts {file} line 8: no `HOST:PORT FINGERPRINT`; the host is unknown"
                ),
            ]
        );
        assert_eq!(
            [known.get("a", 1), known.get("b", 1), known.get("c", 1)],
            [Some(A), None, None]
        );
        known.remember("b", 1, B).expect("written");
        known.remember("c", 1, B).expect("written");
        assert_eq!(
            [known.get("a", 1), known.get("b", 1), known.get("c", 1)],
            [Some(A), Some(B), Some(B)]
        );

        let kept = [
            format!("# mine\r\n\na:1 {A}\n\u{e9}\n").as_bytes(),
            b"\xff\xfe 1\n",
        ]
        .concat();
        let added = format!("b:1 {B}\nc:1 {B}\n");
        assert_eq!(
            fs::read(&path).expect("bytes"),
            [&kept[..], added.as_bytes()].concat()
        );
        assert_eq!(known.warnings().len(), 2);
    }

    #[test]
    fn file_that_others_may_change_is_reported_and_neither_trusted_nor_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("known_hosts");
        let text = format!("a:1 {A}\n");
        fs::write(&path, &text).expect("our file");

        for (mode, is_trusted) in [
            (0o666, false),
            (0o602, false),
            (0o620, false),
            (0o644, true),
            (0o600, true),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our file");
            let mut known = KnownHosts::load(&path).expect("read");
            assert_eq!(known.get("a", 1), is_trusted.then_some(A), "{mode:o}");

            if is_trusted {
                assert_eq!(texts(&known), [""; 0], "{mode:o}");
                continue;
            }

            let file = path.display();
            let why = format!("{file}: mode {mode:04o} lets others change it; chmod 600 {file}");
            assert_eq!(
                texts(&known),
                [format!("known hosts {why}; all hosts are unknown")]
            );

            let error = known.remember("b", 1, B).expect_err("exposed").to_string();
            assert_eq!(error, format!("known hosts {why}"));
            assert!(known.forget("a", 1).is_err());
            assert_eq!(fs::read_to_string(&path).expect("text"), text);
        }
    }

    #[test]
    fn too_long_file_is_reported_and_unreadable_one_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("known_hosts");
        fs::write(&path, vec![b'#'; 1024 * 1024 + 1]).expect("our file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our file");

        let known = KnownHosts::load(&path).expect("a warning");
        assert!(
            texts(&known)[0].contains("longer than 1048576 bytes"),
            "{:?}",
            texts(&known)
        );
        let error = KnownHosts::load(directory.path())
            .expect_err("a directory")
            .to_string();
        assert!(error.contains("read "), "{error}");
    }

    #[test]
    fn names_that_would_make_other_lines_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("known_hosts");
        let mut known = KnownHosts::load(&path).expect("empty");

        for host in [
            "",
            "a b",
            "a\nb",
            "#a",
            "a:b",
            "[a]",
            "a\u{0}",
            "1:2:3",
            &"x".repeat(256),
        ] {
            assert!(
                matches!(known.remember(host, 1, A), Err(KnownHostsError::Name(_))),
                "{host}"
            );
            assert_eq!(known.get(host, 1), None, "{host}");
        }

        assert!(matches!(
            known.remember("a", 0, A),
            Err(KnownHostsError::Name(_))
        ));
        assert!(!path.exists());
    }
}
