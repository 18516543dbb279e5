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
complete -c linerate -n "__fish_linerate_needs_command" -f -a "http" -d 'Serve, load and measure HTTP: requests per second, latency, ten thousand connections'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "links" -d 'Create links in a directory, so that iperf3, iperf and iperf2 start linerate'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "generate" -d 'Write the manual, shell completions, or a line of a user file'
complete -c linerate -n "__fish_linerate_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c linerate -n "__fish_linerate_using_subcommand serve" -s p -l port -d 'Port for clients that speak iperf3\'s protocol, control and data' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -s b -l bind -d 'Local address to listen on [default: all]' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l iperf2-port -d 'The same on another port' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l one-port -d 'Listen here only, for clients of iperf3 and of iperf 2 (TCP); the first bytes of a connection tell them apart' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l admit -d 'What happens to a client that comes while tests run: `parallel[:N]`, `queue[:N[/SECONDS]]` or `exclusive`' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l liveness -d 'End a test whose client shows no sign of life for this long' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l allow -d 'Serve these addresses only; @FILE for a file with one range per line; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l deny -d 'Do not serve these addresses, even if allowed; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l limit -d 'Limit a scope: server, address or user; keys tests, streams, duration, bytes, rate; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l facts -d 'Clients with --lr-doctor that get facts about this host: `trusted`, `all` or `none`' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l metrics -d 'Offer figures for Prometheus at http://ADDRESS:PORT/metrics' -r
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l user -d 'Serve as this user, without any privilege, as soon as the ports are bound; only root can' -r
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
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l iperf2 -d 'Serve clients that speak iperf 2\'s protocol, too, on port 5001, TCP and UDP; these clients cannot log in'
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l iperf2-udp-reverse -d 'Send data over UDP to clients of iperf 2 that ask for it (-R, -d, -r, --full-duplex)'
complete -c linerate -n "__fish_linerate_using_subcommand serve" -l allow-split-address -d 'Let UDP streams come from another address than their control connection'
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
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "serve" -d 'Serve fixed payloads over HTTP, at the least cost the kernel allows'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "load" -d 'Send requests to a server and time the answers'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "lab" -d 'The whole experiment: TCP alone, payloads, connections, ten thousand of them, with a verdict for each'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "matrix" -d 'Payloads by connections: where throughput ends, why, and which number of connections is best'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "c10k" -d 'Ten thousand connections: idle, with few requests, and busy'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "check" -d 'Look whether both hosts can do what an experiment needs, and say what to change; nothing is changed'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "compare" -d 'Two experiments side by side: what changed, and by more than chance'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "agent" -d 'Tell a client what a test costs this host and a server on it that is not linerate'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "worker" -d 'A part of a load, led by another process'
complete -c linerate -n "__fish_linerate_using_subcommand http; and not __fish_seen_subcommand_from serve load lab matrix c10k check compare agent worker help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -s b -l bind -d 'Listen here only; may be repeated [default: port 8080 of every address]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -s t -l threads -d 'Threads, each with listeners of its own [default: one per CPU the process may use]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l backlog -d 'Connections that may wait to be accepted, per thread and address; the kernel clips it to net.core.somaxconn' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l max-conns -d 'Most connections at a time; above it they are answered 503 and closed [default: 90 % of the descriptors allowed]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l idle-timeout -d 'Close connections that make no progress for this long' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l max-body -d 'Longest body of a request; above it the answer is 413' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l body-path -d 'How bodies get to the socket' -r -f -a "auto\t'Small ones copied, large ones as a measurement at the start says'
copy\t'The kernel copies them'
sendfile\t'From a file that is never read from a disk'
zerocopy\t'Lent to the kernel'"
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l allow -d 'Serve these addresses only; may be repeated [default: networks this host is on, and private addresses]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l cert -d 'Certificate in PEM form, followed by those that lead to its issuer' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l key -d 'Key of the certificate in PEM form' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l tcp -d 'Serve iperf3\'s tests as well, to the same addresses, for the lab\'s TCP baseline [port: 5201]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l sndbuf -d 'Send buffer of the sockets' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l rcvbuf -d 'Receive buffer of the sockets' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l congestion -d 'Congestion control of the sockets' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l control -d 'Where clients ask for figures [default: the port after the one under test, on all addresses]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l control-allow -d 'Answer this host and these networks only; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l token -d 'What clients have to show, 16 characters or more [default: a new one, which is printed]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l token-file -d 'A file with what clients have to show; made, readable for its owner only, if it is not there' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l server-header -d 'Add `Server: linerate/VERSION` to every answer'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l no-date -d 'Leave the date out of answers'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l tls -d 'Speak TLS, in it HTTP/2 or HTTP/1.1, with a certificate made at the start unless one is given'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l h2 -d 'Speak HTTP/2 in plain text, too, with clients that begin with it (prior knowledge)'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l aids -d 'Let requests ask for trouble: ?delay=MS, ?close=1, ?status=CODE, and ?stall=MS, which stops a whole thread'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l no-control -d 'Open no control channel: clients get no figures of this host'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -l no-token -d 'Ask clients for nothing: then only this host and --control-allow are answered'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s c -l connections -d 'Connections' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s d -l duration -d 'Measured time' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l warmup -d 'Load before it that is not counted' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s r -l rate -d 'Requests per second of all connections together, due by a schedule (open loop)' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l arrival -d 'How due times are spread: evenly, or as of independent users' -r -f -a "uniform\t'One every 1/RATE'
poisson\t'Exponential gaps'"
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l pipeline -d 'Requests each connection keeps outstanding' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l think -d 'Pause between an answer and the next request of a connection' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l heartbeat -d 'With --idle: one request per connection and period, spread evenly' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l seed -d 'Decides Poisson arrivals' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l timeout -d 'Longest wait for an answer' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s X -l method -d 'Method' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s H -l header -d 'A header field in addition, or instead of one that is sent by itself' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l body -d 'File to send as the body of each request' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l host -d 'Name for the Host field, instead of the URL\'s' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s m -l streams -d 'Requests at a time on each connection of HTTP/2 [default: 1]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l cacert -d 'PEM file with the authorities to believe, instead of this host\'s' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l pin-sha256 -d 'Believe the certificate with this SHA-256 and no other; http serve --tls prints that of its own' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l threads -d 'Threads [default: CPUs this process may use]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l procs -d 'Worker processes, each with a limit of descriptors of its own: a number, or auto for as many as are needed' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l ramp -d 'Connections opened per second, or max' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l inflight-connects -d 'Most connections on their way at once' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l connect-timeout -d 'Longest wait for a connection' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l reconnects -d 'Times a connection that was lost without notice is opened again' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l src -d 'Local addresses' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l src-range -d 'Local addresses from one to another, for example 10.0.0.10-20' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l src-dev -d 'All addresses of a device' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l ports -d 'Who chooses local ports: the kernel, within its range, or we, any free one from 1024 on' -r -f -a "auto\t'The kernel, unless there are too many connections for its range'
kernel\t'The kernel'
explicit\t'Any free port from 1024 on'"
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l close -d 'How connections end: by a reset, which leaves no TIME_WAIT, or in order' -r -f -a "auto\t'By a reset on loopback, else in order'
rst\t'By a reset'
fin\t'In order'"
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l tcp-keepalive -d 'Pause after which TCP probes an idle connection' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l resolve -d 'An address for a name, instead of asking for it' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l control-url -d 'Where the server\'s control channel is [default: the server\'s host, the port after its first]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l token -d 'What it asks for; other users of this host see it among the processes, so prefer --token-file' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l token-file -d 'A file with what it asks for' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l i-own-this-target -d 'Lift the limits of public addresses; must be the host of the URL' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l idle -d 'Only hold the connections'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l touch -d 'Ask once on every connection before the load begins'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l spin -d 'Spend the last 50 µs before a due time awake'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l allow-unsafe-methods -d 'Allow methods other than GET and HEAD'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l verify -d 'Every body must be the same as the first'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l h2 -d 'HTTP/2: agreed on by ALPN over TLS, without asking before in plain text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s k -l insecure -d 'Believe any certificate'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s 4 -d 'IPv4 only'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s 6 -d 'IPv6 only'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s y -l yes -d 'Do not ask before the load begins'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l allow-large -d 'Lift the limits of private addresses'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l no-breaker -d 'Go on although the server fails or asks for a pause'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l json -d 'Write one JSON object instead of text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -l json-stream -d 'Write one JSON object per second and one at the end'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s q -l quiet -d 'Say nothing while it runs'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from load" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l phases -d 'Parts: 0 TCP alone, 1 payloads, 2 payloads by connections, 3 ten thousand connections' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l out -d 'Keep the runs in this directory [default: linerate-http-DATE]' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l resume -d 'Go on with an experiment that was interrupted; finished cells are not repeated' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -s m -l streams -d 'Requests at a time on each connection of HTTP/2 [default: 1]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l cacert -d 'PEM file with the authorities to believe, instead of this host\'s' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l pin-sha256 -d 'Believe the certificate with this SHA-256 and no other; http serve --tls prints that of its own' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l control-url -d 'Where the server\'s control channel is [default: the server\'s host, the port after its first]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l token -d 'What it asks for; other users of this host see it among the processes, so prefer --token-file' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l token-file -d 'A file with what it asks for' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l i-own-this-target -d 'Lift the limits of public addresses; must be the host of the URL' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l html -d 'Write the report as one HTML file' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l quick -d 'One short run of each cell: minutes instead of half an hour'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l plan-only -d 'Only show what would be run, how long it would take and what it needs'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l print-plan -d 'Only write the plan as a file with every key'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l force -d 'Run what the checks advise against, and go on in a changed environment'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l assert -d 'Exit with 5 when the plan\'s slo table is missed'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l h2 -d 'HTTP/2: agreed on by ALPN over TLS, without asking before in plain text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -s k -l insecure -d 'Believe any certificate'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -s y -l yes -d 'Do not ask before the load begins'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l allow-large -d 'Lift the limits of private addresses'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l no-breaker -d 'Go on although the server fails or asks for a pause'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l json -d 'Write one JSON object instead of text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -l json-stream -d 'Write one JSON object per second and one at the end'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -s q -l quiet -d 'Say nothing while it runs'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from lab" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l phases -d 'Parts: 0 TCP alone, 1 payloads, 2 payloads by connections, 3 ten thousand connections' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l out -d 'Keep the runs in this directory [default: linerate-http-DATE]' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l resume -d 'Go on with an experiment that was interrupted; finished cells are not repeated' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -s m -l streams -d 'Requests at a time on each connection of HTTP/2 [default: 1]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l cacert -d 'PEM file with the authorities to believe, instead of this host\'s' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l pin-sha256 -d 'Believe the certificate with this SHA-256 and no other; http serve --tls prints that of its own' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l control-url -d 'Where the server\'s control channel is [default: the server\'s host, the port after its first]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l token -d 'What it asks for; other users of this host see it among the processes, so prefer --token-file' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l token-file -d 'A file with what it asks for' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l i-own-this-target -d 'Lift the limits of public addresses; must be the host of the URL' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l html -d 'Write the report as one HTML file' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l quick -d 'One short run of each cell: minutes instead of half an hour'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l plan-only -d 'Only show what would be run, how long it would take and what it needs'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l print-plan -d 'Only write the plan as a file with every key'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l force -d 'Run what the checks advise against, and go on in a changed environment'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l assert -d 'Exit with 5 when the plan\'s slo table is missed'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l h2 -d 'HTTP/2: agreed on by ALPN over TLS, without asking before in plain text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -s k -l insecure -d 'Believe any certificate'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -s y -l yes -d 'Do not ask before the load begins'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l allow-large -d 'Lift the limits of private addresses'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l no-breaker -d 'Go on although the server fails or asks for a pause'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l json -d 'Write one JSON object instead of text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -l json-stream -d 'Write one JSON object per second and one at the end'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -s q -l quiet -d 'Say nothing while it runs'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from matrix" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l phases -d 'Parts: 0 TCP alone, 1 payloads, 2 payloads by connections, 3 ten thousand connections' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l out -d 'Keep the runs in this directory [default: linerate-http-DATE]' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l resume -d 'Go on with an experiment that was interrupted; finished cells are not repeated' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -s m -l streams -d 'Requests at a time on each connection of HTTP/2 [default: 1]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l cacert -d 'PEM file with the authorities to believe, instead of this host\'s' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l pin-sha256 -d 'Believe the certificate with this SHA-256 and no other; http serve --tls prints that of its own' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l control-url -d 'Where the server\'s control channel is [default: the server\'s host, the port after its first]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l token -d 'What it asks for; other users of this host see it among the processes, so prefer --token-file' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l token-file -d 'A file with what it asks for' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l i-own-this-target -d 'Lift the limits of public addresses; must be the host of the URL' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l html -d 'Write the report as one HTML file' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l quick -d 'One short run of each cell: minutes instead of half an hour'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l plan-only -d 'Only show what would be run, how long it would take and what it needs'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l print-plan -d 'Only write the plan as a file with every key'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l force -d 'Run what the checks advise against, and go on in a changed environment'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l assert -d 'Exit with 5 when the plan\'s slo table is missed'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l h2 -d 'HTTP/2: agreed on by ALPN over TLS, without asking before in plain text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -s k -l insecure -d 'Believe any certificate'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -s y -l yes -d 'Do not ask before the load begins'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l allow-large -d 'Lift the limits of private addresses'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l no-breaker -d 'Go on although the server fails or asks for a pause'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l json -d 'Write one JSON object instead of text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -l json-stream -d 'Write one JSON object per second and one at the end'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -s q -l quiet -d 'Say nothing while it runs'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from c10k" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l phases -d 'Parts of the experiment' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -s m -l streams -d 'Requests at a time on each connection of HTTP/2 [default: 1]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l cacert -d 'PEM file with the authorities to believe, instead of this host\'s' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l pin-sha256 -d 'Believe the certificate with this SHA-256 and no other; http serve --tls prints that of its own' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l control-url -d 'Where the server\'s control channel is [default: the server\'s host, the port after its first]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l token -d 'What it asks for; other users of this host see it among the processes, so prefer --token-file' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l token-file -d 'A file with what it asks for' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l fix -d 'Print what would mend it; nothing is ever changed (commands are printed with or without it)'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l h2 -d 'HTTP/2: agreed on by ALPN over TLS, without asking before in plain text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -s k -l insecure -d 'Believe any certificate'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -l json -d 'Write one JSON object instead of text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from compare" -l html -d 'Write the comparison as one HTML file' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from compare" -l json -d 'Write one JSON object instead of text'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from compare" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -l pid -d 'Watch this process' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -l listen-port -d 'Watch whoever listens on this TCP port, its workers included, and the connections to it' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -l control -d 'Where clients ask for figures [default: the port after the one under test, on all addresses]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -l control-allow -d 'Answer this host and these networks only; may be repeated' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -l token -d 'What clients have to show, 16 characters or more [default: a new one, which is printed]' -r
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -l token-file -d 'A file with what clients have to show; made, readable for its owner only, if it is not there' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -l no-token -d 'Ask clients for nothing: then only this host and --control-allow are answered'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from worker" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serve fixed payloads over HTTP, at the least cost the kernel allows'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "load" -d 'Send requests to a server and time the answers'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "lab" -d 'The whole experiment: TCP alone, payloads, connections, ten thousand of them, with a verdict for each'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "matrix" -d 'Payloads by connections: where throughput ends, why, and which number of connections is best'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "c10k" -d 'Ten thousand connections: idle, with few requests, and busy'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "check" -d 'Look whether both hosts can do what an experiment needs, and say what to change; nothing is changed'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "compare" -d 'Two experiments side by side: what changed, and by more than chance'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "agent" -d 'Tell a client what a test costs this host and a server on it that is not linerate'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "worker" -d 'A part of a load, led by another process'
complete -c linerate -n "__fish_linerate_using_subcommand http; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c linerate -n "__fish_linerate_using_subcommand links" -l remove -d 'Remove the links to this program from the directory, and nothing else'
complete -c linerate -n "__fish_linerate_using_subcommand links" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and not __fish_seen_subcommand_from man completions user help" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and not __fish_seen_subcommand_from man completions user help" -f -a "man" -d 'Write a page of the manual to the standard output, or all pages to a directory'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and not __fish_seen_subcommand_from man completions user help" -f -a "completions" -d 'Write shell completions to the standard output'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and not __fish_seen_subcommand_from man completions user help" -f -a "user" -d 'Write a line of the user file of a server that requires logins'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and not __fish_seen_subcommand_from man completions user help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from man" -l dir -d 'Write all pages to the subdirectories man1 and man7 of this directory' -r -F
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from man" -s h -l help -d 'Print help'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from user" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "man" -d 'Write a page of the manual to the standard output, or all pages to a directory'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "completions" -d 'Write shell completions to the standard output'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "user" -d 'Write a line of the user file of a server that requires logins'
complete -c linerate -n "__fish_linerate_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "iperf3" -d 'Test a path, or serve tests, with the options of iperf3'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "iperf2" -d 'Test a path, or serve tests, with the options of iperf 2'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "serve" -d 'Serve tests to any number of clients at the same time'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "try" -d 'Run a short test on this machine alone: TCP and UDP, both directions'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "doctor" -d 'Say what holds the network back, prove it, and give the fix and the undo'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "sweep" -d 'Find the best number of streams, window, rate or CPU for a path'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "http" -d 'Serve, load and measure HTTP: requests per second, latency, ten thousand connections'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "links" -d 'Create links in a directory, so that iperf3, iperf and iperf2 start linerate'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "generate" -d 'Write the manual, shell completions, or a line of a user file'
complete -c linerate -n "__fish_linerate_using_subcommand help; and not __fish_seen_subcommand_from iperf3 iperf2 serve try doctor sweep http links generate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "serve" -d 'Serve fixed payloads over HTTP, at the least cost the kernel allows'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "load" -d 'Send requests to a server and time the answers'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "lab" -d 'The whole experiment: TCP alone, payloads, connections, ten thousand of them, with a verdict for each'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "matrix" -d 'Payloads by connections: where throughput ends, why, and which number of connections is best'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "c10k" -d 'Ten thousand connections: idle, with few requests, and busy'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "check" -d 'Look whether both hosts can do what an experiment needs, and say what to change; nothing is changed'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "compare" -d 'Two experiments side by side: what changed, and by more than chance'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "agent" -d 'Tell a client what a test costs this host and a server on it that is not linerate'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from http" -f -a "worker" -d 'A part of a load, led by another process'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "man" -d 'Write a page of the manual to the standard output, or all pages to a directory'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "completions" -d 'Write shell completions to the standard output'
complete -c linerate -n "__fish_linerate_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "user" -d 'Write a line of the user file of a server that requires logins'
