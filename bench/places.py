"""Where tests run, and the processes in them."""

import os
import select
import socket
import subprocess
import sys
import time

START_LIMIT_S = 5


class Failed(Exception):
    """A test that did not complete."""


class Place:
    """Where client and server run: on this host, or on two hosts made of namespaces that go when this goes.

    With a congestion control of its own, loopback is that of a namespace: the route says it, so that programs get it which
    have no option for it, and the host keeps its setting.
    """

    NAMESPACES = [f"linerate-bench-{os.getpid()}-{side}" for side in ("client", "server")]
    ADDRESSES = ["192.0.2.1", "192.0.2.2"]

    def __init__(self, kind, congestion=None):
        self.veth = kind == "veth"
        self.congestion = congestion
        self.server_host = self.ADDRESSES[1] if self.veth else "127.0.0.1"
        self.anchors = []
        if self.veth:
            self.names = self.NAMESPACES
        else:
            self.names = self.NAMESPACES[:1] * 2 if congestion else []

    def __enter__(self):
        for name in set(self.names):
            ip("netns", "add", name)
        if self.veth:
            client, server = self.NAMESPACES
            ip(*f"link add lr0 netns {client} type veth peer name lr0 netns {server}".split())
            for name, address in zip(self.NAMESPACES, self.ADDRESSES):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "lr0")
                ip("-n", name, "link", "set", "lr0", "up")
        elif self.congestion:
            ip("-n", self.names[0], "link", "set", "lo", "up")
        for name in set(self.names) if self.congestion else ():
            self.set_congestion(name)
        if self.names:
            # They keep the namespaces open for reading their counters.
            self.anchors = [subprocess.Popen([*self.prefix(side), "sleep", "infinity"]) for side in (0, 1)]
        return self

    def __exit__(self, *_):
        for anchor in self.anchors:
            anchor.kill()
            anchor.wait()
        for name in set(self.names):
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def set_congestion(self, name):
        route = "192.0.2.0/24 dev lr0" if self.veth else "local 127.0.0.1 dev lo table local"
        ip("-n", name, *f"route replace {route} congctl {self.congestion}".split())

    def prefix(self, side):
        return ["ip", "netns", "exec", self.names[side]] if self.names else []

    def received_octets(self):
        """Of both hosts: data goes both ways."""
        return sum(in_octets(anchor.pid) for anchor in self.anchors) if self.anchors else in_octets(os.getpid())


def in_octets(pid):
    with open(f"/proc/{pid}/net/netstat", encoding="ascii") as file:
        lines = [line.split() for line in file if line.startswith("IpExt:")]
    return int(lines[1][lines[0].index("InOctets")])


def ip(*words):
    if subprocess.run(["ip", *words], check=False).returncode:
        raise Failed(f"ip {' '.join(words)}: namespaces need root")


def start(command, output, cpu):
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        preexec_fn=(lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None,
    )


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def wait_until_listening(server, port):
    """Looks into the kernel's tables; connecting would be taken for a client. Ports are free for both transports."""
    deadline = time.monotonic() + START_LIMIT_S
    local = f":{port:04X}"
    while time.monotonic() < deadline and server.poll() is None:
        for table, listening in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
            with open(f"/proc/{server.pid}/net/{table}", encoding="ascii") as lines:
                fields = (line.split() for line in lines)
                if any(field[1].endswith(local) and field[3] == listening for field in fields):
                    return
        time.sleep(0.005)
    raise Failed("the server does not listen")


def pin(cpus, side):
    """The CPU of the client (0) or the server (1) in a text such as 0,1; None for any."""
    return int(cpus.split(",")[side]) if cpus else None


def text(file):
    """All of it. Its writer shares the file but not the position read from here."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


def wait_until(condition, limit_s):
    deadline = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)


def reap(process, deadline, ending=None):
    """Waits for the end, asking for it by a signal when one is given, and returns the CPU seconds the process used."""
    if ending is not None:
        # Not by the object: it would collect an ended process, and with it what it used.
        os.kill(process.pid, ending)
    end = os.pidfd_open(process.pid)
    try:
        ready, _, _ = select.select([end], [], [], max(0, deadline - time.monotonic()))
    finally:
        os.close(end)
    if not ready:
        raise Failed(f"process {process.pid} does not end")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def resolve(program):
    found = subprocess.run(["sh", "-c", 'command -v "$1"', "sh", program], capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"{program}: no such program")
    return os.path.realpath(found.stdout.strip())


def run_program(name, main):
    """Ends with what `main` returns, or with the reason why a test did not complete."""
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"{name}: {failure}")
