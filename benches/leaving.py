#!/usr/bin/env python3
"""How long a release build takes to let go: Ctrl-C, stubborn servers, a reader that is gone or does not read.

    cargo build --release --locked && cargo build --locked --example fake_mcp
    python3 benches/leaving.py [path/to/coyote [path/to/fake_mcp]]

Prints one line a figure with the median of the runs and the worst. It fails only when a run does not end at all or a
server outlives it: the figures are written down in docs/performance.md.
"""

import http.server
import json
import os
import pathlib
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/coyote")
FAKE = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "target/debug/examples/fake_mcp")
RUNS = 10
PATIENCE = 20


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers slowly for ever, at once and at length, or not at all, as the question asks."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if b"say nothing" in body:
            time.sleep(PATIENCE)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        short = b"say hello" in body
        pause, text = (0.02, "word ") if b"slowly" in body else (0, "word " * 200)
        try:
            for _ in range(1 if short else 20_000):
                event = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                time.sleep(pause)
            event = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode())
        except OSError:
            pass


class Home:
    def __init__(self, directory, port):
        self.directory = pathlib.Path(directory)
        self.config = self.directory / "config"
        self.config.mkdir()
        (self.config / "config.yaml").write_text(
            "model: local:m\nleft_prompt: 'READY> '\nclients:\n- type: openai-compatible\n  name: local\n"
            f"  api_base: http://127.0.0.1:{port}/v1\n  models:\n  - name: m\n"
        )
        self.pids = self.directory / "pids"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": directory,
            "TERM": "xterm-256color",
            "COYOTE_CONFIG_DIR": str(self.config),
            "COYOTE_CACHE_DIR": str(self.directory / "cache"),
            "FAKE_PIDS": str(self.pids),
        }

    def servers(self, scenarios):
        servers = {f"s{n}": {"command": FAKE, "args": [name]} for n, name in enumerate(scenarios)}
        (self.config / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    def outlived(self):
        """Servers and helpers that are still there."""
        if not self.pids.exists():
            return []
        pids = [int(pid) for pid in self.pids.read_text().split()]
        self.pids.unlink()
        deadline = time.monotonic() + 1
        alive = pids
        while alive and time.monotonic() < deadline:
            alive = [pid for pid in alive if running(pid)]
        return alive


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait(process):
    try:
        return process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit(f"{process.args} did not end")


def start(home, args, stdout=subprocess.PIPE):
    return subprocess.Popen(
        [BINARY, *args], env=home.env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.DEVNULL
    )


def mid_stream(home):
    """SIGINT after some of the answer has come."""
    process = start(home, ["slowly"])
    process.stdout.read(20)
    return interrupted(process)


def without_answer(home):
    """SIGINT while the provider says nothing."""
    process = start(home, ["say nothing"])
    time.sleep(0.3)
    return interrupted(process)


def connecting(home):
    """SIGINT while a server does not answer its handshake."""
    process = start(home, ["slowly"])
    while not home.pids.exists():
        time.sleep(0.01)
    time.sleep(0.2)
    return interrupted(process)


def blocked(home):
    """SIGINT while nobody reads the pipe that stdout is."""
    process = start(home, ["at length"])
    time.sleep(0.5)
    return interrupted(process)


def interrupted(process):
    begin = time.perf_counter()
    process.send_signal(signal.SIGINT)
    code = wait(process)
    elapsed = (time.perf_counter() - begin) * 1000
    if code != 130:
        sys.exit(f"{process.args} ended with {code}")
    return elapsed


def reader_gone(home):
    """From the moment the reader of stdout is gone."""
    process = start(home, ["slowly"])
    process.stdout.read(20)
    begin = time.perf_counter()
    process.stdout.close()
    if wait(process) != 0:
        sys.exit("a closed pipe is no failure")
    return (time.perf_counter() - begin) * 1000


def stdout_closed(home):
    """A whole run whose stdout was closed before it began."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$0" "$@" >&-', BINARY, "say hello"],
        env=home.env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait(process)
    return (time.perf_counter() - begin) * 1000


def whole_run(home):
    """A whole question with an answer of one word."""
    begin = time.perf_counter()
    process = start(home, ["say hello"])
    process.communicate(timeout=PATIENCE)
    return (time.perf_counter() - begin) * 1000


class Terminal:
    def __init__(self, home):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(BINARY, [BINARY], home.env)
        self.seen = b""

    def type(self, keys):
        os.write(self.master, keys)

    def wait(self, text):
        while text not in self.seen:
            if not select.select([self.master], [], [], PATIENCE)[0]:
                sys.exit(f"no {text!r}: {self.seen!r}")
            self.seen += os.read(self.master, 65536)
            if b"\x1b[6n" in self.seen:
                os.write(self.master, b"\x1b[1;1R")
                self.seen = self.seen.replace(b"\x1b[6n", b"")
        self.seen = b""

    def drain(self, seconds):
        """Reads what comes within that time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                os.read(self.master, 65536)

    def end(self):
        begin = time.perf_counter()
        self.type(b"\x04")
        try:
            while os.read(self.master, 65536):
                pass
        except OSError:
            pass
        os.waitpid(self.pid, 0)
        return (time.perf_counter() - begin) * 1000


def repl_mid_stream(home):
    """Ctrl-C while the answer streams in the REPL, until the prompt is back."""
    terminal = Terminal(home)
    terminal.wait(b"READY>")
    terminal.type(b"slowly\r")
    terminal.wait(b"word word")
    begin = time.perf_counter()
    terminal.type(b"\x03")
    terminal.wait(b"READY>")
    elapsed = (time.perf_counter() - begin) * 1000
    terminal.end()
    return elapsed


def repl_connecting(home):
    """Ctrl-C while a question waits for a server, until the prompt is back."""
    terminal = Terminal(home)
    terminal.wait(b"READY>")
    terminal.type(b"slowly\r")
    terminal.drain(0.5)
    begin = time.perf_counter()
    terminal.type(b"\x03")
    terminal.wait(b"READY>")
    elapsed = (time.perf_counter() - begin) * 1000
    terminal.end()
    return elapsed


def repl_leave(home):
    """Ctrl-D at the prompt, servers running."""
    terminal = Terminal(home)
    terminal.wait(b"READY>")
    while not home.pids.exists() or len(home.pids.read_text().split()) < 4:
        time.sleep(0.01)
    time.sleep(0.3)
    return terminal.end()


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    figures = [
        ("Ctrl-C mid-stream, one-shot", mid_stream, []),
        ("Ctrl-C before the answer begins, one-shot", without_answer, []),
        ("Ctrl-C while a server is connecting, one-shot", connecting, ["hang"]),
        ("Ctrl-C while nobody reads stdout, one-shot", blocked, []),
        ("Ctrl-C mid-stream, REPL: prompt is back", repl_mid_stream, []),
        ("Ctrl-C while a server is connecting, REPL: prompt is back", repl_connecting, ["hang"]),
        ("the reader of stdout goes away", reader_gone, []),
        ("one-shot with stdout closed", stdout_closed, []),
        ("one-shot with two servers that ignore EOF and SIGTERM", whole_run, ["ignore-term", "ignore-eof"]),
        ("leaving the REPL, two such servers", repl_leave, ["ignore-term", "ignore-term"]),
    ]
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    for what, measure, scenarios in figures:
        if wanted not in what:
            continue
        values = []
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as directory:
                home = Home(directory, server.server_port)
                home.servers(scenarios)
                values.append(measure(home))
                left = home.outlived()
                if left:
                    sys.exit(f"{what}: {left} outlived coyote")
        print(f"{what:<60} median {statistics.median(values):7.1f} ms   worst {max(values):7.1f} ms", flush=True)


main()
