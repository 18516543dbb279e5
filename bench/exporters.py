#!/usr/bin/env python3
"""Gives what the exporters write to the programs they are for, and compares the values.

The runs are those of the reviewed texts in crates/core/document/src/expected/export; a server is scraped alive. Prometheus answers
every expression of the dashboard. A watch sends its run to a receiver of OTLP and to the node exporter, and sqlite3 reads
its history. Needs promtool, prometheus, prometheus-node-exporter and sqlite3, and the modules duckdb, markdown-it-py and
opentelemetry-proto.
"""

import argparse
import base64
import contextlib
import csv
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMS = ROOT / "crates/core/document/src/expected/export"
DASHBOARD = ROOT / "packaging/grafana/linerate.json"
DEADLINE_S = 60


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    ours = parser.parse_args().ours
    with open(FORMS / "measures.csv", newline="", encoding="utf-8") as file:
        measures = list(csv.DictReader(file))
    check_duckdb(measures)
    check_otlp(measures)
    check_markdown()
    check_prometheus(ours, measures)
    check_watch(ours)


def check_duckdb(measures):
    import duckdb

    rows = duckdb.sql(f"select run, trial, measure, way, value from read_csv('{FORMS}/measures.csv')").fetchall()
    ours = [(m["run"], int(m["trial"]), m["measure"], m["way"], float(m["value"])) for m in measures]
    assert [(str(row[0]), *row[1:]) for row in rows] == ours, rows
    with open(FORMS / "series.csv", newline="", encoding="utf-8") as file:
        points = list(csv.DictReader(file))
    rows = duckdb.sql(f"select \"of\", start_ns, value from read_csv('{FORMS}/series.csv')").fetchall()
    ours = [(p["of"], int(p["start_ns"]), float(p["value"]) if p["value"] else None) for p in points]
    assert rows == ours, rows
    print(f"duckdb: {len(measures)} values of measures, {len(points)} of series")


def check_otlp(measures):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb

    text = (FORMS / "metrics.otlp.json").read_text(encoding="utf-8")
    request = json_format.Parse(text, metrics_pb.ExportMetricsServiceRequest())
    found = []
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.gauge.data_points:
            of = {pair.key: pair.value.string_value for pair in point.attributes}
            assert point.time_unix_nano > point.start_time_unix_nano > 1_700_000_000_000_000_000
            found.append((of["run"], of["trial"], metric.name.removeprefix("linerate."), of["direction"], point.as_double))
    ours = [(m["run"], m["trial"], m["measure"], m["way"], float(m["value"])) for m in measures]
    assert sorted(found) == sorted(ours), found
    # OTLP writes ids in hexadecimal; the JSON form of protobuf would be base64.
    text = (FORMS / "traces.otlp.json").read_text(encoding="utf-8")
    text = re.sub(r'(Id": ")([0-9a-f]+)"', lambda m: f'{m[1]}{base64.b64encode(bytes.fromhex(m[2])).decode()}"', text)
    request = json_format.Parse(text, trace_pb.ExportTraceServiceRequest())
    spans = request.resource_spans[0].scope_spans[0].spans
    ids = {(span.trace_id, span.span_id) for span in spans}
    assert len(ids) == len(spans) and all(len(trace) == 16 and len(span) == 8 for trace, span in ids)
    assert all((span.trace_id, span.parent_span_id) in ids for span in spans if span.parent_span_id)
    print(f"opentelemetry-proto: {len(found)} points, {len(spans)} spans")


def check_markdown():
    from markdown_it import MarkdownIt

    text = (FORMS / "runs.md").read_text(encoding="utf-8")
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    inline = [child for token in tokens if token.type == "inline" for child in token.children]
    kinds = {token.type for token in tokens + inline}
    assert {"heading_open", "table_open", "code_inline"} <= kinds, kinds
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}, kinds
    heads = [tokens[at + 1].children for at, token in enumerate(tokens) if token.type == "heading_open"]
    shown = ["".join(child.content for child in children) for children in heads]
    assert any("<b> → x|y" in head and "[a](b) @all" in head for head in shown), shown
    print(f"markdown-it: {len(heads)} runs, text of others is text")


def check_watch(ours):
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store, textfiles = directory / "history.db", directory / "textfiles"
        textfiles.mkdir()
        port, collector, received = free_port(), *receive_otlp(stack)
        start(stack, [ours, "iperf3", "-s", "-B", "127.0.0.1", "-p", str(port)])
        wait_for(lambda: is_listening(port))
        metrics = textfiles / "linerate.prom"
        options = ["--name", "uplink", "--every", "1m", "--store", store, "--metrics", metrics, "--otlp", collector]
        client = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", "1", "-b", "10M"]
        watch = [ours, "watch", "--once", *options, "--", *client]
        done = subprocess.run(watch, capture_output=True, text=True, env={**os.environ, "HOME": str(directory)})
        assert done.returncode == 0 and "collector" not in done.stderr, done
        show = [ours, "history", "show", "last", "--json", "--store", store]
        run = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)
        measures = {(m["name"], m["way"]): m["value"] for m in run["trials"][0]["measures"]}
        check_received(received, measures)
        check_sqlite(store, measures)
        check_node_exporter(stack, textfiles, measures)


def receive_otlp(stack):
    received = {}

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received[self.path] = (self.headers["Content-Type"], body)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}", received


def check_received(received, measures):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb

    assert set(received) == {"/v1/metrics", "/v1/traces"}, received
    assert all(kind == "application/json" for kind, _ in received.values()), received
    request = json_format.Parse(received["/v1/metrics"][1], metrics_pb.ExportMetricsServiceRequest())
    found = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.gauge.data_points:
            of = {pair.key: pair.value.string_value for pair in point.attributes}
            found[metric.name.removeprefix("linerate."), of["direction"]] = point.as_double
    assert found == measures, (found, measures)
    print(f"opentelemetry-proto: {len(found)} points of a watch")


def check_sqlite(store, measures):
    def sqlite(statement):
        words = ["sqlite3", "-json", store, statement]
        return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)

    assert sqlite("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    rows = sqlite("SELECT name, way, value FROM v_measure")
    assert {(row["name"], row["way"]): row["value"] for row in rows} == measures, rows
    (run,) = sqlite("SELECT state, server, primary_value FROM v_run")
    expected = {"state": "complete", "server": "127.0.0.1", "primary_value": measures["received_bps", "forward"]}
    assert run == expected, run
    print(f"sqlite3: {len(rows)} values of measures")


def check_node_exporter(stack, textfiles, measures):
    port = free_port()
    words = ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile"]
    start(stack, [*words, f"--collector.textfile.directory={textfiles}", f"--web.listen-address=127.0.0.1:{port}"])
    page = wait_for(lambda: get(f"http://127.0.0.1:{port}/metrics"), "the node exporter")
    assert "node_textfile_scrape_error 0\n" in page, page
    (line,) = re.findall(r"^linerate_test_goodput_bytes_per_second\{.*\} (\S+)$", page, re.MULTILINE)
    assert float(line) * 8 == measures["received_bps", "forward"], (line, measures)
    print("node exporter: the goodput of a watch")


def is_listening(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


def check_prometheus(ours, measures):
    results = (FORMS / "results.prom").read_text(encoding="utf-8")
    with contextlib.ExitStack() as stack:
        textfile = serve_text(stack, results)
        port, metrics = free_port(), free_port()
        start(stack, [ours, "serve", "--bind", "127.0.0.1", "--port", str(port), "--metrics", f"127.0.0.1:{metrics}"])
        live = wait_for(lambda: get(f"http://127.0.0.1:{metrics}/metrics"))
        ui = scrape(stack, [textfile, metrics])
        # Two scrapes with a test between them, so that there are rates.
        wait_for(lambda: len(query(ui, "up == 1")) == 2)
        client = [ours, "iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", "1"]
        subprocess.run(client, check=True, stdout=subprocess.DEVNULL)
        live = get(f"http://127.0.0.1:{metrics}/metrics")
        for name, text in (("results", results), ("server", live)):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
            assert checked.returncode == 0 and not checked.stdout + checked.stderr, checked
            print(f"promtool: {name}")
        # A counter that appears with its first value grows with the second test.
        wait_for(lambda: query(ui, "linerate_tests_finished_total"))
        subprocess.run(client, check=True, stdout=subprocess.DEVNULL)
        check_dashboard(ui)
        check_values(ui, measures)


def check_dashboard(ui):
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    for expression in expressions:
        asked = expression.replace("$__rate_interval", "30s").replace("$name", ".*")
        assert "$" not in asked, asked
        wait_for(lambda asked=asked: query(ui, asked), asked)
    print(f"dashboard: {len(expressions)} expressions with series")


def check_values(ui, measures):
    last = [m for m in measures if m["measure"] == "received_bps" and m["run"].endswith("010101010101")]
    values = sorted(float(m["value"]) for m in last if m["trial"] in "01")
    median = sum(values) / len(values)
    found = query(ui, 'linerate_test_goodput_bytes_per_second{name="uplink"} * 8')
    assert len(found) == 1 and float(found[0]["value"][1]) == median, (found, median)
    assert not query(ui, 'linerate_test_goodput_bytes_per_second{name="calls"}'), "a failed run has no values"
    assert query(ui, 'linerate_test_success{name="calls"} == 0')
    print("prometheus: the values of the runs")


def scrape(stack, ports):
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    config = pathlib.Path(directory) / "prometheus.yml"
    targets = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: linerate, static_configs: [{{targets: [{targets}]}}]}}]\n"
    )
    port = free_port()
    words = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory}/data"]
    start(stack, [*words, f"--web.listen-address=127.0.0.1:{port}"])
    return f"http://127.0.0.1:{port}"


def query(ui, expression):
    text = get(f"{ui}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
    return json.loads(text)["data"]["result"] if text else []


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.read().decode()
    except OSError:
        return None


def wait_for(condition, what="an answer"):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.2)
    sys.exit(f"no series within {DEADLINE_S} s: {what}")


def serve_text(stack, text):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return server.server_port


def start(stack, words):
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.terminate)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
