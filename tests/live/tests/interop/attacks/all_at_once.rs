//! Every attack on one server at the same time. `make live SUITE=attacks` takes five minutes.

use super::attacked::{Attack, AttackedServer};
use super::{
    echo_floods, endless_plaintext, held_connections, keep_messages, one_byte_records, rate_floods,
    repeated_phases, udp_turns, unread_responses, wrong_tokens,
};

const ATTACKS: [Attack; 10] = [
    echo_floods::attack,
    endless_plaintext::attack,
    held_connections::attack,
    keep_messages::attack,
    one_byte_records::attack,
    rate_floods::attack,
    repeated_phases::attack,
    udp_turns::attack,
    unread_responses::attack,
    wrong_tokens::attack,
];

#[test]
fn timed_under_all_attacks_clients_are_served_in_time_and_the_server_ends_when_asked() {
    AttackedServer::start(&["--allow-split-address", "--limit", "address:rate=1G"])
        .withstands(&ATTACKS);
}
