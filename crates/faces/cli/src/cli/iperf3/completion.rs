//! Shell completions of the iperf3 dialect, made from the option table.

use linerate::command_line::iperf3::option_groups;
use linerate::command_line::{OptionHelp, Value};

/// For bash: option names, and file names everywhere else.
pub(crate) fn bash() -> String {
    let names: Vec<String> = options().flat_map(|option| spellings(&option)).collect();
    format!(
        r#"_iperf3() {{
    if [[ ${{COMP_WORDS[COMP_CWORD]}} == -* ]]; then
        COMPREPLY=($(compgen -W "{}" -- "${{COMP_WORDS[COMP_CWORD]}}"))
    fi
}}
complete -o default -F _iperf3 iperf3
"#,
        names.join(" ")
    )
}

/// For zsh. A one-letter form never takes an optional value.
pub(crate) fn zsh() -> String {
    let mut script = String::from("#compdef iperf3\n_arguments -s \\\n");
    for option in options() {
        let (short_value, long_mark, long_value) = match option.value {
            Value::None => (String::new(), "", String::new()),
            Value::Required(name) => {
                let value = format!(":{}:_default", plain(name));
                (value.clone(), "=", value)
            }
            Value::Optional(name) => (String::new(), "=-", format!("::{}:", plain(name))),
        };
        let summary = plain(summary(&option));

        if let Some(letter) = option.short {
            script.push_str(&format!("  '-{letter}[{summary}]{short_value}' \\\n"));
        }

        script.push_str(&format!(
            "  '--{}{long_mark}[{summary}]{long_value}' \\\n",
            long(&option)
        ));
    }

    script.push_str("  '*: :_files'\n");
    script
}

/// For fish.
pub(crate) fn fish() -> String {
    options().fold(String::new(), |script, option| {
        let short = option
            .short
            .map(|letter| format!(" -s {letter}"))
            .unwrap_or_default();
        let value = if matches!(option.value, Value::Required(_)) {
            " -r"
        } else {
            ""
        };

        let summary = summary(&option).replace('\'', "\\'");
        format!(
            "{script}complete -c iperf3{short} -l {}{value} -d '{summary}'\n",
            long(&option)
        )
    })
}

fn options() -> impl Iterator<Item = OptionHelp> {
    option_groups().into_iter().flat_map(|group| group.options)
}

fn long(option: &OptionHelp) -> &'static str {
    option.longs.first().copied().unwrap_or_default()
}

fn spellings(option: &OptionHelp) -> Vec<String> {
    let short = option.short.map(|letter| format!("-{letter}"));
    short
        .into_iter()
        .chain([format!("--{}", long(option))])
        .collect()
}

/// The first sentence, without the remark in parentheses at its end.
fn summary(option: &OptionHelp) -> &'static str {
    let sentence = option.help.split(". ").next().unwrap_or_default();
    let sentence = sentence.split(" (").next().unwrap_or_default();
    sentence.trim_end_matches('.')
}

/// Characters that zsh would interpret inside a specification are dropped or replaced.
fn plain(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '[' | ']' | '\'' | '\\' => None,
            // A colon separates the parts of a specification of _arguments (zshcompsys(1)).
            ':' => Some(','),
            other => Some(other),
        })
        .collect()
}
