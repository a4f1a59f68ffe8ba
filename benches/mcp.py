#!/usr/bin/env python3
"""Figures of the MCP layer with the scripted server: memory of a large read, many servers at once, one call.

    cargo build --release --locked && cargo build --release --locked --example fake_mcp
    python3 benches/mcp.py [directory with coyote and examples/fake_mcp]

Nothing is asserted: the figures and the machine they come from are written down in docs/performance.md.
"""

import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

BUILT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/release").resolve()
COYOTE, FAKE = str(BUILT / "coyote"), str(BUILT / "examples" / "fake_mcp")
RUNS = 10


def run(args, env, out=os.devnull):
    """Wall milliseconds and peak MiB of one run."""
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.execve(COYOTE, [COYOTE, *args], env)
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{args} failed")
    return (time.perf_counter() - start) * 1000, usage.ru_maxrss / 1024


def show(what, values, unit):
    print(f"{what:<58} median {statistics.median(values):8.1f} {unit}   worst {max(values):8.1f} {unit}")


def main():
    with tempfile.TemporaryDirectory() as home:
        config = pathlib.Path(home, "config")
        config.mkdir()
        env = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "COYOTE_CONFIG_DIR": str(config),
            "COYOTE_CACHE_DIR": str(pathlib.Path(home, "cache")),
            "COYOTE_LOCAL_URL": "http://127.0.0.1:1",
        }

        def servers(entries):
            (config / "mcp.json").write_text(json.dumps({"mcpServers": entries}))

        servers({"s": {"command": FAKE, "args": ["full"]}})
        for what, args in [
            ("start, one call, leave", ["mcp", "call", "s", "echo", "a=b"]),
            ("start, read of 1 MiB, leave", ["mcp", "read", "s", f"blob://size/{1 << 20}", "--json"]),
            ("start, read of 30 MiB, leave", ["mcp", "read", "s", f"blob://size/{30 << 20}", "--json"]),
            ("start, raw read of 30 MiB, leave", ["mcp", "read", "s", f"blob://size/{30 << 20}", "--raw"]),
        ]:
            runs = [run(args, env) for _ in range(RUNS)]
            show(f"{what}: wall", [wall for wall, _ in runs], "ms ")
            show(f"{what}: peak memory", [peak for _, peak in runs], "MiB")

        good = {f"good{n}": {"command": FAKE, "args": ["full"]} for n in range(40)}
        broken = {f"bad{n}": {"command": FAKE, "args": [mode], "startup_timeout": 1}
                  for n, mode in enumerate(["exit3", "init-error", "quits", "bad-version", "no-version"] * 2)}
        servers({**good, **broken})
        show("tools of 40 good servers beside 10 broken ones: wall",
             [run(["mcp", "tools", "--json"], env)[0] for _ in range(3)], "ms ")


main()
