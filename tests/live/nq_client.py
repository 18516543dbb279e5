"""A client of a test of responsiveness (draft-ietf-ippm-responsiveness) over HTTP/2 and TLS, and attackers in its
place: nq_client.py HOST PORT CA rpm SECONDS CONNECTIONS | rate SECONDS download|upload | attack NAME

It prints one line of JSON."""

import json
import socket
import ssl
import struct
import sys
import threading
import time

HOST, PORT, AUTHORITY = sys.argv[1], int(sys.argv[2]), sys.argv[3]
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME = 1 << 14
PROBE_S = 0.1

context = ssl.create_default_context(cafile=AUTHORITY)
context.set_alpn_protocols(["h2"])


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def fields(method, path):
    pairs = [(":method", method), (":scheme", "https"), (":authority", f"{HOST}:{PORT}"), (":path", path)]
    literal = lambda text: bytes([len(text)]) + text.encode()
    return b"".join(b"\0" + literal(name) + literal(value) for name, value in pairs)


class Connection:
    """One connection, whose frames are read one by one."""

    def __init__(self):
        start = time.monotonic()
        plain = socket.create_connection((HOST, PORT), 10)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected = time.monotonic()
        self.tls = context.wrap_socket(plain, server_hostname=HOST)
        self.times = [connected - start, time.monotonic() - connected]
        assert self.tls.selected_alpn_protocol() == "h2", "no h2"
        self.buffer, self.stream = b"", -1
        settings = struct.pack(">HI", 4, (1 << 31) - 1)
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))

    def send(self, octets):
        self.tls.sendall(octets)

    def request(self, method, path, flags=END_STREAM):
        self.stream += 2
        self.send(frame(HEADERS, END_HEADERS | flags, self.stream, fields(method, path)))
        return self.stream

    def read(self, wanted):
        while len(self.buffer) < wanted:
            more = self.tls.recv(1 << 16)
            if not more:
                raise EOFError
            self.buffer += more
        octets, self.buffer = self.buffer[:wanted], self.buffer[wanted:]
        return octets

    def frame(self):
        head = self.read(9)
        payload = self.read(int.from_bytes(head[:3], "big"))
        return head[3], head[4], int.from_bytes(head[5:], "big"), payload

    def answer(self, stream):
        """Status and body of a short response."""
        status, body = None, b""
        while True:
            kind, flags, id, payload = self.frame()
            if id == stream and kind == RST_STREAM:
                return None, body
            if id == stream and kind == HEADERS:
                # The first field is a literal: name and value have their lengths before them.
                status = int(payload[2 + payload[1] + 1:][:3])
            if id == stream and kind == DATA:
                body += payload
            if id == stream and flags & END_STREAM:
                return status, body


def configuration():
    connection = Connection()
    status, body = connection.answer(connection.request("GET", "/.well-known/nq"))
    assert status == 200, status
    urls = json.loads(body)["urls"]
    paths = [urls[name] for name in ("small_https_download_url", "large_https_download_url", "https_upload_url")]
    return ["/" + url.split("/", 3)[3] for url in paths]


def download(large, small, end, own_s):
    """Octets of one load, and the times of short requests in it."""
    connection = Connection()
    connection.request("GET", large)
    octets, credit, probe, sent, due = 0, 0, None, 0, time.monotonic()
    while time.monotonic() < end:
        kind, flags, stream, payload = connection.frame()
        assert kind not in (RST_STREAM, GOAWAY), (kind, payload)
        if kind == DATA and stream == 1:
            octets, credit = octets + len(payload), credit + len(payload)
        if stream == probe and flags & END_STREAM:
            own_s.append(time.monotonic() - sent)
            probe = None
        if credit > 1 << 20:
            connection.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", credit)))
            connection.send(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", credit)))
            credit = 0
        if probe is None and time.monotonic() >= due:
            sent, due = time.monotonic(), time.monotonic() + PROBE_S
            probe = connection.request("GET", small)
    return octets


def upload(slurp, end):
    """Octets of one load whose response follows its end."""
    connection = Connection()
    stream = connection.request("POST", slurp, 0)
    part, octets = frame(DATA, 0, stream, bytes(FRAME)), 0
    while time.monotonic() < end:
        connection.send(part)
        octets += FRAME
    connection.send(frame(DATA, END_STREAM, stream))
    status, _ = connection.answer(stream)
    assert status == 200, status
    return octets


def mean(times):
    """Without the largest 5 %, in ms."""
    kept = sorted(times)[:max(1, len(times) * 95 // 100)]
    return 1000 * sum(kept) / len(kept)


def rpm(seconds, connections):
    small, large, _ = configuration()
    end, own_s, octets, foreign = time.monotonic() + seconds, [], [], ([], [], [])
    load = lambda: octets.append(download(large, small, end, own_s))
    threads = [threading.Thread(target=load) for _ in range(connections)]
    for thread in threads:
        thread.start()
    # The begin, in which the queue fills, does not count.
    time.sleep(seconds / 3)
    own_s.clear()
    while time.monotonic() < end - 0.5:
        due = time.monotonic() + PROBE_S
        connection = Connection()
        start = time.monotonic()
        status, body = connection.answer(connection.request("GET", small))
        assert (status, len(body)) == (200, 1), (status, body)
        for times, taken in zip(foreign, connection.times + [time.monotonic() - start]):
            times.append(taken)
        time.sleep(max(0, due - time.monotonic()))
    for thread in threads:
        thread.join()
    assert len(octets) == connections, octets
    own, new = mean(own_s), sum(map(mean, foreign)) / 3
    return {"rpm_self": 60_000 / own, "rpm_foreign": 60_000 / new, "rpm": 30_000 / own + 30_000 / new,
            "probes": len(own_s), "bps": 8 * sum(octets) / seconds}


def rate(seconds, direction):
    small, large, slurp = configuration()
    start = time.monotonic()
    end = start + seconds
    octets = upload(slurp, end) if direction == "upload" else download(large, small, end, [])
    # The response to an upload comes when all of it has arrived.
    return {"bps": 8 * octets / (time.monotonic() - start)}


def flood(name, connection):
    block = fields("GET", "/nq/small")
    if name == "resets":
        stream = connection.request("GET", "/nq/small")
        return frame(HEADERS, END_HEADERS | END_STREAM, stream + 2, block) + frame(RST_STREAM, 0, stream + 2, bytes(4))
    if name == "endless fields":
        connection.send(frame(HEADERS, END_STREAM, 1, block))
        return frame(CONTINUATION, 0, 1, bytes([0, 1, 97, 100]) + bytes([97]) * 100)
    if name == "a body without a request":
        return frame(DATA, 0, 1, bytes(FRAME))
    if name == "a bomb of fields":
        connection.send(frame(HEADERS, 0, 1, bytes([0x40, 1, 97, 127, 0x81, 0x1e]) + bytes([97]) * 4000))
        return frame(CONTINUATION, END_HEADERS, 1, bytes([0xbe]) * 1000)
    if name == "a load and a flood of pings":
        connection.request("GET", "/nq/large")
    if name == "a load and resets":
        connection.request("GET", "/nq/large")
        parts = range(3, 401, 2)
        return b"".join(frame(HEADERS, END_HEADERS | END_STREAM, id, block) + frame(RST_STREAM, 0, id, bytes(4)) for id in parts)
    return {
        "pings": frame(PING, 0, 0, bytes(8)),
        "a load and a flood of pings": frame(PING, 0, 0, bytes(8)),
        "settings": frame(SETTINGS, 0, 0),
        "windows": frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
        "empty bodies": frame(DATA, 0, 1),
        "a frame of 16 MiB": b"\xff\xff\xff\x01\x04\0\0\0\1",
        "silence": b"",
    }[name]


def attack(name):
    """Seconds until the server ends the connection."""
    connection, start = Connection(), time.monotonic()
    octets = flood(name, connection)
    try:
        while octets and time.monotonic() < start + 20:
            connection.send(octets * 10)
        connection.tls.settimeout(20)
        while connection.tls.recv(1 << 16):
            pass
    except (OSError, EOFError):
        pass
    return {"ended_s": time.monotonic() - start}


arguments = sys.argv[5:]
print(json.dumps({
    "rpm": lambda: rpm(float(arguments[0]), int(arguments[1])),
    "rate": lambda: rate(float(arguments[0]), arguments[1]),
    "attack": lambda: attack(arguments[0]),
}[sys.argv[4]]()))
