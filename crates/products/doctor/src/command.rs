//! Commands that a report prints and a proof runs, built in one place.
//!
//! Names of devices and values of settings come from the kernel, from pasted text or from a peer,
//! and users copy commands into a shell. Such a value is a part of a command only as a token;
//! otherwise there is no command.

use std::fmt::Display;

/// A command and the one that restores the former state.
pub(crate) type Change = (Command, Command);

/// A line for a shell: words of ours, and tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command(String);

/// The command of a template with these values in the places `{}`; `None` where one of them is no
/// token.
pub(crate) fn command(template: &str, values: &[&dyn Display]) -> Option<Command> {
    let mut values = values.iter();
    let mut parts = template.split("{}");
    let mut line = parts.next().unwrap_or_default().to_owned();

    for part in parts {
        // The text of the template is ours; only the values can be of others.
        line += &token(values.next()?)?;
        line += part;
    }

    Some(Command(line))
}

/// The command that sets a kernel variable; `None` where the value has a word that is no token.
pub(crate) fn assignment(variable: &str, value: &str) -> Option<Command> {
    let words: Vec<&str> = value.split_whitespace().collect();
    if !words.iter().all(|word| is_token(word)) {
        return None;
    }

    // sysctl(8) takes a value of several words as one argument.
    let quote = if words.len() > 1 { "\"" } else { "" };
    Some(Command(format!(
        "sysctl -w {variable}={quote}{}{quote}",
        words.join(" ")
    )))
}

impl Command {
    /// The command with these words behind it; `None` where one of them is no token.
    pub(crate) fn with_words(mut self, words: &[&str]) -> Option<Self> {
        for word in words {
            self.0 += " ";
            self.0 += &token(word)?;
        }
        Some(self)
    }

    /// The command with its last occurrence of ` name old` changed to ` name new`; `None` where it
    /// has none.
    pub(crate) fn with_parameter(&self, name: &str, old: &str, new: f64) -> Option<Self> {
        let (before, behind) = self.0.rsplit_once(&format!(" {name} {old}"))?;
        // ` limit 10` is also the beginning of ` limit 100`.
        let is_whole = behind.is_empty() || behind.starts_with(' ');
        is_whole.then(|| Self(format!("{before} {name} {new:.0}{behind}")))
    }

    pub(crate) fn line(&self) -> &str {
        &self.0
    }
}

/// True if a shell and the program take the text for one word that has no other meaning: letters,
/// digits and a few signs, and no sign at its begin, where a hyphen makes an option of it and a dot
/// a folder above.
pub fn is_token(text: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-.:,%@+=".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && text.chars().all(is_safe)
}

/// The text, or the word that takes its place in advice where it is no token.
pub(crate) fn token_or<'a>(text: &'a str, placeholder: &'static str) -> &'a str {
    if is_token(text) { text } else { placeholder }
}

fn token(value: impl Display) -> Option<String> {
    Some(value.to_string()).filter(|text| is_token(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_others_are_tokens_or_there_is_no_command() {
        let line =
            |name: &str| command("tc qdisc del dev {} root", &[&name]).map(|command| command.0);
        for name in ["eth0", "enp3s0f0np0", "br-lan", "eth0.100", "wl_0", "lan@1"] {
            assert_eq!(line(name), Some(format!("tc qdisc del dev {name} root")));
        }

        let hostile = "eth0 root netem loss 100% #";
        for name in [
            hostile, "", "-batch", ".", "..", "a b", "a#", "a!", "a/b", "$x", "a;b", "a'", "a\n",
            "é", "=a", "~",
        ] {
            assert_eq!(line(name), None, "{name:?}");
        }
    }

    #[test]
    fn values_of_variables_are_quoted_where_they_have_several_words() {
        let line = |value: &str| assignment("net.ipv4.tcp_rmem", value).map(|command| command.0);
        assert_eq!(
            line("4096\t131072  6291456").as_deref(),
            Some("sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\"")
        );
        assert_eq!(line("1").as_deref(), Some("sysctl -w net.ipv4.tcp_rmem=1"));
        assert_eq!(line("").as_deref(), Some("sysctl -w net.ipv4.tcp_rmem="));

        for value in ["1 #", "4096 \" ; reboot", "-p", "a `b`"] {
            assert_eq!(line(value), None, "{value}");
        }
    }

    #[test]
    fn parameters_are_replaced_as_a_whole() {
        let before =
            command("tc qdisc replace dev {} root tbf burst 5 limit 50", &[&"e"]).expect("a token");
        let after = before
            .with_parameter("limit", "50", 7.0)
            .expect("it has the parameter");
        assert_eq!(
            after.line(),
            "tc qdisc replace dev e root tbf burst 5 limit 7"
        );
        assert_eq!(before.with_parameter("limit", "5", 7.0), None);
        assert_eq!(before.with_parameter("rate", "50", 7.0), None);
    }
}
