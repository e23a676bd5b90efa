//! Measures what a policy of 200 rules adds to a request and to a call: `cargo bench -p ptc-policy`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures, and ends if they are wrong")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Catalog, Condition, Grant, McpStdio, PermittedValues, Policy, Rule, Tool, Tools, Transport, Upstream};
use ptc_policy::POLICY;
use ptc_upstream::access::{PolicyEvaluator, PolicySource as _, SentArgument, Subject};
use serde_json::{Map, json};

const RULES: usize = 200;
const TOOLS: usize = 1_000;
const ROUNDS: u32 = 20_000;
const REQUESTS: u128 = 2_000;

/// Maximum nanoseconds of a decision.
const MAX_DECISION_NS: u128 = 2_000;

fn text(text: String) -> &'static str {
    text.leak()
}

fn main() {
    let catalog = catalog(TOOLS);
    let rules: Vec<Rule> = (0..RULES)
        .map(|at| Rule {
            name: text(format!("rule {at}")),
            when: vec![Condition::Scope(text(format!("scope:{at}")))].leak(),
            allow: vec![Grant {
                upstream: "crm",
                tools: vec![text(format!("tool_{:03}*", at % 100))].leak(),
                arguments: &[PermittedValues { name: "region", values: &["\"eu\"", "\"us\""] }],
            }]
            .leak(),
            calls_per_program: Some(u32::MAX),
            calls_per_minute: Some(1_000_000),
        })
        .collect();
    let evaluator = POLICY.evaluator(Box::leak(Box::new(Policy { rules: rules.leak() })));
    let scopes: Vec<String> = (0..RULES).map(|at| format!("scope:{at}")).collect();
    let (owner, claims) = ("oauth:issuer subject".into(), Map::new());
    let caller = Subject { owner: &owner, scopes: &scopes, claims: &claims };
    for (what, condition) in CONDITIONS {
        for rules in [1, RULES] {
            let evaluator = evaluator_of(rules, condition);
            for scopes in [1, RULES] {
                let request = request_time(&*evaluator, catalog, scopes);
                println!("{rules} rules by {what}, a token with {scopes} scopes: {request} ns for a request");
            }
        }
    }
    let access = evaluator.access(caller);
    access.catalog(catalog);
    let program = access.begin_program();
    let names: Vec<&'static str> = catalog.tools().map(|(_, tool)| tool.name).collect();
    let began = Instant::now();
    // What the host of a program does for a call.
    for name in names.iter().cycle().take(ROUNDS as usize) {
        black_box(access.denial(catalog, "crm", name));
        black_box(access.catalog(catalog));
        let _ = black_box(program.decide("crm", name, &|_| SentArgument::Value("us".into())));
    }
    let decision = began.elapsed().as_nanos() / u128::from(ROUNDS);
    println!("{RULES} rules, {TOOLS} tools: {decision} ns for a call (at most {MAX_DECISION_NS})");
    assert!(decision <= MAX_DECISION_NS, "a decision takes {decision} ns");
    for tools in [TOOLS, 5 * TOOLS] {
        println!(
            "{RULES} rules, {tools} tools: {} ms for the first request of callers with the same rules",
            first_request(tools).as_millis()
        );
    }
    for (what, region) in [("the last", RULES - 1), ("none", RULES)] {
        let decision = decision_about_values(catalog, region);
        println!("{RULES} grants of one tool, of which {what} fits: {decision} ns for a call (at most {MAX_DECISION_NS})");
        assert!(decision <= MAX_DECISION_NS, "a decision takes {decision} ns if {what} fits");
    }
}

/// Makes the condition of the rule with a number.
type MakeCondition = fn(usize) -> Condition;

/// What rules can demand.
const CONDITIONS: [(&str, MakeCondition); 3] = [
    ("owner", |at| Condition::Owner(text(format!("oauth:issuer subject {at}")))),
    ("scope", |at| Condition::Scope(text(format!("scope:{at}")))),
    ("claim", |at| Condition::Claim("department", text(format!("\"department {at}\"")))),
];

fn evaluator_of(rules: usize, condition: MakeCondition) -> Arc<dyn PolicyEvaluator> {
    let rule = |at| {
        let allow = vec![Grant { upstream: "crm", tools: vec![text(format!("tool_{at:04}"))].leak(), arguments: &[] }].leak();
        let (name, when) = (text(format!("rule {at}")), vec![condition(at)].leak());
        Rule { name, when, allow, calls_per_program: None, calls_per_minute: None }
    };
    POLICY.evaluator(Box::leak(Box::new(Policy { rules: (0..rules).map(rule).collect::<Vec<_>>().leak() })))
}

/// Returns the nanoseconds from a request to the view of its caller, whose token has a number of scopes.
fn request_time(evaluator: &dyn PolicyEvaluator, catalog: &'static Catalog, scopes: usize) -> u128 {
    let scopes: Vec<String> = (0..scopes).map(|at| format!("scope:{at}")).collect();
    let claims = json!({ "iss": "issuer", "sub": "subject 0", "department": "department 0", "exp": 1, "iat": 1, "scope": "" });
    let (owner, claims) = ("oauth:issuer subject 0".into(), claims.as_object().cloned().unwrap_or_default());
    let caller = Subject { owner: &owner, scopes: &scopes, claims: &claims };
    let began = Instant::now();
    for _ in 0..REQUESTS {
        black_box(evaluator.access(black_box(caller)).catalog(catalog));
    }
    began.elapsed().as_nanos() / REQUESTS
}

/// Returns the time of the first request of a caller to whom all rules apply, each of which permits some of the tools.
fn first_request(tools: usize) -> Duration {
    let catalog = catalog(tools);
    let rule = |at| {
        let allow =
            vec![Grant { upstream: "crm", tools: vec![text(format!("tool_{:03}*", at % 100))].leak(), arguments: &[] }].leak();
        Rule { name: text(format!("rule {at}")), when: &[], allow, calls_per_program: None, calls_per_minute: None }
    };
    let evaluator = POLICY.evaluator(Box::leak(Box::new(Policy { rules: (0..RULES).map(rule).collect::<Vec<_>>().leak() })));
    let began = Instant::now();
    black_box(evaluator.access(Subject { owner: &"stdio".into(), scopes: &[], claims: &Map::new() }).catalog(catalog));
    began.elapsed()
}

fn catalog(tools: usize) -> &'static Catalog {
    let tools: Vec<Tool> = (0..tools).map(|at| Tool { name: text(format!("tool_{at:04}")), ..Tool::EMPTY }).collect();
    let transport = Transport::McpStdio(McpStdio::new("none"));
    let upstream = Upstream { name: "crm", description: "", transport, tools: Tools::table(tools.leak()) };
    Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: vec![upstream].leak() }))
}

/// Returns the nanoseconds of a decision about a call whose region is this number. Each rule permits one region.
fn decision_about_values(catalog: &'static Catalog, region: usize) -> u128 {
    let rules: Vec<Rule> = (0..RULES)
        .map(|at| {
            let values = vec![text(format!("\"region {at:03}\""))].leak();
            let arguments = vec![PermittedValues { name: "region", values }].leak();
            let allow = vec![Grant { upstream: "crm", tools: &["tool_0000"], arguments }].leak();
            Rule { name: text(format!("rule {at}")), when: &[], allow, calls_per_program: None, calls_per_minute: None }
        })
        .collect();
    let evaluator = POLICY.evaluator(Box::leak(Box::new(Policy { rules: rules.leak() })));
    let (owner, claims) = ("stdio".into(), Map::new());
    let access = evaluator.access(Subject { owner: &owner, scopes: &[], claims: &claims });
    access.catalog(catalog);
    let program = access.begin_program();
    let sent = format!("region {region:03}");
    let began = Instant::now();
    for _ in 0..ROUNDS {
        let decided = black_box(program.decide("crm", "tool_0000", &|_| SentArgument::Value(sent.as_str().into())));
        assert_eq!(decided.is_ok(), region < RULES);
    }
    began.elapsed().as_nanos() / u128::from(ROUNDS)
}
