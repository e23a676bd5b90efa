//! Tests the evaluation of policies without a server.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Catalog, Condition, Grant, McpStdio, PermittedValues, Policy, Rule, Tool, Tools, Transport, Upstream};
use ptc_check::CalledTool;
use ptc_policy::POLICY;
use ptc_upstream::access::{Access, PolicyEvaluator, PolicySource as _, Refused, SentArgument, Subject};
use serde_json::{Map, Value, json};

static TOOLS: [Tool; 3] = [
    Tool { name: "delete_order", ..Tool::EMPTY },
    Tool { name: "get_order", ..Tool::EMPTY },
    Tool { name: "get_user", ..Tool::EMPTY },
];

const fn upstream(name: &'static str, tools: Tools) -> Upstream {
    Upstream { name, description: "", transport: Transport::McpStdio(McpStdio::new("none")), tools }
}

static CATALOG: Catalog = Catalog {
    digest: "",
    search_index: &[],
    upstreams: &[upstream("crm", Tools::table(&TOOLS)), upstream("live", Tools::NONE), upstream("mail", Tools::table(&TOOLS))],
};

const fn rule(name: &'static str, when: &'static [Condition], allow: &'static [Grant]) -> Rule {
    Rule { name, when, allow, calls_per_program: None, calls_per_minute: None }
}

const fn grant(upstream: &'static str, tools: &'static [&'static str]) -> Grant {
    Grant { upstream, tools, arguments: &[] }
}

fn evaluator(rules: &'static [Rule]) -> Arc<dyn PolicyEvaluator> {
    POLICY.evaluator(Box::leak(Box::new(Policy { rules })))
}

fn access(evaluator: &dyn PolicyEvaluator, owner: &str, claims: &Value) -> Arc<dyn Access> {
    let claims: Map<String, Value> = claims.as_object().cloned().unwrap_or_default();
    let scopes: Vec<String> =
        claims.get("scope").and_then(Value::as_str).unwrap_or_default().split(' ').map(str::to_owned).collect();
    evaluator.access(Subject { owner: &owner.into(), scopes: &scopes, claims: &claims })
}

fn permitted(access: &dyn Access) -> Vec<String> {
    access.catalog(&CATALOG).tools().map(|(upstream, tool)| format!("{}/{}", upstream.name, tool.name)).collect()
}

fn called(pairs: &[(Option<&str>, Option<&str>)]) -> BTreeSet<CalledTool> {
    let owned = |name: Option<&str>| name.map(str::to_owned);
    pairs.iter().map(|(server, tool)| CalledTool { server: owned(*server), tool: owned(*tool) }).collect()
}

#[test]
fn rule_applies_if_all_its_conditions_hold() {
    static RULES: &[Rule] = &[
        rule("name", &[Condition::Owner("alice")], &[grant("crm", &["get_order"])]),
        rule("stdio", &[Condition::Owner("stdio")], &[grant("crm", &["delete_order"])]),
        rule("both", &[Condition::Scope("a"), Condition::Group("staff")], &[grant("mail", &["get_order"])]),
        rule("claim", &[Condition::Claim("level", "3")], &[grant("mail", &["get_user"])]),
        rule("element", &[Condition::Claim("roles", "\"admin\"")], &[grant("mail", &["delete_order"])]),
    ];
    let evaluator = evaluator(RULES);
    for (owner, claims, expected) in [
        ("name:alice", json!({}), vec!["crm/get_order"]),
        // A name in the file of tokens is neither the client on standard input nor a subject.
        ("name:stdio", json!({}), vec![]),
        ("oauth:https://id.example alice", json!({}), vec![]),
        ("alice", json!({}), vec![]),
        ("stdio", json!({}), vec!["crm/delete_order"]),
        ("oauth:i s", json!({ "scope": "a" }), vec![]),
        ("oauth:i s", json!({ "scope": "ab", "groups": ["staff"] }), vec![]),
        ("oauth:i s", json!({ "scope": "b a", "groups": ["x", "staff"] }), vec!["mail/get_order"]),
        ("oauth:i s", json!({ "level": 3, "roles": "admin" }), vec!["mail/delete_order", "mail/get_user"]),
        ("oauth:i s", json!({ "level": "3", "roles": ["administrator"] }), vec![]),
    ] {
        let access = access(&*evaluator, owner, &claims);
        assert_eq!(permitted(&*access), expected, "{owner} {claims}");
        // A worker process gets the same from the results of the conditions.
        assert_eq!(permitted(&*evaluator.restore("".into(), access.state())), expected, "{owner} {claims}");
    }
    assert_eq!(permitted(&*evaluator.restore("".into(), &[])), Vec::<String>::new(), "a rule without a result does not apply");
}

#[test]
fn owner_of_each_kind_can_be_named() {
    static RULES: &[Rule] = &[
        rule("0", &[Condition::Owner("alice")], &[]),
        rule("1", &[Condition::Owner("name:stdio")], &[]),
        rule("2", &[Condition::Owner("name:team:bob")], &[]),
        rule("3", &[Condition::Owner("stdio")], &[]),
        rule("4", &[Condition::Owner("loopback")], &[]),
        rule("5", &[Condition::Owner("token:9f86")], &[]),
        rule("6", &[Condition::Owner("certificate:CN=alice,O=Acme")], &[]),
        rule("7", &[Condition::Owner("oauth:https://id.example alice")], &[]),
    ];
    let evaluator = evaluator(RULES);
    for (owner, applying) in [
        ("name:alice", Some(0)),
        ("name:stdio", Some(1)),
        ("name:team:bob", Some(2)),
        ("stdio", Some(3)),
        ("loopback", Some(4)),
        ("token:9f86", Some(5)),
        ("certificate:CN=alice,O=Acme", Some(6)),
        ("oauth:https://id.example alice", Some(7)),
        ("name:loopback", None),
        ("certificate:CN=alice", None),
        ("certificate:CN=alice\\,O\\=Acme", None),
        ("oauth:https://other.example alice", None),
        ("alice", None),
        ("", None),
    ] {
        let access = access(&*evaluator, owner, &json!({}));
        let applies: Vec<usize> = (0..RULES.len()).filter(|at| access.state()[*at] == 0).collect();
        assert_eq!(applies, Vec::from_iter(applying), "{owner}");
    }
}

#[test]
fn callers_with_the_same_rules_share_a_catalog() {
    static RULES: &[Rule] = &[rule("readers", &[Condition::Scope("a")], &[grant("crm", &["get_*"])])];
    let evaluator = evaluator(RULES);
    let of = |owner: &str, claims: &Value| access(&*evaluator, owner, claims).catalog(&CATALOG);
    let scope = json!({ "scope": "a" });
    assert!(std::ptr::eq(of("oauth:i one", &scope), of("oauth:i two", &scope)));
    assert!(!std::ptr::eq(of("oauth:i one", &scope), of("oauth:i one", &json!({}))));
}

#[test]
fn program_is_denied_with_all_that_is_missing() {
    static RULES: &[Rule] = &[
        rule("admins", &[Condition::Group("admins"), Condition::Scope("crm:write")], &[grant("crm", &[])]),
        rule("writers", &[Condition::Scope("crm:write")], &[grant("crm", &["delete_order"])]),
        rule("readers", &[Condition::Scope("crm:read")], &[grant("crm", &["get_*"])]),
        rule("live", &[Condition::Scope("live")], &[grant("live", &["a*"])]),
    ];
    let evaluator = evaluator(RULES);
    let stranger = access(&*evaluator, "name:stranger", &json!({}));
    let denied = stranger
        .denial_of_program(
            &CATALOG,
            &called(&[
                (Some("crm"), Some("get_order")),
                (Some("crm"), Some("delete_order")),
                (Some("mail"), Some("get_user")),
                (Some("crm"), Some("unknown")),
            ]),
        )
        .expect("the program is denied");
    // No scope permits a tool of `mail`, so that it looks as the unknown one.
    assert_eq!(
        denied.message,
        "the caller may not call crm/delete_order (needs the scope 'crm:write'); crm/get_order (needs the scope 'crm:read')"
    );
    assert_eq!(denied.hint, "an access token with the scopes \"crm:read crm:write\" in addition permits it");
    assert_eq!(denied.missing_scopes, ["crm:read", "crm:write"]);
    for part in ["'crm:write' for the rule 'writers'", "the group 'admins'", "mail/get_user (no rule of the policy permits it)"] {
        assert!(denied.reason.contains(part), "{part}: {}", denied.reason);
    }
    assert!(!denied.reason.contains("unknown"), "{}", denied.reason);
    let of_crm = called(&[(Some("crm"), Some("get_order")), (Some("crm"), Some("delete_order"))]);
    let denied = stranger.denial_of_program(&CATALOG, &of_crm).expect("the program is denied");
    assert_eq!(denied.missing_scopes, ["crm:read", "crm:write"]);
    // Names that are not known yet count as permitted if anything of the upstream may be called.
    let reader = access(&*evaluator, "name:reader", &json!({ "scope": "crm:read" }));
    assert_eq!(reader.denial_of_program(&CATALOG, &called(&[(Some("crm"), None), (None, None)])), None);
    assert!(reader.denial_of_program(&CATALOG, &called(&[(Some("mail"), None)])).is_some());
    // The tools of an upstream that was not asked yet are permitted by their names.
    let live = access(&*evaluator, "name:live", &json!({ "scope": "live" }));
    assert_eq!(live.denial(&CATALOG, "live", "anything"), None);
    assert!(live.denial(&CATALOG, "live", "other").is_some());
    assert!(reader.denial(&CATALOG, "live", "anything").is_some());
}

#[test]
fn denial_has_the_scopes_of_more_tools_than_its_message_names() {
    static RULES: &[Rule] = &[
        rule("0", &[Condition::Group("staff")], &[grant("crm", &["delete_order"])]),
        rule("1", &[Condition::Scope("1")], &[grant("crm", &["get_order"])]),
        rule("2", &[Condition::Scope("2")], &[grant("crm", &["get_user"])]),
        rule("3", &[Condition::Scope("3")], &[grant("live", &["a"])]),
        rule("4", &[Condition::Scope("4")], &[grant("mail", &["delete_order"])]),
        rule("5", &[Condition::Scope("5")], &[grant("mail", &["get_order"])]),
        rule("6", &[Condition::Scope("6")], &[grant("mail", &["get_user"])]),
        rule("7", &[Condition::Scope("7"), Condition::Group("staff")], &[grant("live", &["b"])]),
    ];
    let evaluator = evaluator(RULES);
    let stranger = access(&*evaluator, "name:stranger", &json!({}));
    let all = called(&[
        (Some("crm"), Some("delete_order")),
        (Some("crm"), Some("get_order")),
        (Some("crm"), Some("get_user")),
        (Some("live"), Some("a")),
        (Some("live"), Some("b")),
        (Some("mail"), Some("delete_order")),
        (Some("mail"), Some("get_order")),
        (Some("mail"), Some("get_user")),
    ]);
    let denied = stranger.denial_of_program(&CATALOG, &all).expect("the program is denied");
    assert!(denied.message.contains("mail/get_order") && !denied.message.contains("mail/get_user"), "{}", denied.message);
    assert_eq!(denied.missing_scopes, ["1", "2", "3", "4", "5", "6"], "scopes that need a group in addition are not offered");
    // The operator finds the decision about each tool.
    for called in &all {
        let name =
            format!("{}/{} (needs ", called.server.as_deref().unwrap_or_default(), called.tool.as_deref().unwrap_or_default());
        assert!(denied.reason.contains(&name), "{name}: {}", denied.reason);
    }
}

#[test]
fn denial_names_scopes_only_and_hides_what_no_scope_opens() {
    static RULES: &[Rule] = &[
        rule("r-alice", &[Condition::Owner("alice")], &[grant("crm", &[])]),
        rule("r-carol", &[Condition::Owner("oauth:https://login.example carol@acme.example")], &[grant("mail", &[])]),
        rule("r-staff", &[Condition::Group("staff-group"), Condition::Scope("staff:scope")], &[grant("crm", &["delete_order"])]),
        rule("r-level", &[Condition::Claim("level-claim", "\"high\"")], &[grant("crm", &["get_user"])]),
        rule("r-readers", &[Condition::Scope("crm:read"), Condition::Scope("other")], &[grant("crm", &["get_*"])]),
        rule("r-reader", &[Condition::Scope("all:read")], &[grant("crm", &["get_*"])]),
    ];
    const SECRETS: [&str; 9] =
        ["alice", "carol", "login.example", "staff-group", "staff:scope", "level-claim", "high", "rule", "r-"];
    let evaluator = evaluator(RULES);
    let bob = access(&*evaluator, "name:bob", &json!({}));
    let denied = |server: &str, tool: &str| {
        let of_call = bob.denial(&CATALOG, server, tool);
        let of_program = bob.denial_of_program(&CATALOG, &called(&[(Some(server), Some(tool))]));
        let denied = of_program.expect("the program is denied");
        assert!(of_call.is_none_or(|of_call| of_call == denied), "{denied:?}");
        let told = format!("{} {} {:?}", denied.message, denied.hint, denied.missing_scopes);
        assert!(SECRETS.iter().all(|secret| !told.contains(secret)), "{told}");
        denied
    };
    let visible = denied("crm", "get_user");
    let needs = "needs the scope 'all:read', or the scope 'crm:read' and the scope 'other'";
    assert_eq!(visible.message, format!("the caller may not call crm/get_user ({needs})"));
    assert_eq!((visible.missing_scopes, visible.hidden), (vec!["all:read".to_owned()], None));
    for secret in ["the owner 'alice'", "'level-claim' with the value \"high\"", "'crm:read'", "'r-readers'"] {
        assert!(visible.reason.contains(secret), "{secret}: {}", visible.reason);
    }
    // A tool that needs an owner or a group looks as one that does not exist.
    let [hidden, of_group, unknown] =
        [("mail", "get_user"), ("crm", "delete_order"), ("crm", "nothing")].map(|(server, tool)| {
            let denied = denied(server, tool);
            assert!(denied.is_hidden(), "{denied:?}");
            let hidden = denied.hidden.clone().map(|called| (called.server, called.tool));
            assert_eq!(hidden, Some((Some(server.to_owned()), Some(tool.to_owned()))));
            denied
        });
    assert!(hidden.reason.contains("carol@acme.example") && of_group.reason.contains("staff-group"), "{hidden:?} {of_group:?}");
    assert!(unknown.reason.contains("no such tool"), "{unknown:?}");
    // Scopes are offered as soon as nothing else is missing.
    let staff = access(&*evaluator, "oauth:i s", &json!({ "groups": ["staff-group"] }));
    let denied = staff.denial(&CATALOG, "crm", "delete_order").expect("it is denied");
    assert_eq!((denied.missing_scopes, denied.hidden), (vec!["staff:scope".to_owned()], None));
}

/// Returns the shortest time of a request, which other programs of the machine disturb least.
fn request_time(rules: Vec<Rule>, claims: &Value) -> Duration {
    let evaluator = evaluator(rules.leak());
    let times = std::iter::repeat_with(|| {
        let began = Instant::now();
        access(&*evaluator, "oauth:i s", claims).catalog(&CATALOG);
        began.elapsed()
    });
    times.take(20).min().unwrap_or_default()
}

#[test]
fn conditions_are_read_once_and_not_for_each_request() {
    let with_values_of = |bytes: usize| {
        let rule = |at: usize| {
            let value: &'static str = format!("\"{at} {}\"", "x".repeat(bytes)).leak();
            rule("claim", vec![Condition::Claim("level", value)].leak(), &[])
        };
        request_time((0..200).map(rule).collect(), &json!({ "level": "high" }))
    };
    let (short, long) = (with_values_of(1), with_values_of(100_000));
    assert!(long < short * 20 + Duration::from_micros(500), "the values are read for each request: {short:?}, {long:?}");
}

#[test]
fn scopes_are_looked_up_and_not_compared_with_each_rule() {
    let scope = |at: usize| -> &'static str { format!("rule:{at}").leak() };
    let rules = || (0..2_000).map(|at| rule("scope", vec![Condition::Scope(scope(at))].leak(), &[])).collect();
    let with_scopes = |scopes: usize| {
        let scopes: Vec<String> = (0..scopes).map(|at| format!("mine:{at}")).collect();
        request_time(rules(), &json!({ "scope": scopes.join(" ") }))
    };
    let (few, many) = (with_scopes(1), with_scopes(2_000));
    assert!(many < few * 100, "each scope is compared with each rule: {few:?}, {many:?}");
}

#[test]
fn first_rule_whose_arguments_fit_decides_and_counts() {
    static RULES: &[Rule] = &[
        Rule {
            calls_per_program: Some(1),
            ..rule(
                "europe",
                &[],
                &[Grant {
                    upstream: "crm",
                    tools: &["get_order"],
                    arguments: &[
                        PermittedValues { name: "region", values: &["\"eu\""] },
                        PermittedValues { name: "limit", values: &["10", "null"] },
                    ],
                }],
            )
        },
        rule(
            "america",
            &[],
            &[Grant {
                upstream: "crm",
                tools: &[],
                arguments: &[PermittedValues { name: "region", values: &["\"us\"", "\"eu\""] }],
            }],
        ),
    ];
    let evaluator = evaluator(RULES);
    let access = access(&*evaluator, "stdio", &json!({}));
    access.catalog(&CATALOG);
    let program = access.begin_program();
    let decide = |tool: &'static str, args: Value| {
        program.decide("crm", tool, &|name| match args.get(name) {
            None => SentArgument::Absent,
            Some(Value::Array(_) | Value::Object(_)) => SentArgument::Other,
            Some(value) => SentArgument::Value(value.clone()),
        })
    };
    assert_eq!(decide("get_order", json!({ "region": "us" })).ok(), Some("america"));
    assert_eq!(decide("get_order", json!({ "region": "eu", "limit": 11 })).ok(), Some("america"));
    assert_eq!(decide("get_order", json!({ "region": "eu" })).ok(), Some("europe"));
    assert_eq!(decide("delete_order", json!({ "region": "eu" })).ok(), Some("america"));
    // The rule decides although a later one would permit the call without a limit.
    assert!(matches!(decide("get_order", json!({ "region": "eu", "limit": 10 })), Err(Refused::Limit("europe", _))));
    for args in [json!({}), json!({ "region": "asia" }), json!({ "region": ["eu"] }), json!({ "region": null })] {
        let Err(Refused::Denied(denied)) = decide("get_user", args.clone()) else { panic!("{args}") };
        assert!(denied.message.contains("'region'") && denied.message.contains("\"us\", \"eu\""), "{}", denied.message);
        assert_eq!(denied.rule, Some("america"));
    }
}

#[test]
fn argument_is_read_once_for_all_rules() {
    let names = ["first", "second", "third"];
    let rules: Vec<Rule> = names
        .iter()
        .map(|name| {
            let value: &'static str = format!("\"{name}\"").leak();
            let values = PermittedValues { name: "region", values: vec![value].leak() };
            let allow = Grant { upstream: "crm", tools: &["get_order"], arguments: vec![values].leak() };
            rule(name, &[], vec![allow].leak())
        })
        .collect();
    let evaluator = evaluator(rules.leak());
    let access = access(&*evaluator, "stdio", &json!({}));
    access.catalog(&CATALOG);
    let program = access.begin_program();
    let reads = Cell::new(0);
    let decide = |region: &str| {
        reads.set(0);
        program.decide("crm", "get_order", &|name| {
            assert_eq!(name, "region");
            reads.set(reads.get() + 1);
            SentArgument::Value(region.into())
        })
    };
    assert_eq!((decide("third").ok(), reads.get()), (Some("third"), 1));
    // The refusal names the first rule.
    let Err(Refused::Denied(denied)) = decide("fourth") else { panic!("no rule permits it") };
    assert_eq!((denied.rule, reads.get()), (Some("first"), 1));
    assert!(denied.message.ends_with("the rule 'first' of the policy permits \"first\""), "{}", denied.message);
}

#[test]
fn owner_with_many_combinations_of_scopes_does_not_take_the_views_of_others() {
    static RULES: &[Rule] = &[
        rule("0", &[Condition::Scope("0")], &[grant("crm", &["get_order"])]),
        rule("1", &[Condition::Scope("1")], &[grant("crm", &["get_user"])]),
        rule("2", &[Condition::Scope("2")], &[grant("crm", &["delete_order"])]),
        rule("3", &[Condition::Scope("3")], &[grant("mail", &["get_order"])]),
        rule("4", &[Condition::Scope("4")], &[grant("mail", &["get_user"])]),
        rule("5", &[Condition::Scope("5")], &[grant("mail", &["delete_order"])]),
        rule("6", &[Condition::Scope("6")], &[grant("live", &["a"])]),
    ];
    let evaluator = evaluator(RULES);
    let scopes = |set: u32| {
        let scopes: Vec<String> = (0..7).filter(|bit| set >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
        json!({ "scope": scopes.join(" ") })
    };
    let granted = |set: u32, owner: &str| {
        let access = access(&*evaluator, owner, &scopes(set));
        (permitted(&*access).len(), access.denial(&CATALOG, "live", "a").map(|denial| denial.message))
    };
    for set in 0..100 {
        access(&*evaluator, "oauth:i greedy", &scopes(set)).catalog(&CATALOG);
    }
    assert_eq!(granted(0b101_1111, "oauth:i greedy"), (5, None), "it was made before");
    // Beyond its share, the owner gets the largest set of tools that there is and that has no other tools.
    for (set, tools) in [(0b110_1111, 5), (0b111_1111, 6)] {
        let (left, refused) = granted(set, "oauth:i greedy");
        assert_eq!(left, tools);
        assert!(refused.is_some_and(|message| message.contains("more different sets of tools")));
        assert_eq!(granted(set, "oauth:i modest"), (tools, None), "another owner gets all");
        assert_eq!(granted(set, "oauth:i greedy"), (tools, None), "it was made for the other owner");
    }
}
