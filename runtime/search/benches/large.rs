//! Measures an index of 5,000 tools: the time to build it, and the time of a search. The index must take at most 20 ms, and a
//! search at most 200 µs. `cargo bench -p ptc-search`
#![expect(clippy::print_stdout, reason = "the benchmark prints figures")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ptc_catalog::{Annotations, Arg, Catalog, McpStdio, Tool, Tools, Transport, Types, Upstream};
use ptc_search::{Index, Query, index_of};

const UPSTREAMS: usize = 50;
const TOOLS: usize = 100;

const VERBS: [&str; 12] =
    ["list", "get", "create", "update", "delete", "search", "read", "write", "export", "cancel", "assign", "merge"];

/// Common words of descriptions.
const COMMON: [&str; 48] = [
    "the",
    "of",
    "a",
    "to",
    "and",
    "in",
    "for",
    "with",
    "by",
    "is",
    "be",
    "this",
    "that",
    "on",
    "or",
    "from",
    "are",
    "all",
    "only",
    "which",
    "returned",
    "results",
    "name",
    "given",
    "list",
    "number",
    "users",
    "files",
    "ID",
    "optional",
    "pages",
    "specified",
    "default",
    "filter",
    "created",
    "project",
    "URL",
    "requests",
    "fields",
    "items",
    "returns",
    "matching",
    "settings",
    "token",
    "updated",
    "issues",
    "values",
    "maximum",
];

/// Parts of rare words, which are about 4,000.
const BEGINNINGS: [&str; 40] = [
    "account", "agree", "alloc", "anno", "archiv", "bal", "branch", "bucket", "calend", "categ", "chan", "clust", "commit",
    "contain", "contract", "custom", "deploy", "depend", "direct", "document", "employ", "environ", "estim", "formul", "gener",
    "graph", "invoic", "label", "local", "member", "migr", "network", "notif", "order", "percent", "permiss", "pipe", "reposit",
    "schedul", "ship",
];
const MIDDLES: [&str; 10] = ["", "er", "al", "at", "or", "iv", "en", "ic", "ul", "om"];
const ENDINGS: [&str; 10] = ["", "s", "ing", "ed", "ation", "ments", "ity", "able", "izes", "ly"];

/// A generator of pseudo-random numbers, so that each run measures the same texts.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of.get(self.below(of.len())).copied().unwrap_or_default()
    }

    /// Returns a rare word. Beginnings differ in their frequency, as words do.
    fn rare(&mut self) -> String {
        let few = self.below(BEGINNINGS.len()) + 1;
        let beginning = self.one(BEGINNINGS.get(..few).unwrap_or_default());
        [beginning, self.one(&MIDDLES), self.one(&ENDINGS)].concat()
    }

    /// Returns a sentence of words, of which one in two is common.
    fn sentence(&mut self, words: usize) -> String {
        let word = |random: &mut Random| match random.below(2) {
            0 => random.one(&COMMON).to_owned(),
            _ => random.rare(),
        };
        let mut text = (0..words).map(|_| word(self)).collect::<Vec<_>>().join(" ");
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        text + "."
    }

    fn sentences(&mut self, most: usize) -> String {
        let count = 1 + self.below(most);
        (0..count).map(|_| self.phrase()).collect::<Vec<_>>().join(" ")
    }

    fn phrase(&mut self) -> String {
        let words = 7 + self.below(8);
        self.sentence(words)
    }

    fn tool(&mut self, at: usize) -> Tool {
        let name = format!("{}_{}_{}", self.one(&VERBS), self.rare(), self.rare());
        let args: Vec<Arg> = (0..3 + self.below(4))
            .map(|number| Arg {
                name: if number == 0 { "id".to_owned() } else { format!("{}_{}", self.rare(), self.rare()) }.leak(),
                required: number == 0,
                types: Types::ANY,
                label: "string",
                allowed: if number == 3 { "\"open\"\n\"closed\"\n\"all\"" } else { "" },
            })
            .collect();
        let mut doc = format!("upstream/{name}\n{}\nargs: {{:id string}}\nrequired: [:id]", self.sentences(3));
        let _ = write!(doc, "\nreturns: Result<{{:{} string :{} [{{:id integer :title string}}]}}>", self.rare(), self.rare());
        for arg in &args {
            let words = 4 + self.below(8);
            let _ = write!(doc, "\n  :{} - {}; default {at}", arg.name, self.sentence(words).trim_end_matches('.'));
        }
        let annotations =
            Annotations { read_only: [Some(true), Some(false), None].get(at % 3).copied().flatten(), ..Annotations::NONE };
        Tool { name: name.leak(), doc: doc.leak(), args: args.leak(), annotations, ..Tool::EMPTY }
    }
}

fn catalog() -> Catalog {
    let mut random = Random(1);
    let upstreams = (0..UPSTREAMS).map(|at| Upstream {
        name: format!("{}{at}", random.rare()).leak(),
        description: random.sentences(2).leak(),
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table((0..TOOLS).map(|at| random.tool(at)).collect::<Vec<_>>().leak()),
    });
    Catalog { digest: "", search_index: &[], upstreams: upstreams.collect::<Vec<_>>().leak() }
}

/// Returns the lowest and the median time of some runs.
fn runs(count: usize, mut run: impl FnMut()) -> (Duration, Duration) {
    let time = |_| {
        let started = Instant::now();
        run();
        started.elapsed()
    };
    let mut times: Vec<Duration> = (0..count).map(time).collect();
    times.sort_unstable();
    (times.first().copied().unwrap_or_default(), times.get(count / 2).copied().unwrap_or_default())
}

fn main() {
    let catalog = catalog();
    let tools = || catalog.upstreams.iter().flat_map(|upstream| upstream.tools);
    let bytes = index_of(&catalog);
    let texts: usize = tools().map(|tool| tool.doc.len()).sum();
    println!("{} tools, {} bytes in their texts, {} bytes in the index", tools().count(), texts, bytes.len());
    let (lowest, middle) = runs(31, || drop(black_box(index_of(&catalog))));
    println!("index: {lowest:.2?} lowest, {middle:.2?} median");
    let Some(index) = Index::new(&bytes) else { return };
    for text in
        ["list deployments", "how do I cancel the order of a customer", "delete all archived labels by project name", "zebra"]
    {
        let Ok(query) = Query::parse(text, 64) else { continue };
        let (lowest, middle) = runs(301, || drop(black_box(index.search(&query, 8))));
        println!("'{text}': {lowest:.2?} lowest, {middle:.2?} median");
    }
}
