//! MCP servers through `coyote mcp` and through a turn.
