//! A fleet of many hosts: what a coordinator sends them at the same time.

use linerate_fleet::protocol::coordinator::{Action, Coordinator, Input};

use super::fuzzing::{line, plan, settings};

const HOSTS: usize = 200;
const MS_NS: u64 = 1_000_000;

/// A coordinator whose hosts have a plan.
fn planned() -> Coordinator {
    let mut coordinator = Coordinator::new(0, settings(), HOSTS);
    let all = |coordinator: &mut Coordinator, line: &str| {
        (0..HOSTS).for_each(|host| coordinator.handle_line(1, host, line.as_bytes()));
    };
    all(
        &mut coordinator,
        &line("hello", r#"{"protocol":{"min":1,"max":1},"version":"x"}"#),
    );

    for host in 0..HOSTS {
        assert_eq!(
            coordinator.handle_local(
                1,
                Input::Plan {
                    host,
                    plan: Box::new(plan())
                }
            ),
            Ok(())
        );
    }

    assert_eq!(coordinator.handle_local(1, Input::PlansSent), Ok(()));
    all(&mut coordinator, &line("planned", r#"{"ports":[]}"#));
    while coordinator.poll_action().is_some() {}
    coordinator
}

/// Hosts that received CLOCK since the last call, with the reading in it.
fn sent(coordinator: &mut Coordinator) -> Vec<(usize, u64)> {
    let actions = std::iter::from_fn(|| coordinator.poll_action());
    let of_clock = actions.filter_map(|action| match action {
        Action::Send { hosts, line } if line.contains(r#""type":"clock""#) => {
            let message: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            Some((*hosts.first()?, message["body"]["c1_ns"].as_u64()?))
        }
        _ => None,
    });
    of_clock.collect()
}

#[test]
fn clocks_are_read_of_some_hosts_at_a_time_and_of_all_in_the_end() {
    let mut coordinator = planned();
    assert_eq!(
        coordinator.handle_local(MS_NS, Input::Clocks { exchanges: 2 }),
        Ok(())
    );
    let mut open = sent(&mut coordinator);
    let (first, mut now_ns, mut answers) = (open.len(), MS_NS, 0);
    assert!((1..HOSTS).contains(&first), "{first}");

    while let Some((host, c1_ns)) = open.pop() {
        now_ns += 1;
        let body = format!(r#"{{"c1_ns":{c1_ns},"a2_ns":{c1_ns},"a3_ns":{c1_ns}}}"#);
        coordinator.handle_line(now_ns, host, line("clocked", &body).as_bytes());
        answers += 1;
        open.extend(sent(&mut coordinator));
        assert!(open.len() <= first, "{} of {first}", open.len());
    }

    assert_eq!(answers, 2 * HOSTS);
    assert!((0..HOSTS).all(|host| coordinator.clock(host, now_ns).is_some()));
}
