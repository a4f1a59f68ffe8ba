#!/usr/bin/env python3
"""Whole-process figures of a release build: time, CPU and memory of the things a person waits for.

    cargo build --release --locked && python3 benches/process.py [path/to/coyote]

Prints one line a figure with the median of the runs and the worst; CPU includes that of servers it started. Nothing
here is asserted: the figures and the machine they come from are written down in docs/performance.md.
"""

import base64
import http.server
import json
import os
import pathlib
import pty
import random
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/coyote")
RUNS = 20


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for delta, finish in [({"content": "hello"}, None), ({}, "stop")]:
            event = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


def environment(home, port):
    config = pathlib.Path(home, "config")
    config.mkdir(exist_ok=True)
    (config / "config.yaml").write_text(
        "model: local:m\nleft_prompt: 'READY> '\nclients:\n- type: openai-compatible\n  name: local\n"
        f"  api_base: http://127.0.0.1:{port}/v1\n  models:\n  - name: m\n"
    )
    return {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "TERM": "xterm-256color",
        "COYOTE_CONFIG_DIR": str(config),
        "COYOTE_CACHE_DIR": str(pathlib.Path(home, "cache")),
        "COYOTE_LOCAL_URL": "http://127.0.0.1:1",
    }


def run(args, env):
    """Wall milliseconds and CPU milliseconds of one run."""
    null = os.open(os.devnull, os.O_RDWR)
    streams = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(BINARY, [BINARY, *args], env, file_actions=streams)
    _, status, usage = os.wait4(pid, 0)
    wall = (time.perf_counter() - start) * 1000
    os.close(null)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{args} failed")
    return wall, (usage.ru_utime + usage.ru_stime) * 1000


def peak(args, env):
    """Peak MiB of one run. Measured by a small program: a child of Python begins with Python's own peak."""
    if not shutil.which("time"):
        return float("nan")
    with tempfile.NamedTemporaryFile() as report:
        command = [shutil.which("time"), "-f", "%M", "-o", report.name, BINARY, *args]
        subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        return int(report.read()) / 1024


def own_peak(args, env):
    """The same for a run with servers, whose memory does not count: watched from outside."""
    process = subprocess.Popen([BINARY, *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
        most = max([most, *(int(line.split()[1]) for line in lines)])
        time.sleep(0.0005)
    process.wait()
    return most / 1024


def measure(what, args, env, runs=RUNS, watch=peak):
    timed = [run(args, env) for _ in range(runs)]
    show(f"{what}: wall", [wall for wall, _ in timed], "ms ")
    show(f"{what}: CPU", [cpu for _, cpu in timed], "ms ")
    show(f"{what}: peak memory", [watch(args, env) for _ in range(min(runs, 5))], "MiB")


def serve_blob():
    """An MCP server with one resource: 50 MB that are no text."""
    blob = base64.b64encode(random.Random(1).randbytes(50_000_000)).decode()
    for line in sys.stdin:
        message = json.loads(line)
        answers = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"resources": {}},
                "serverInfo": {"name": "blob", "version": "1"},
            },
            "resources/list": {"resources": [{"uri": "blob://x", "name": "x"}]},
            "resources/templates/list": {"resourceTemplates": []},
            "resources/read": {"contents": [{"uri": "blob://x", "blob": blob}]},
        }
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": answers.get(message["method"], {})}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def first_prompt(env):
    """Milliseconds until the REPL's prompt is on the terminal; the terminal answers the cursor query."""
    start = time.perf_counter()
    pid, master = pty.fork()
    if pid == 0:
        os.execve(BINARY, [BINARY], env)
    seen = b""
    while b"READY>" not in seen:
        if not select.select([master], [], [], 10)[0]:
            sys.exit(f"no prompt: {seen!r}")
        seen += os.read(master, 65536)
        if b"\x1b[6n" in seen:
            os.write(master, b"\x1b[1;1R")
            seen = seen.replace(b"\x1b[6n", b"")
    elapsed = (time.perf_counter() - start) * 1000
    os.write(master, b"\x04")
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    return elapsed


def show(what, values, unit):
    print(f"{what:<58} median {statistics.median(values):7.1f} {unit}   worst {max(values):7.1f} {unit}")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        env = environment(home, server.server_port)
        size = os.path.getsize(BINARY) / (1 << 20)
        print(f"{'size of the binary':<58} {size:.1f} MiB")
        measure("--version", ["--version"], env)
        measure("one-shot hello", ["hello"], env)
        measure("coyote demo </dev/null", ["demo"], env, 10, own_peak)
        servers = {f"demo{n}": {"command": BINARY, "args": ["demo-server"]} for n in range(4)}
        servers["silent"] = {"command": "sleep", "args": ["600"]}
        servers["blob"] = {"command": sys.executable, "args": [os.path.abspath(__file__), "--serve-blob"]}
        pathlib.Path(home, "config", "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        log = ["mcp", "read", "demo0", "demo://log"]
        measure("mcp read, a page in the middle of 2 MB", [*log, "--offset", "1000000"], env, 10, own_peak)
        measure("mcp read, a pattern in 2 MB", [*log, "--pattern", "ERROR"], env, 10, own_peak)
        measure("mcp read, 50 MB that are no text", ["mcp", "read", "blob", "blob://x"], env, 5, own_peak)
        del servers["blob"]
        pathlib.Path(home, "config", "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        show("first REPL prompt, five servers, one never answers", [first_prompt(env) for _ in range(RUNS)], "ms ")


if sys.argv[1:] == ["--serve-blob"]:
    serve_blob()
else:
    main()
