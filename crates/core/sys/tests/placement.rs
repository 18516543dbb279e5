//! CPU placement and CPU time. One test, because it moves the whole process.

use std::sync::mpsc;

use linerate_sys::cpu;

#[test]
fn threads_and_process_are_pinned_restored_and_accounted() {
    let before = cpu::affinity().expect("affinity");
    assert_eq!(cpu::online_cpus(), before.count());
    let cpus: Vec<_> = before.cpus().collect();
    let (first, last) = (cpus[0], *cpus.last().expect("we run somewhere"));

    let mine = || {
        cpu::affinity()
            .expect("affinity")
            .cpus()
            .collect::<Vec<_>>()
    };

    let (ask, questions) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let other = std::thread::spawn(move || {
        for () in questions {
            answer
                .send(
                    cpu::affinity()
                        .expect("affinity")
                        .cpus()
                        .collect::<Vec<_>>(),
                )
                .expect("the test listens");
        }
    });

    let others = || {
        ask.send(()).expect("the thread lives");
        answers.recv().expect("the thread answers")
    };

    cpu::pin_thread(last).expect("pin");
    assert_eq!(
        (mine(), others()),
        (vec![last], cpus.clone()),
        "this thread alone"
    );
    assert_eq!(cpu::online_cpus(), 1);
    before.restore().expect("restore");
    assert_eq!(mine(), cpus);

    cpu::pin_process(first).expect("pin");
    assert_eq!(
        (mine(), others()),
        (vec![first], vec![first]),
        "every thread"
    );
    before.restore_process().expect("restore");
    assert_eq!((mine(), others()), (cpus.clone(), cpus));

    for nowhere in [8_000, usize::MAX] {
        let error = cpu::pin_thread(nowhere).expect_err("no such CPU");
        assert_eq!(
            error.to_string(),
            format!("sched_setaffinity cpu {nowhere}: Invalid argument")
        );
    }

    drop(ask);
    other.join().expect("thread");

    let start = cpu::thread_time();
    while cpu::thread_time().user <= start.user {
        std::hint::black_box((0..10_000).sum::<u64>());
    }

    let (thread, process) = (cpu::thread_time(), cpu::process_time());
    assert!(
        process.user + process.system >= thread.user + thread.system - start.user - start.system
    );
}
