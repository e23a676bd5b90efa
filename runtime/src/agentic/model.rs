//! Finds a model by its name.

use std::fmt;

use ptc_catalog::{Binding, Source};

/// A provider of models with an endpoint for OpenAI's chat completions.
#[derive(Debug)]
pub struct Provider {
    /// The name, which precedes the colon.
    pub name: &'static str,
    /// The URL without `/chat/completions`.
    pub base_url: &'static str,
    /// The source of the key, unless the operator names a credential.
    pub key: Option<Binding>,
    /// The member of a request that limits the tokens of the answer.
    pub cap: &'static str,
}

const fn provider(name: &'static str, base_url: &'static str, var: &'static str) -> Provider {
    Provider { name, base_url, key: Some(Binding { name, source: Source::Env { var } }), cap: CAP }
}

/// The usual name of the member that limits the tokens of the answer.
pub const CAP: &str = "max_tokens";

/// All providers with a name.
pub static PROVIDERS: [Provider; 6] = [
    provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    // OpenAI's newer models reject the older name of the limit.
    Provider { cap: "max_completion_tokens", ..provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY") },
    provider("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    provider("google", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Provider { name: "ollama", base_url: "http://127.0.0.1:11434/v1", key: None, cap: CAP },
];

/// Short names of models at OpenRouter.
static ALIASES: [(&str, &str); 8] = [
    ("deepseek", "deepseek/deepseek-chat-v3-0324"),
    ("devstral", "mistralai/devstral-2512:free"),
    ("gemini", "google/gemini-2.5-flash"),
    ("gemini-flash-lite", "google/gemini-3.1-flash-lite"),
    ("gpt", "openai/gpt-4.1-mini"),
    ("haiku", "anthropic/claude-haiku-4.5"),
    ("kimi", "moonshotai/kimi-k2"),
    ("sonnet", "anthropic/claude-sonnet-4.5"),
];

/// A model with its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name at the endpoint.
    pub id: String,
    /// The name in answers and logs: `provider:id`, or only the id at an endpoint of the operator.
    pub shown: String,
    /// The URL without `/chat/completions`.
    pub base_url: String,
    /// The member of a request that limits the tokens of the answer.
    pub cap: &'static str,
}

/// The error for an unknown name of a model.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let providers: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
        let aliases: Vec<&str> = ALIASES.iter().map(|(alias, _)| *alias).collect();
        write!(
            f,
            "--agentic-model: '{}' is neither an alias ({}) nor provider:model with a known provider ({}); a model elsewhere needs \
             --agentic-base-url",
            self.0,
            aliases.join(", "),
            providers.join(", ")
        )
    }
}

/// Returns the model with this name. Also returns its provider, unless `base_url` is set.
///
/// # Errors
///
/// Returns [`Unknown`] if `base_url` is `None` and the name is neither an alias nor `provider:model` with a known provider.
pub fn find(name: &str, base_url: Option<&str>) -> Result<(Model, Option<&'static Provider>), Unknown> {
    if let Some(base_url) = base_url {
        return Ok((Model { id: name.to_owned(), shown: name.to_owned(), base_url: base_url.to_owned(), cap: CAP }, None));
    }
    let alias = |name: &str| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, id)| *id);
    let (provider, id) = match (alias(name), name.split_once(':')) {
        (Some(id), _) => ("openrouter", id),
        (None, Some(("openrouter", id))) => ("openrouter", alias(id).unwrap_or(id)),
        (None, Some(parts)) => parts,
        (None, None) => return Err(Unknown(name.to_owned())),
    };
    let found = PROVIDERS.iter().find(|known| known.name == provider && !id.is_empty());
    let provider = found.ok_or_else(|| Unknown(name.to_owned()))?;
    let shown = format!("{}:{id}", provider.name);
    Ok((Model { id: id.to_owned(), shown, base_url: provider.base_url.to_owned(), cap: provider.cap }, Some(provider)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_are_resolved_to_endpoints() {
        for (name, shown, base_url) in [
            ("gemini-flash-lite", "openrouter:google/gemini-3.1-flash-lite", "https://openrouter.ai/api/v1"),
            ("openrouter:haiku", "openrouter:anthropic/claude-haiku-4.5", "https://openrouter.ai/api/v1"),
            ("openrouter:x/y:free", "openrouter:x/y:free", "https://openrouter.ai/api/v1"),
            ("ollama:qwen3:8b", "ollama:qwen3:8b", "http://127.0.0.1:11434/v1"),
        ] {
            let (model, provider) = find(name, None).unwrap();
            assert_eq!((model.shown.as_str(), model.base_url.as_str()), (shown, base_url));
            assert_eq!(model.shown, format!("{}:{}", provider.unwrap().name, model.id));
        }
        let (own, provider) = find("ollama:x", Some("http://127.0.0.1:1/v1")).unwrap();
        assert_eq!((own.id.as_str(), own.shown.as_str(), provider.is_none()), ("ollama:x", "ollama:x", true));
        for name in ["gpt-9", "unknown:gpt", "openai:"] {
            let said = find(name, None).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains("haiku") && said.contains("openrouter"), "{said}");
        }
    }
}
