//! The part of a config that a diagnostic is about, as fields for programs that read diagnostics.

/// The upstream, tool or operation of a diagnostic. Members that do not apply are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The name of the upstream in the config.
    pub upstream: Option<String>,
    /// The exposed name of the tool.
    pub tool: Option<String>,
    /// The operation of an OpenAPI document: its id, or its method and path.
    pub operation: Option<String>,
    /// The change of a pinned tool or upstream in words, without the name of the tool.
    pub change: Option<String>,
}

impl Subject {
    /// An upstream.
    pub fn upstream(name: &str) -> Subject {
        Subject { upstream: Some(name.to_owned()), ..Subject::default() }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, name: &str) -> Subject {
        Subject { tool: Some(name.to_owned()), ..self }
    }

    /// Adds an operation.
    #[must_use]
    pub fn operation(self, name: &str) -> Subject {
        Subject { operation: Some(name.to_owned()), ..self }
    }

    /// Adds a change.
    #[must_use]
    pub fn change(self, what: &str) -> Subject {
        Subject { change: Some(what.to_owned()), ..self }
    }

    /// Returns the present members by their names in machine-readable output.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields =
            [("upstream", &self.upstream), ("tool", &self.tool), ("operation", &self.operation), ("change", &self.change)];
        fields.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}
