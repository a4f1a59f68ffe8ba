#!/usr/bin/env python3
"""Whole-process figures of a release build: time, CPU and memory of the things a person waits for.

    cargo build --release --locked && python3 benches/process.py [path/to/coyote]

Prints one line a figure with the median of the runs and the worst. Nothing here is asserted: the figures and the
machine they come from are written down in docs/performance.md.
"""

import http.server
import json
import os
import pathlib
import pty
import select
import statistics
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
    """Wall milliseconds, CPU milliseconds and peak MiB of one run."""
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execve(BINARY, [BINARY, *args], env)
    _, status, usage = os.wait4(pid, 0)
    wall = (time.perf_counter() - start) * 1000
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{args} failed")
    return wall, (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024


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
        for what, args in [("--version", ["--version"]), ("one-shot hello", ["hello"])]:
            runs = [run(args, env) for _ in range(RUNS)]
            show(f"{what}: wall", [wall for wall, _, _ in runs], "ms ")
            show(f"{what}: CPU", [cpu for _, cpu, _ in runs], "ms ")
            show(f"{what}: peak memory", [peak for _, _, peak in runs], "MiB")
        servers = {f"demo{n}": {"command": BINARY, "args": ["demo-server"]} for n in range(4)}
        servers["silent"] = {"command": "sleep", "args": ["600"]}
        pathlib.Path(home, "config", "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        show("first REPL prompt, five servers, one never answers", [first_prompt(env) for _ in range(RUNS)], "ms ")


main()
