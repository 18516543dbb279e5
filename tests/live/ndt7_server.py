#!/usr/bin/env python3
"""An ndt7 server of its own making, as ndt-server behaves: messages that grow, pings, measurements without AppInfo.

usage: ndt7_server.py ADDRESS PORT [unread]

With `unread` no upload is read.
Writes `ready`, and after each test a JSON object: its name, the payload that arrived, answers to pings, and whether
every frame of the client had a mask.
"""
import base64, hashlib, json, os, socket, struct, sys, threading, time

SECONDS = 10
MEASURED_S = 0.25
PROTOCOL = "net.measurementlab.ndt.v7"


def kernel(connection, started):
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    u32 = lambda at: struct.unpack_from("=I", info, at)[0]
    u64 = lambda at: struct.unpack_from("=Q", info, at)[0]
    return {
        "SndMSS": u32(16), "RTT": u32(68), "RTTVar": u32(72), "TotalRetrans": u32(100), "PacingRate": -1,
        "BytesAcked": u64(120), "BytesReceived": u64(128), "MinRTT": u32(148), "BusyTime": u64(168),
        "RWndLimited": u64(176), "SndBufLimited": u64(184), "ElapsedTime": int((time.monotonic() - started) * 1e6),
    }


def frame(opcode, payload):
    size = len(payload)
    if size < 126:
        return bytes([0x80 | opcode, size]) + payload
    if size < 1 << 16:
        return bytes([0x80 | opcode, 126]) + struct.pack(">H", size) + payload
    return bytes([0x80 | opcode, 127]) + struct.pack(">Q", size) + payload


class Test:
    def __init__(self, connection, name):
        self.connection, self.name, self.started = connection, name, time.monotonic()
        self.payload = self.pongs = 0
        self.masked = True
        self.closed = threading.Event()
        self.reader = connection.makefile("rb", 1 << 20)

    def read_frames(self):
        """Frames of the client, until its close frame or its end."""
        try:
            while not self.closed.is_set():
                first, second = self.reader.read(2)
                size = second & 0x7F
                if size > 125:
                    size = int.from_bytes(self.reader.read(2 if size == 126 else 8), "big")
                self.masked &= bool(second & 0x80)
                mask, body = self.reader.read(4), self.reader.read(size)
                opcode = first & 0x0F
                if opcode == 10:
                    plain = bytes(byte ^ mask[at % 4] for at, byte in enumerate(body))
                    self.pongs += plain == b"ping"
                elif opcode == 8:
                    break
                else:
                    self.payload += len(body)
        except (OSError, ValueError):
            pass
        self.closed.set()

    def measurement(self):
        ends = {"Client": "%s:%d" % self.connection.getpeername()[:2], "UUID": "x"}
        text = {"ConnectionInfo": ends, "Origin": "server", "Test": self.name, "BBRInfo": {"BW": 1},
                "TCPInfo": kernel(self.connection, self.started)}
        return frame(1, json.dumps(text).encode()) + frame(9, b"ping")

    def run(self):
        if sys.argv[3:] != ["unread"]:
            threading.Thread(target=self.read_frames, daemon=True).start()
        size, sent, due = 1 << 13, 0, self.started
        noise = os.urandom(1 << 20)
        try:
            while time.monotonic() < self.started + SECONDS and not self.closed.is_set():
                if time.monotonic() >= due:
                    self.connection.sendall(self.measurement())
                    due += MEASURED_S
                if self.name == "upload":
                    self.closed.wait(max(0, due - time.monotonic()))
                    continue
                self.connection.sendall(frame(2, noise[:size]))
                sent += size
                if size < 1 << 20 and size <= sent / 16:
                    size *= 2
            self.connection.sendall(frame(8, struct.pack(">H", 1000)))
        except OSError:
            pass
        self.closed.wait(1)
        print(json.dumps({"test": self.name, "payload": self.payload, "pongs": self.pongs, "masked": self.masked}),
              flush=True)


def serve(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(4096)
        if not more:
            return
        head += more
    lines = head.decode().split("\r\n")
    path = lines[0].split(" ")[1]
    fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    if fields.get("Sec-WebSocket-Protocol") != PROTOCOL or not path.startswith("/ndt/v7/"):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        return
    key = fields["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n".encode())
    Test(connection, path.removeprefix("/ndt/v7/")).run()


def main():
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()

        def one(connection=connection):
            with connection:
                serve(connection)

        threading.Thread(target=one, daemon=True).start()


main()
