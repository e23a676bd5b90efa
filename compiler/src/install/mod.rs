//! Edits the configs of MCP clients.
