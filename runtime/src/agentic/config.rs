//! The config file: numbers of turns, and texts around the planner's prompt.

use std::path::Path;

use serde_json::{Map, Value};

const KEYS: [&str; 3] = ["max_turns", "retry_turns", "system_prompt"];
const PROMPT_KEYS: [&str; 2] = ["prefix", "suffix"];
/// Members that the server decides itself. Their use is an error with an explanation.
const RESERVED: [&str; 6] = ["tools", "signature", "output", "ptc_transport", "completion_mode", "trace_context"];
/// Maximum bytes of a prefix or suffix.
const PROMPT_BYTES: usize = 4096;
/// Maximum number of turns of either kind.
const MAX_TURNS: u64 = 100;

/// The content of a config file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of programs that the planner may write.
    pub max_turns: Option<u32>,
    /// Number of additional programs after an error.
    pub retry_turns: Option<u32>,
    /// Text before the prompt.
    pub prefix: Option<String>,
    /// Text after the prompt.
    pub suffix: Option<String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns a sentence for each fault: the file cannot be read or is not a JSON object, or it has a key that is unknown,
    /// reserved or of an invalid value.
    pub fn read(path: &Path) -> Result<Config, Vec<String>> {
        let say = |faults: Vec<String>| {
            faults.into_iter().map(|fault| format!("--agentic-subagent-config {}: {fault}", path.display())).collect()
        };
        let text = std::fs::read_to_string(path).map_err(|why| say(vec![why.to_string()]))?;
        Config::parse(&text).map_err(say)
    }

    fn parse(text: &str) -> Result<Config, Vec<String>> {
        let members = match serde_json::from_str(text) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err(vec!["expected a JSON object".to_owned()]),
            Err(why) => return Err(vec![format!("expected JSON: {why}")]),
        };
        let mut faults = Vec::new();
        for key in members.keys() {
            if RESERVED.contains(&key.as_str()) || key.starts_with('_') {
                faults.push(format!("`{key}` is reserved: the server settles it; {}", allowed(&KEYS)));
            } else if !KEYS.contains(&key.as_str()) {
                faults.push(format!("unknown key `{key}`; {}", allowed(&KEYS)));
            }
        }
        let config = Config {
            max_turns: turns(&members, "max_turns", 1, &mut faults),
            retry_turns: turns(&members, "retry_turns", 0, &mut faults),
            ..Config::default()
        };
        let config = match members.get("system_prompt") {
            None | Some(Value::Null) => config,
            Some(Value::Object(slots)) => {
                for key in slots.keys().filter(|key| !PROMPT_KEYS.contains(&key.as_str())) {
                    faults.push(format!("unknown key `system_prompt.{key}`; {}", allowed(&PROMPT_KEYS)));
                }
                Config { prefix: slot(slots, "prefix", &mut faults), suffix: slot(slots, "suffix", &mut faults), ..config }
            }
            Some(_) => {
                faults.push("`system_prompt`: expected an object or null".to_owned());
                config
            }
        };
        if faults.is_empty() { Ok(config) } else { Err(faults) }
    }
}

fn allowed(keys: &[&str]) -> String {
    format!("allowed are {}", keys.join(", "))
}

fn turns(members: &Map<String, Value>, key: &str, least: u64, faults: &mut Vec<String>) -> Option<u32> {
    let value = members.get(key)?;
    let turns = value.as_u64().filter(|turns| (least..=MAX_TURNS).contains(turns));
    if turns.is_none() {
        faults.push(format!("`{key}`: expected an integer from {least} to {MAX_TURNS}, found {value}"));
    }
    turns.map(|turns| turns as u32)
}

fn slot(slots: &Map<String, Value>, key: &str, faults: &mut Vec<String>) -> Option<String> {
    match slots.get(key)? {
        Value::Null => None,
        Value::String(text) if text.len() <= PROMPT_BYTES => Some(text.clone()),
        Value::String(text) => {
            faults.push(format!("`system_prompt.{key}`: {} bytes, {PROMPT_BYTES} are allowed", text.len()));
            None
        }
        _ => {
            faults.push(format!("`system_prompt.{key}`: expected a string or null"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_config_is_parsed() {
        let text = r#"{"max_turns": 2, "retry_turns": 1, "system_prompt": {"prefix": "P", "suffix": null}}"#;
        let config = Config { max_turns: Some(2), retry_turns: Some(1), prefix: Some("P".into()), suffix: None };
        assert_eq!(Config::parse(text), Ok(config));
        assert_eq!(Config::parse(r#"{"system_prompt": null}"#), Ok(Config::default()));
    }

    #[test]
    fn every_fault_of_a_config_is_reported() {
        let text = format!(
            r#"{{"max_turns": 0, "retry_turns": "1", "tools": [], "_x": 1, "model": "m",
                 "system_prompt": {{"prefix": 1, "suffix": "{}", "middle": ""}}}}"#,
            "x".repeat(5000)
        );
        let mut faults = Config::parse(&text).unwrap_err();
        faults.sort();
        let keys = "allowed are max_turns, retry_turns, system_prompt";
        let expected = [
            format!("`_x` is reserved: the server settles it; {keys}"),
            "`max_turns`: expected an integer from 1 to 100, found 0".into(),
            "`retry_turns`: expected an integer from 0 to 100, found \"1\"".into(),
            "`system_prompt.prefix`: expected a string or null".into(),
            "`system_prompt.suffix`: 5000 bytes, 4096 are allowed".into(),
            format!("`tools` is reserved: the server settles it; {keys}"),
            format!("unknown key `model`; {keys}"),
            "unknown key `system_prompt.middle`; allowed are prefix, suffix".into(),
        ];
        assert_eq!(faults, expected);
        assert_eq!(Config::parse("[1]").unwrap_err(), ["expected a JSON object"]);
        assert!(Config::parse("{").unwrap_err().concat().starts_with("expected JSON: "));
        assert_eq!(Config::parse(r#"{"system_prompt": 1}"#).unwrap_err(), ["`system_prompt`: expected an object or null"]);
    }
}
