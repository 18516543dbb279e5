# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_linerate_global_optspecs
    string join \n h/help V/version
end

function __fish_linerate_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_linerate_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_linerate_using_subcommand
    set -l cmd (__fish_linerate_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c linerate -n "__fish_linerate_needs_command" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_needs_command" -s V -l version -d 'Print version'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "iperf3" -d 'Test a path, or serve tests, with the options of iperf3'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "iperf2" -d 'Test a path, or serve tests, with the options of iperf 2'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "serve" -d 'Serve tests to any number of clients at the same time'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "try" -d 'Run a short test on this machine alone: TCP and UDP, both directions'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "selftest" -d 'Run a short test on this machine alone: TCP and UDP, both directions'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "doctor" -d 'Say what holds the network back, prove it, and give the fix and the undo'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "sweep" -d 'Find the best number of streams, window, rate or CPU for a path'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "links" -d 'Create links in a directory, so that calling iperf3 starts linerate'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "generate" -d 'Write a manual page or shell completions to the standard output'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c linerate -n "__fish_linerate_using_subcommand serve" -s p -l port -d 'Port for clients that speak iperf3\'s protocol, control and data' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -s b -l bind -d 'Local address to listen on [default: all]' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l iperf2-port -d 'Port for clients that speak iperf 2\'s protocol, TCP and UDP; 0 for none [default: 5001 beside port 5201, else none]' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l one-port -d 'Listen here only, for clients of iperf3 and of iperf 2 (TCP); the first bytes of a connection tell them apart' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l admit -d 'What happens to a client that comes while tests run: `parallel[:N]`, `queue[:N[/SECONDS]]` or `exclusive`' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l liveness -d 'End a test whose client shows no sign of life for this long' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l allow -d 'Serve these addresses only; @FILE for a file with one range per line; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l deny -d 'Do not serve these addresses, even if allowed; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l limit -d 'Limit a scope: server, address or user; keys tests, streams, duration, bytes, rate; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l metrics -d 'Offer figures for Prometheus at http://ADDRESS:PORT/metrics' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l log-format -d 'Form of the log' -r -f -a "text\t'Sentences'
json\t'One JSON object per line'"
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l log-level -d 'Least important messages that are logged' -r -f -a "error\t'Nothing but failures of the server itself'
warn\t'Refusals and tests that ended early'
info\t'Every test'
debug\t'Every test, and its rate while it runs'"
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l interval -d 'Time between two log lines about running tests' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l private-key -d 'Ask clients to log in; RSA private key in PEM form' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l users -d 'Users that may log in, one line user,hash each; read at every login' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l max-skew -d 'Largest difference between the clocks of client and server during a login' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l allow-split-address -d 'Let UDP streams come from another address than their control connection'
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l no-facts -d 'Tell clients with --lr-doctor nothing about this host'
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l accept-both-paddings -d 'Accept logins of clients before 3.17 as well, whose padding is less safe'
complete -c linerate -n "__fish_linerate_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand try" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand selftest" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l to -d 'Look at the interface through which this host is reached' -r
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l window -d 'Watch the counters for so long, for example 5s or 500ms' -r
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l line-rate -d 'Speed of the path where it is not the interface\'s, for example 1G' -r
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l save -d 'Keep the facts in a file, to be judged elsewhere with --from' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l from -d 'Judge saved facts, or pasted output of commands: a file, a directory or - (may be repeated)' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l diff -d 'Compare two hosts, or two moments of one' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l only -d 'Check these rules only, for example NIC-01,PAU-02' -r
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l explain -d 'Explain a rule and leave' -r
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l fail-on -d 'Exit with 3 when something at least this severe was found' -r -f -a "low\t'Anything but information'
medium\t'A visible effect'
high\t'Probably the answer'"
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l json -d 'Write one JSON object'
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l fix-script -d 'Write the suggested commands with their undo as a script, all commented out'
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -l ceiling -d 'Print what a link, the bus and windows can carry at best, and leave'
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -s v -l verbose -d 'Show all findings and why each rule was ruled out or not checkable'
complete -c linerate -n "__fish_linerate_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s p -l port -d 'Port of the server' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l over -d 'What to vary, one after the other: streams, length, window, congestion, rate, affinity; each with =LEVELS or without' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l objective -d 'What to look for: most received bits per second, least CPU time per GiB of both ends, or least round-trip time' -r -f -a "throughput\t'Most received bits per second'
cpu-per-byte\t'Least CPU time of both ends per GiB received'
latency\t'Least round-trip time under load (TCP)'"
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s t -l time -d 'Measured part of each run' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s O -l omit -d 'Beginning of each run that is not counted' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l repetitions -d 'Runs of each setting; settings of which it is open which one is best get more' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l budget -d 'Time for all runs, for example 90s, 15m or 2h; none is started that would end later' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l seed -d 'Decides the order of the runs' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s P -l streams -d 'Streams, where they are not varied [default: 1]' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s l -l length -d 'Bytes per write or datagram, where they are not varied' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s w -l window -d 'Socket buffers, where they are not varied [default: the system\'s choice]' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s b -l rate -d 'Rate of each stream, where it is not varied; 0 for no limit [default: none]' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s C -l congestion -d 'Congestion control, where it is not varied [default: the system\'s choice]' -r
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l csv -d 'Write one line per run to a file, comma-separated' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l html -d 'Write the report as one HTML file' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s R -l reverse -d 'The server sends'
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s u -l udp -d 'Test UDP; needs --rate or --over rate'
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s 4 -d 'IPv4 only'
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s 6 -d 'IPv6 only'
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -l json -d 'Write one JSON object instead of text'
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s q -l quiet -d 'Say nothing while it runs'
complete -c linerate -n "__fish_linerate_using_subcommand sweep" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand links" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand generate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "iperf3" -d 'Test a path, or serve tests, with the options of iperf3'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "iperf2" -d 'Test a path, or serve tests, with the options of iperf 2'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "serve" -d 'Serve tests to any number of clients at the same time'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "try" -d 'Run a short test on this machine alone: TCP and UDP, both directions'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "doctor" -d 'Say what holds the network back, prove it, and give the fix and the undo'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "sweep" -d 'Find the best number of streams, window, rate or CPU for a path'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "links" -d 'Create links in a directory, so that calling iperf3 starts linerate'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "generate" -d 'Write a manual page or shell completions to the standard output'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep links generate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
