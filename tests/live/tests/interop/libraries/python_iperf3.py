"""Runs one end of a test with the package iperf3 of PyPI and prints its outcome as a JSON object.

python_iperf3.py client PORT NAME=VALUE...
python_iperf3.py server PORT TESTS
"""

import json
import sys

import iperf3


def outcome(result):
    shown = {"error": result.error, "type": None}
    if result.error is None:
        names = "protocol num_streams omit duration local_host remote_host remote_port reverse type"
        shown = {name: getattr(result, name) for name in names.split()}
        shown["error"] = None
        moved = result.sent_bytes if result.protocol == "TCP" else result.bytes
        shown["bytes"] = moved
        shown["intervals"] = len(result.json["intervals"])
        if result.protocol == "UDP":
            shown["lost_percent"] = result.lost_percent
    return shown


def main(role, port, *words):
    if role == "server":
        server = iperf3.Server()
        server.bind_address = "127.0.0.1"
        server.port = int(port)
        for _ in range(int(words[0])):
            print(json.dumps(outcome(server.run())), flush=True)
        return
    client = iperf3.Client()
    client.server_hostname = "127.0.0.1"
    client.port = int(port)
    for word in words:
        name, value = word.split("=")
        setattr(client, name, value if name in ("protocol", "server_hostname") else int(value))
    print(json.dumps(outcome(client.run())), flush=True)


main(*sys.argv[1:])
