"""A link between two network namespaces whose delay, order, duplicates and losses are known exactly.

usage: link.py DEVICE CLIENT-NAMESPACE SERVER-NAMESPACE UP DOWN

Each namespace gets a tun device. UP is what the link does to packets of the client, DOWN to those of the server: a JSON object
with any of these members.

  delay_ms         each packet arrives so much later
  alternate_ms     every other selected packet arrives so much later than `delay_ms`, the others so much earlier
  late             [N, P]: P later ones pass every Nth selected packet
  double           [N, K]: the Kth of every N selected packets arrives twice
  drop_every       every Nth selected packet does not arrive
  udp_bytes_min    UDP packets of at least this length are selected; without it every packet is

The first line of standard output is `ready`. SIGTERM ends the link; the last line is what it did, by direction, with the
distribution of its own error: how much later than planned it wrote a packet.
"""

import ctypes
import fcntl
import gc
import heapq
import json
import os
import select
import signal
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
UDP = 17
PACKET_BYTES_MAX = 65_536

# The last part of a wait is spent on the CPU: a sleep may end later than it should.
SPIN_NS = 100_000
# A packet that no other one passes arrives after this time: it is the last one.
LATE_MAX_NS = 100_000_000

clock = time.monotonic_ns


class Direction:
    """What one direction does to packets."""

    def __init__(self, plan, target):
        self.target = target
        self.delay_ns = round(plan.get("delay_ms", 0) * 1e6)
        self.alternate_ns = round(plan.get("alternate_ms", 0) * 1e6)
        self.late_every, self.places = plan.get("late") or (0, 0)
        self.double_every, self.double_at = plan.get("double") or (0, 0)
        self.drop_every = plan.get("drop_every", 0)
        self.udp_bytes_min = plan.get("udp_bytes_min")
        # Packets that others are to pass, oldest first: data, those that are still to pass it, latest departure.
        self.held = []
        self.counts = dict.fromkeys(("packets", "selected", "delayed", "doubled", "dropped"), 0)
        self.errors_ns = []

    def selects(self, packet):
        if self.udp_bytes_min is None:
            return True
        return packet[9] == UDP and len(packet) >= self.udp_bytes_min

    def take(self, packet, now_ns, send):
        """Plans when a packet that arrived at `now_ns` leaves; `send` takes time and data."""
        self.counts["packets"] += 1
        due_ns = now_ns + self.delay_ns
        if not self.selects(packet):
            send(due_ns, packet)
            return
        self.counts["selected"] += 1
        number = self.counts["selected"]
        is_double = self.double_every and number % self.double_every == self.double_at
        if self.drop_every and number % self.drop_every == 0:
            self.counts["dropped"] += 1
            return
        if self.alternate_ns:
            due_ns += self.alternate_ns if number % 2 else -self.alternate_ns
        if self.late_every and number % self.late_every == 0:
            self.counts["delayed"] += 1
            self.held.append([packet, self.places, due_ns + LATE_MAX_NS])
            return
        send(due_ns, packet)
        if is_double:
            self.counts["doubled"] += 1
            send(due_ns, packet)
        self.pass_held(due_ns, send)

    def pass_held(self, due_ns, send):
        """A packet that leaves at `due_ns` passes those that are held."""
        for held in self.held:
            held[1] -= 1
        while self.held and self.held[0][1] <= 0:
            send(due_ns, self.held.pop(0)[0])

    def release_late(self, now_ns, send):
        """Packets that wait for others in vain."""
        while self.held and self.held[0][2] <= now_ns:
            send(now_ns, self.held.pop(0)[0])

    def summary(self):
        errors = sorted(self.errors_ns)
        share = lambda part: errors[min(int(part * len(errors)), len(errors) - 1)] if errors else 0
        mean_ns = sum(errors) // max(len(errors), 1)
        spread = {"error_p50_ns": share(0.5), "error_p99_ns": share(0.99), "error_max_ns": share(1.0)}
        return self.counts | spread | {"error_mean_ns": mean_ns}


class Link:
    """Both directions, by the device that packets come from."""

    def __init__(self, directions):
        self.directions = directions
        self.planned = []
        self.count = 0
        self.is_over = False

    def end(self, *_):
        self.is_over = True

    def run(self):
        sources = list(self.directions)
        while not self.is_over:
            for source in select.select(sources, [], [], self.wait_s())[0]:
                self.read(source)
            self.write_due()
            for direction in self.directions.values():
                direction.release_late(clock(), self.sender(direction))

    def wait_s(self):
        """Time without anything to do, in seconds."""
        times_ns = [direction.held[0][2] for direction in self.directions.values() if direction.held]
        times_ns += [self.planned[0][0]] if self.planned else []
        if not times_ns:
            return 0.1
        return min(max(min(times_ns) - SPIN_NS - clock(), 0) / 1e9, 0.1)

    def read(self, source):
        direction = self.directions[source]
        send = self.sender(direction)
        while True:
            now_ns = clock()
            try:
                packet = os.read(source, PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            if packet[0] >> 4 == 4:
                direction.take(packet, now_ns, send)

    def sender(self, direction):
        def send(due_ns, packet):
            # Packets of the same time leave in their order.
            self.count += 1
            heapq.heappush(self.planned, (due_ns, self.count, direction, packet))

        return send

    def write_due(self):
        while self.planned and self.planned[0][0] <= clock():
            due_ns, _, direction, packet = heapq.heappop(self.planned)
            try:
                os.write(direction.target, packet)
            except OSError:
                # The device is not up yet, or no longer.
                continue
            direction.errors_ns.append(clock() - due_ns)


def tun(device, namespace):
    """A tun device in a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}", "rb") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    # The device belongs to the namespace in which this file was opened.
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def main():
    device, client, server, up, down = sys.argv[1:]
    client, server = tun(device, client), tun(device, server)
    up, down = Direction(json.loads(up), server), Direction(json.loads(down), client)
    link = Link({client: up, server: down})
    signal.signal(signal.SIGTERM, link.end)
    try:
        # Otherwise it would wait behind the programs that it connects.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass
    gc.disable()
    print("ready", flush=True)
    link.run()
    print(json.dumps({"up": up.summary(), "down": down.summary()}))


if __name__ == "__main__":
    main()
