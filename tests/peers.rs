//! Real MCP servers and a real model; `tests/peers/install.sh` brings them.
