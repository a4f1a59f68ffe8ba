//! The built-in MCP server of `coyote demo`.
