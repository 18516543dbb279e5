//! Counting and limiting descriptors. One test, because any other one opens some.

use std::fs::File;

use linerate_sys::process;

#[test]
fn descriptors_are_counted_and_their_limit_raised() {
    let before = process::open_fd_count().expect("count");
    let files: Vec<_> = (0..10)
        .map(|_| File::open("/dev/null").expect("open"))
        .collect();
    assert_eq!(process::open_fd_count().expect("count"), before + 10);
    drop(files);
    assert_eq!(process::open_fd_count().expect("count"), before);

    let raised = process::raise_fd_limit().expect("raise");
    let limits = std::fs::read_to_string("/proc/self/limits").expect("limits");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("the kernel reports it");
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(fields[3], raised.to_string(), "soft limit");
    assert_eq!(fields[3], fields[4], "soft and hard limit");
}
