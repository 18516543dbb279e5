//! Two hosts that share a cable: network namespaces (ip-netns(8)) that go when the test goes.

use std::ffi::OsStr;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// A near and a far host, joined by a virtual cable.
#[derive(Debug)]
pub struct Link {
    near: String,
    far: String,
}

impl Link {
    /// Address of the near host.
    pub const NEAR: &str = "192.0.2.1";
    /// Address of the far host.
    pub const FAR: &str = "192.0.2.2";

    /// Makes both hosts and the cable; `None` without the right to.
    ///
    /// # Panics
    /// When the hosts can be made but not joined.
    #[must_use]
    pub fn create() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let [near, far] = ["near", "far"].map(|end| format!("linerate-{}-{number}-{end}", process::id()));
        if !ip(&["netns", "add", &near]) {
            return None;
        }
        let link = Self { near, far };
        let (near, far) = (link.near.as_str(), link.far.as_str());
        let cable = [
            "link", "add", "lr0", "netns", near, "type", "veth", "peer", "name", "lr0", "netns", far,
        ];
        assert!(ip(&["netns", "add", far]) && ip(&cable), "a cable between two hosts");
        for (host, address) in [(near, Self::NEAR), (far, Self::FAR)] {
            let address = format!("{address}/24");
            for words in [
                &["addr", "add", &address, "dev", "lr0"][..],
                &["link", "set", "lr0", "up"],
                &["link", "set", "lo", "up"],
            ] {
                assert!(ip(&[&["-n", host], words].concat()), "{words:?}");
            }
        }
        Some(link)
    }

    /// A command on the near host.
    pub fn near(&self, program: impl AsRef<OsStr>) -> Command {
        on(&self.near, program)
    }

    /// A command on the far host.
    pub fn far(&self, program: impl AsRef<OsStr>) -> Command {
        on(&self.far, program)
    }

    /// Pulls the cable at the far end: no packet arrives any more, in either direction, and nobody is told.
    ///
    /// # Panics
    /// When that is not possible.
    pub fn cut(&self) {
        assert!(ip(&["-n", &self.far, "link", "set", "lr0", "down"]));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            ip(&["netns", "delete", name]);
        }
    }
}

/// A command that enters a namespace and becomes the program.
fn on(host: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host]).arg(program);
    command.env("LC_ALL", "C").env("TZ", "UTC");
    command
}

fn ip(words: &[&str]) -> bool {
    let output = Command::new("ip").args(words).output();
    output.is_ok_and(|output| output.status.success())
}
