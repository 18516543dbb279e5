//! Every dialogue of `tests/dialogues`, over an in-memory pipe.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agent_pipe::AgentPipe;
use crate::coordinator_pipe::CoordinatorPipe;
use crate::dialogue::{Machine, parse};
use crate::player::play;

#[test]
fn every_dialogue_goes_as_written() {
    let mut count = 0;
    let mut failed = Vec::new();

    for path in files() {
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let text = fs::read_to_string(&path).expect("a dialogue");
        let dialogue = parse(&text);
        let played = match &dialogue.machine {
            Machine::Agent { is_bus } => play(&dialogue, &mut AgentPipe::new(*is_bus)),
            Machine::Coordinator {
                hosts,
                is_solicited,
            } => play(&dialogue, &mut CoordinatorPipe::new(hosts, *is_solicited)),
        };
        failed.extend(played.err().map(|text| format!("{name}: {text}")));
        count += 1;
    }

    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(count >= 40, "{count} dialogues");
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues");
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}
