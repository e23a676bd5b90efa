//! The MCP clients whose configs `import` reads and `install` edits: where their files are, and where servers are in them.

/// An MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the product of that name")]
pub enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Windsurf,
    Zed,
    Gemini,
    Codex,
    Goose,
    Continue,
    PtcRunner,
}

/// The language of a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON with comments and trailing commas
    Json,
    /// TOML
    Toml,
    /// YAML
    Yaml,
}

/// A folder in which a client keeps its config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The folder of the project
    Project,
    /// The home of the user
    Home,
    /// `$XDG_CONFIG_HOME`, or `.config` in the home of the user
    ConfigHome,
    /// `Library/Application Support` in the home of the user, on macOS
    AppSupport,
    /// `%APPDATA%`, on Windows
    AppData,
    /// `$CODEX_HOME`, or `.codex` in the home of the user
    CodexHome,
}

/// The row of a client.
#[derive(Debug)]
pub struct Row {
    /// The client.
    pub client: Client,
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name in messages.
    pub label: &'static str,
    /// The language of its config.
    pub format: Format,
    /// Its files, those of a project first. A name that ends in `/` is a folder of files.
    pub files: &'static [(Base, &'static str)],
    /// The paths of the keys under which servers are; `*` is any key. The first is the one into which `install` writes.
    pub sections: &'static [&'static [&'static str]],
}

use Base::{AppData, AppSupport, CodexHome, ConfigHome, Home, Project};

/// All clients.
pub const CLIENTS: &[Row] = &[
    Row {
        client: Client::ClaudeDesktop,
        name: "claude-desktop",
        label: "Claude Desktop",
        format: Format::Json,
        files: &[
            (AppSupport, "Claude/claude_desktop_config.json"),
            (AppData, "Claude/claude_desktop_config.json"),
            (ConfigHome, "Claude/claude_desktop_config.json"),
        ],
        sections: &[&["mcpServers"]],
    },
    Row {
        client: Client::ClaudeCode,
        name: "claude-code",
        label: "Claude Code",
        format: Format::Json,
        files: &[(Project, ".mcp.json"), (Home, ".claude.json")],
        sections: &[&["mcpServers"], &["projects", "*", "mcpServers"]],
    },
    Row {
        client: Client::Cursor,
        name: "cursor",
        label: "Cursor",
        format: Format::Json,
        files: &[(Project, ".cursor/mcp.json"), (Home, ".cursor/mcp.json")],
        sections: &[&["mcpServers"]],
    },
    Row {
        client: Client::VsCode,
        name: "vscode",
        label: "VS Code",
        format: Format::Json,
        files: &[
            (Project, ".vscode/mcp.json"),
            (Project, ".vscode/settings.json"),
            (AppSupport, "Code/User/mcp.json"),
            (AppSupport, "Code/User/settings.json"),
            (AppData, "Code/User/mcp.json"),
            (AppData, "Code/User/settings.json"),
            (ConfigHome, "Code/User/mcp.json"),
            (ConfigHome, "Code/User/settings.json"),
        ],
        sections: &[&["servers"], &["mcp", "servers"], &["mcp.servers"]],
    },
    Row {
        client: Client::Windsurf,
        name: "windsurf",
        label: "Windsurf",
        format: Format::Json,
        files: &[(Home, ".codeium/windsurf/mcp_config.json")],
        sections: &[&["mcpServers"]],
    },
    Row {
        client: Client::Zed,
        name: "zed",
        label: "Zed",
        format: Format::Json,
        files: &[(Project, ".zed/settings.json"), (AppData, "Zed/settings.json"), (ConfigHome, "zed/settings.json")],
        sections: &[&["context_servers"]],
    },
    Row {
        client: Client::Gemini,
        name: "gemini",
        label: "Gemini CLI",
        format: Format::Json,
        files: &[(Project, ".gemini/settings.json"), (Home, ".gemini/settings.json")],
        sections: &[&["mcpServers"]],
    },
    Row {
        client: Client::Codex,
        name: "codex",
        label: "Codex",
        format: Format::Toml,
        files: &[(Project, ".codex/config.toml"), (CodexHome, "config.toml")],
        sections: &[&["mcp_servers"]],
    },
    Row {
        client: Client::Goose,
        name: "goose",
        label: "Goose",
        format: Format::Yaml,
        files: &[(AppData, "Block/goose/config/config.yaml"), (ConfigHome, "goose/config.yaml")],
        sections: &[&["extensions"]],
    },
    Row {
        client: Client::Continue,
        name: "continue",
        label: "Continue",
        format: Format::Yaml,
        files: &[(Project, ".continue/mcpServers/"), (Home, ".continue/config.yaml"), (Home, ".continue/config.json")],
        sections: &[
            &["mcpServers"],
            &["experimental", "modelContextProtocolServers"],
            &["experimental", "modelContextProtocolServer"],
        ],
    },
    Row {
        client: Client::PtcRunner,
        name: "ptc-runner",
        label: "PtcRunner",
        format: Format::Json,
        files: &[(ConfigHome, "ptc_runner_mcp/upstreams.json")],
        sections: &[&["upstreams"]],
    },
];

impl Client {
    /// Returns the row of the client.
    pub fn row(self) -> &'static Row {
        static NONE: Row =
            Row { client: Client::ClaudeCode, name: "", label: "", format: Format::Json, files: &[], sections: &[] };
        CLIENTS.iter().find(|row| row.client == self).unwrap_or(&NONE)
    }

    /// Returns the client of a path, if its name belongs to one client alone.
    pub fn of_path(path: &str) -> Option<Client> {
        let path = path.replace('\\', "/");
        let ends = |end: &str| path == end || path.ends_with(&format!("/{end}"));
        let in_folder = |folder: &str| path.contains(&format!("/{folder}")) || path.starts_with(folder);
        let matches = |(_, file): &(Base, &str)| if file.ends_with('/') { in_folder(file) } else { ends(file) };
        // `config.toml` in `$CODEX_HOME` is found by its content.
        let rows = CLIENTS.iter().filter(|row| row.client != Client::Codex);
        rows.into_iter().find(|row| row.files.iter().any(matches)).map(|row| row.client)
    }
}
