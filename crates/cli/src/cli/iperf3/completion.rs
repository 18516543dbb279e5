//! Shell completions of the iperf3 dialect, made from the option table.

use linerate::command_line::iperf3::options::{Effect, OPTIONS, OptionRow};

/// For bash: option names, and file names everywhere else.
pub(crate) fn bash() -> String {
    let names: Vec<String> = OPTIONS.iter().flat_map(spellings).collect();
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
    for option in OPTIONS {
        let (short_value, long_mark, long_value) = match option.effect {
            Effect::Switch(_) => (String::new(), "", String::new()),
            Effect::Value(name, _) => {
                let value = format!(":{}:_default", plain(name));
                (value.clone(), "=", value)
            }
            Effect::MaybeValue(name, _) => (String::new(), "=-", format!("::{}:", plain(name))),
        };
        let summary = plain(summary(option));
        if let Some(letter) = option.short {
            script.push_str(&format!("  '-{letter}[{summary}]{short_value}' \\\n"));
        }
        script.push_str(&format!("  '--{}{long_mark}[{summary}]{long_value}' \\\n", option.long));
    }
    script.push_str("  '*: :_files'\n");
    script
}

/// For fish.
pub(crate) fn fish() -> String {
    OPTIONS.iter().fold(String::new(), |script, option| {
        let short = option.short.map(|letter| format!(" -s {letter}")).unwrap_or_default();
        let value = if matches!(option.effect, Effect::Value(..)) {
            " -r"
        } else {
            ""
        };
        let summary = summary(option).replace('\'', "\\'");
        format!(
            "{script}complete -c iperf3{short} -l {}{value} -d '{summary}'\n",
            option.long
        )
    })
}

fn spellings(option: &OptionRow) -> impl Iterator<Item = String> {
    let short = option.short.map(|letter| format!("-{letter}"));
    short.into_iter().chain([format!("--{}", option.long)])
}

/// The first sentence, without the remark in parentheses at its end.
fn summary(option: &OptionRow) -> &'static str {
    let sentence = option.help.split(". ").next().unwrap_or_default();
    let sentence = sentence.split(" (").next().unwrap_or_default();
    sentence.trim_end_matches('.')
}

/// Characters that zsh would interpret inside a specification are dropped or replaced.
fn plain(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '[' | ']' | '\'' | '\\' => None,
            ':' => Some(','),
            other => Some(other),
        })
        .collect()
}
