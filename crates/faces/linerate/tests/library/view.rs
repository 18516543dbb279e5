//! A panic while a view is shown: the terminal is put back although nothing is dropped.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use linerate::live::Live;
use linerate::view::View;

const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
#[ignore = "the test below runs it in a terminal"]
fn panics_while_a_view_is_shown() {
    let view = View::open(&Live::default()).expect("a terminal");
    // A release aborts: its destructors do not run.
    std::mem::forget(view);
    panic!("on purpose");
}

#[test]
fn a_panic_leaves_the_terminal_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let shown = |name: &str| path(name).display().to_string();
    let test = env::current_exe().expect("this test").display().to_string();

    let tmux = |words: &[&str]| {
        Command::new("tmux")
            .arg("-S")
            .arg(path("tmux"))
            .args(words)
            .output()
    };
    let command = format!(
        "stty -a > {}; {test} --exact view::panics_while_a_view_is_shown --ignored --nocapture; stty -a \
         > {}; mv {} {}; read line",
        shown("before"),
        shown("new"),
        shown("new"),
        shown("after")
    );

    let words = [
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-x",
        "80",
        "-y",
        "24",
        "env",
        "TERM=screen",
        "RUST_BACKTRACE=0",
        "sh",
        "-c",
        &command,
    ];
    let Ok(started) = tmux(&words) else {
        // It is not installed.
        return;
    };
    assert!(started.status.success(), "{started:?}");

    let end = Instant::now() + TIMEOUT;
    while !path("after").exists() && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }

    let text = String::from_utf8_lossy(&tmux(&["capture-pane", "-p"]).expect("it runs").stdout)
        .into_owned();
    let _ = tmux(&["kill-server"]);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap_or_default();
    assert_eq!(read("before"), read("after"), "{text}");
    assert!(
        text.contains("on purpose"),
        "the message is on the screen of before: {text}"
    );
}
