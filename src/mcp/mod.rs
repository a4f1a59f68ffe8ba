//! Everything that knows MCP: names, configuration, connections, the catalog and the content policy.
