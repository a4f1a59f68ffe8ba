//! A scripted MCP server for the tests.

fn main() {}
