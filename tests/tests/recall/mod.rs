//! Measures how often `apropos` finds a tool that answers a question, compared with plain BM25 over the same texts, on catalogs
//! of published servers and documents. The ranking is tuned on about three quarters of `questions.tsv`, `blind.tsv` and
//! `paraphrased.tsv`, chosen by a hash. The other questions, and all of `fresh.tsv`, are held out and counted separately.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers;
use ptc_tests::process::run;
use serde_json::{Value, json};
use tempfile::TempDir;

const QUESTIONS: &str = include_str!("questions.tsv");
const BLIND: &str = include_str!("blind.tsv");
const FRESH: &str = include_str!("fresh.tsv");
const PARAPHRASED: &str = include_str!("paraphrased.tsv");

/// How lists of published MCP servers are paged, labelled by hand.
const MCP_PAGING: &str = include_str!("../../../compiler/tests/paging/mcp.tsv");

/// Numbers of first results in which a tool counts as found.
const DEPTHS: [usize; 3] = [3, 5, 10];

/// MCP servers from npm: name, file of the package, arguments, and a variable that must be set for the server to start.
const NPM: [(&str, &str, &[&str], &str); 13] = [
    ("devtools", "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", &[], ""),
    ("everything", "@modelcontextprotocol/server-everything/dist/index.js", &[], ""),
    ("filesystem", "@modelcontextprotocol/server-filesystem/dist/index.js", &["."], ""),
    ("firecrawl", "firecrawl-mcp/dist/index.js", &[], "FIRECRAWL_API_KEY"),
    ("github", "@modelcontextprotocol/server-github/dist/index.js", &[], "GITHUB_PERSONAL_ACCESS_TOKEN"),
    ("gitlab", "@zereight/mcp-gitlab/build/index.js", &[], "GITLAB_PERSONAL_ACCESS_TOKEN"),
    ("maps", "@modelcontextprotocol/server-google-maps/dist/index.js", &[], "GOOGLE_MAPS_API_KEY"),
    ("memory", "@modelcontextprotocol/server-memory/dist/index.js", &[], ""),
    ("notion", "@notionhq/notion-mcp-server/bin/cli.mjs", &[], "NOTION_TOKEN"),
    ("playwright", "@playwright/mcp/cli.js", &[], ""),
    ("slack", "@modelcontextprotocol/server-slack/dist/index.js", &[], "SLACK_BOT_TOKEN"),
    ("tavily", "tavily-mcp/build/index.js", &[], "TAVILY_API_KEY"),
    ("thinking", "@modelcontextprotocol/server-sequential-thinking/dist/index.js", &[], ""),
];

/// MCP servers from PyPI: name and module.
const PYTHON: [(&str, &str); 2] = [("git", "mcp_server_git"), ("time", "mcp_server_time")];

/// OpenAPI documents: name and file of the npm package.
const DOCUMENTS: [(&str, &str); 3] = [
    ("directus", "@directus/specs/dist/openapi.json"),
    ("readme", "@readme/oas-examples/3.1/json/readme.json"),
    ("startrek", "@readme/oas-examples/3.0/json/star-trek.json"),
];

fn upstreams() -> Value {
    let mut all = serde_json::Map::new();
    for (name, file, args, variable) in NPM {
        let mut command = vec![peers::npm_file(file).display().to_string()];
        command.extend(args.iter().map(|arg| (*arg).to_owned()));
        let env = if variable.is_empty() { json!({}) } else { json!({ variable: "unused", "SLACK_TEAM_ID": "unused" }) };
        let entry = json!({
            "transport": "mcp_stdio", "command": "node", "args": command, "env": env, "handshake_timeout_ms": 120_000
        });
        all.insert(name.to_owned(), entry);
    }
    for (name, module) in PYTHON {
        let python = peers::python_program("python").get_program().to_string_lossy().into_owned();
        let args = ["-m", module];
        let entry = json!({ "transport": "mcp_stdio", "command": python, "args": args, "handshake_timeout_ms": 120_000 });
        all.insert(name.to_owned(), entry);
    }
    for (name, file) in DOCUMENTS {
        let document = peers::npm_file(file);
        let entry = json!({
            "transport": "openapi", "schema_file": document, "include_operations": ["*"],
            "base_url": "http://127.0.0.1:9", "allow_insecure_http": true, "auth": [],
        });
        all.insert(name.to_owned(), entry);
    }
    json!({ "upstreams": all })
}

/// The sets of questions in the order of the report, with the minimum percentage of found tools at each depth.
const SETS: [(&str, [f64; 3]); 7] = [
    ("tuned", [0.0, 90.0, 96.0]),
    ("held out", [0.0, 90.0, 96.0]),
    ("blind, tuned", [88.0, 93.0, 96.0]),
    ("blind, held out", [75.0, 83.0, 89.0]),
    ("fresh", [85.0, 92.0, 95.0]),
    ("paraphrased, tuned", [81.0, 88.0, 92.0]),
    ("paraphrased, held out", [60.0, 68.0, 76.0]),
];

struct Question {
    text: &'static str,
    answers: Vec<&'static str>,
    /// The name of one of [`SETS`].
    set: &'static str,
}

impl Question {
    fn all() -> Vec<Question> {
        let lines = |text: &'static str| text.lines().filter(|line| !line.starts_with('#'));
        let question = |line: &'static str, [tuned, held_out]: [&'static str; 2], divisor: u64| {
            let (text, answers) = line.split_once('\t').unwrap_or_else(|| panic!("no tab in {line:?}"));
            let set = if hash(text).is_multiple_of(divisor) { held_out } else { tuned };
            Question { text, answers: answers.split(' ').collect(), set }
        };
        let known = lines(QUESTIONS).map(|line| question(line, ["tuned", "held out"], 4));
        // Every second question was tuned on before the quarter was chosen, which therefore comes from the others.
        let blind = lines(BLIND).zip([2, u64::MAX].into_iter().cycle());
        let blind = blind.map(|(line, divisor)| question(line, ["blind, tuned", "blind, held out"], divisor));
        let fresh = lines(FRESH).map(|line| question(line, ["fresh", "fresh"], 1));
        let paraphrased = lines(PARAPHRASED).map(|line| question(line, ["paraphrased, tuned", "paraphrased, held out"], 4));
        known.chain(blind).chain(fresh).chain(paraphrased).collect()
    }

    fn is_answered(&self, found: &[String], depth: usize) -> bool {
        found.iter().take(depth).any(|tool| self.answers.contains(&tool.as_str()))
    }
}

/// Returns the FNV-1a hash of a text, which selects the questions that are held out.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns lower-case words. Names are split where an upper-case letter follows a lower-case letter.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut before) = (Vec::new(), String::new(), ' ');
    for c in text.chars().chain([' ']) {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

/// Okapi BM25 with the usual constants, over all words of a document.
struct Bm25 {
    names: Vec<String>,
    documents: Vec<BTreeMap<String, f64>>,
    frequencies: HashMap<String, f64>,
    average: f64,
}

impl Bm25 {
    /// Builds the index from the output of `--emit docs`, which has a heading for each upstream and a paragraph for each tool.
    fn new(docs: &str) -> Bm25 {
        let (mut names, mut documents, mut frequencies, mut about) = (Vec::new(), Vec::new(), HashMap::new(), String::new());
        for paragraph in docs.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            let Some((name, rest)) =
                paragraph.split_once("\nargs: ").map(|(head, rest)| (head.lines().next().unwrap_or(head), (head, rest)))
            else {
                match paragraph.strip_prefix("# ") {
                    Some(upstream) => upstream.clone_into(&mut about),
                    None => about = format!("{about} {paragraph}"),
                }
                continue;
            };
            let notes: Vec<&str> = rest.1.lines().filter(|line| line.starts_with("  ")).collect();
            let text = format!("{about} {} {} {}", rest.0, rest.1.lines().next().unwrap_or_default(), notes.join(" "));
            let mut document: BTreeMap<String, f64> = BTreeMap::new();
            for word in words(&text) {
                *document.entry(word).or_default() += 1.0;
            }
            for word in document.keys() {
                *frequencies.entry(word.clone()).or_default() += 1.0;
            }
            names.push(name.to_owned());
            documents.push(document);
        }
        let length: f64 = documents.iter().flat_map(BTreeMap::values).sum();
        Bm25 { average: length / documents.len() as f64, names, documents, frequencies }
    }

    fn search(&self, query: &str) -> Vec<String> {
        let count = self.documents.len() as f64;
        let mut found: Vec<(f64, &String)> = Vec::new();
        for (document, name) in self.documents.iter().zip(&self.names) {
            let length: f64 = document.values().sum();
            let score: f64 = words(query)
                .iter()
                .filter_map(|word| {
                    let (often, documents) = (document.get(word)?, self.frequencies.get(word)?);
                    let rarity = (1.0 + (count - documents + 0.5) / (documents + 0.5)).ln();
                    Some(rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length / self.average)))
                })
                .sum();
            found.push((score, name));
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().filter(|(score, _)| *score > 0.0).take(10).map(|(_, name)| name.clone()).collect()
    }
}

/// Returns the names of the tools that `apropos` finds for each query. A server over the frozen catalog evaluates it.
fn ask<'a>(folder: &Path, queries: impl Iterator<Item = &'a str>) -> Vec<Vec<String>> {
    let mut command = Command::new(ptc_compile());
    command.args(["run"]).arg(folder.join("upstreams.json")).current_dir(folder);
    let mut server = Client::of(&mut command);
    server.initialize();
    let mut answers = Vec::new();
    for query in queries {
        // The result is one line of names separated by spaces. A line of `apropos` is `upstream/tool - description`.
        let program = format!(
            r#"(clojure.string/join " " (map (fn [line] (first (clojure.string/split line #" "))) (apropos {} {{:limit 10}})))"#,
            json!(query)
        );
        let answer = server.eval(&program);
        let text = answer.trim_start_matches("user=> ").trim_matches('"');
        answers.push(text.split(' ').map(str::to_owned).collect());
    }
    server.finish();
    answers
}

/// A folder with the config and its lock file, and the texts of `doc`.
struct Frozen {
    folder: TempDir,
    docs: String,
}

/// Lists the tools of all upstreams, once for all tests.
fn frozen() -> &'static Frozen {
    static FROZEN: OnceLock<Frozen> = OnceLock::new();
    FROZEN.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("upstreams.json");
        std::fs::write(&config, upstreams().to_string()).expect("a config");
        run(Command::new("git").args(["init", "--quiet"]).current_dir(folder.path())).success();
        run(Command::new(ptc_compile()).arg("update").arg(&config).current_dir(folder.path())).success();
        let emit = ["--locked", "--emit", "docs"];
        let docs = run(Command::new(ptc_compile()).arg(&config).args(emit).current_dir(folder.path())).success();
        Frozen { folder, docs }
    })
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn calls_that_doc_shows_of_published_tools_are_valid() {
    let Frozen { folder, docs } = frozen();
    let calls: Vec<&str> = docs.lines().filter_map(|line| line.strip_prefix("call: ")).collect();
    assert!(calls.len() > 400, "{} calls", calls.len());
    // A check reports a bounded number of findings, so the calls are split over several files.
    let files: Vec<String> = (0..)
        .zip(calls.chunks(40))
        .map(|(at, some)| {
            let file = format!("calls_{at}.clj");
            std::fs::write(folder.path().join(&file), some.join("\n")).expect("written");
            file
        })
        .collect();
    let mut command = Command::new(ptc_compile());
    command.args(["check-program", "upstreams.json"]).args(files).current_dir(folder.path());
    let output = command.output().expect("ptc-compile runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let refused: Vec<&str> = said.lines().filter(|line| line.starts_with("error")).collect();
    // `doc` does not generate strings that match a pattern, so these failures are expected.
    let (patterns, wrong): (Vec<&str>, Vec<&str>) = refused.iter().partition(|line| line.contains("must match the pattern"));
    println!("of {} calls {} need a text that matches a pattern", calls.len(), patterns.len());
    assert!(wrong.is_empty() && patterns.len() * 20 < calls.len(), "{}\n{}", wrong.join("\n"), patterns.join("\n"));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn texts_of_doc_on_published_tools_stay_within_budget() {
    let texts: Vec<&str> = frozen().docs.split("\n\n").filter(|text| text.contains("\ncall: ")).collect();
    let mut sizes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
    sizes.sort_unstable();
    println!("bytes of {} texts: median {}, longest {:?}", sizes.len(), sizes[sizes.len() / 2], sizes.last());
    assert!(sizes.last().is_some_and(|longest| *longest <= 10_000) && sizes[sizes.len() / 2] <= 1_200, "{sizes:?}");
    let with = |words: &str| texts.iter().filter(|text| text.contains(words)).count();
    for (words, least) in
        [("\npages: ", 30), ("\nresult:\n", 30), (" one of ", 100), ("; default ", 20), (" matches ", 10), ("format ", 30)]
    {
        assert!(with(words) >= least, "{words:?} is in {} texts", with(words));
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn paging_of_published_tools_is_as_labelled() {
    let texts: HashMap<&str, &str> = frozen().docs.split("\n\n").filter_map(|text| text.trim_start().split_once('\n')).collect();
    let labels: Vec<Vec<&str>> = MCP_PAGING.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!(labels.len(), 8);
    for label in &labels {
        let [tool, pageable, items, ..] = label[..] else { panic!("{label:?}") };
        let text = texts.get(tool).unwrap_or_else(|| panic!("{tool} does not exist"));
        // A list that is declared without a type may be left to the first answer.
        let inferred = text.lines().find_map(|line| line.strip_prefix("pages: items in "));
        let is_right = inferred.is_none_or(|pages| pageable == "yes" && pages.starts_with(&format!("{items},")));
        assert!(is_right, "{tool}: {inferred:?}");
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn exact_name_of_tool_finds_it_first() {
    let Frozen { folder, docs } = frozen();
    let names = Bm25::new(docs).names;
    let found = ask(folder.path(), names.iter().map(String::as_str));
    for (name, found) in names.iter().zip(&found) {
        assert_eq!(found.first(), Some(name), "{name}");
    }
    // Tools of several upstreams may have the same name.
    let found = ask(folder.path(), names.iter().filter_map(|name| name.rsplit('/').next()));
    let squashed = |name: &str| name.rsplit('/').next().unwrap_or(name).replace(['-', '_'], "").to_lowercase();
    for (name, found) in names.iter().zip(&found) {
        assert_eq!(found.first().map(|first| squashed(first)), Some(squashed(name)), "{name}");
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn apropos_finds_tools_more_often_than_bm25() {
    let Frozen { folder, docs } = frozen();
    let baseline = Bm25::new(docs);
    assert!(baseline.names.len() > 400, "{} tools", baseline.names.len());

    let questions = Question::all();
    assert!(questions.len() >= 200, "{} questions", questions.len());
    for question in &questions {
        for answer in &question.answers {
            assert!(baseline.names.iter().any(|name| name == answer), "{answer} answers {:?} and does not exist", question.text);
        }
    }
    let catalogs: std::collections::BTreeSet<&str> =
        questions.iter().flat_map(|question| &question.answers).filter_map(|answer| answer.split('/').next()).collect();
    assert!(catalogs.len() >= 10, "{catalogs:?}");

    let ours = ask(folder.path(), questions.iter().map(|question| question.text));
    let theirs: Vec<Vec<String>> = questions.iter().map(|question| baseline.search(question.text)).collect();
    let mut report = String::new();
    let mut misses = String::new();
    for (set, floors) in SETS {
        let members: Vec<usize> = (0..questions.len()).filter(|at| questions[*at].set == set).collect();
        for (depth, least) in DEPTHS.into_iter().zip(floors) {
            let share = |found: &[Vec<String>]| {
                let answered = members.iter().filter(|at| questions[**at].is_answered(&found[**at], depth)).count();
                100.0 * answered as f64 / members.len() as f64
            };
            let (of_ours, of_theirs) = (share(&ours), share(&theirs));
            let _ = writeln!(report, "{set}, {} questions, at {depth}: {of_ours:.1} %, BM25 {of_theirs:.1} %", members.len());
            if of_ours < least || of_ours <= of_theirs {
                let _ = writeln!(misses, "{set} at {depth}: {of_ours:.1} % (least {least} %, above {of_theirs:.1} %)");
            }
        }
    }
    println!("{report}");
    // Only questions that may be used for tuning are shown.
    for (question, found) in
        questions.iter().zip(&ours).filter(|(question, found)| question.set.ends_with("tuned") && !question.is_answered(found, 5))
    {
        println!("not among five: {} -> {}", question.text, found.join(" "));
    }
    assert!(misses.is_empty(), "{misses}\n{report}");
}
