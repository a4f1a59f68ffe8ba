#!/usr/bin/env bash
# Runs the peer suite: installs the peers, starts the model server on a free port, runs the ignored tests, stops it.
# Arguments go to the test binary, for example a test's name.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
export COYOTE_PEERS_DIR=${COYOTE_PEERS_DIR:-$here/.cache}
bash "$here/install.sh"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
log=$COYOTE_PEERS_DIR/llama-server.log
server=$(echo "$COYOTE_PEERS_DIR"/llama/*/bin/llama-server)
"$server" -m "$COYOTE_PEERS_DIR/llama/model.gguf" --alias smol --host 127.0.0.1 --port "$port" \
  --jinja --chat-template-file "$here/tools.jinja" -c 4096 -t 2 --parallel 1 --slots --no-webui > "$log" 2>&1 &
pid=$!
trap 'kill "$pid" 2>/dev/null || true' EXIT

python3 - "$port" "$pid" <<'PYTHON' || { tail -n 20 "$log" >&2; exit 1; }
import os, sys, time, urllib.request

port, pid = sys.argv[1:]
for _ in range(600):
    try:
        if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status == 200:
            sys.exit(0)
    except OSError:
        pass
    try:
        os.kill(int(pid), 0)
    except OSError:
        sys.exit("the model server ended")
    time.sleep(0.1)
sys.exit("the model server did not become healthy")
PYTHON

export COYOTE_PEER_LLM=http://127.0.0.1:$port
cd "$here/../.."
cargo test --locked --test peers -- --ignored "$@"
