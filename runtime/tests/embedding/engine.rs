//! Engines: synchronous and asynchronous tools, signatures, upstreams and sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ptc_lisp::limits::Limits;
use ptc_lisp::signature::Mode;
use ptc_runtime::embed::{Answer, Args, BuildError, Builder, Engine, Event, Request, Tool, ToolDefinitionError, ToolFailure};
use ptc_runtime::ptc_runner_compat::parse_signature;
use serde_json::json;

fn roomy() -> Limits {
    Limits::default().wall_clock(Duration::from_secs(20))
}

fn sync(name: &str, signature: &str, run: fn(Args) -> Result<serde_json::Value, ToolFailure>) -> Tool {
    Tool::new(name, signature, run).unwrap()
}

pub(crate) fn builder() -> Builder {
    Engine::builder()
        .limits(roomy())
        .tool(sync("echo", "(user_id :int, tags [:keyword], at :datetime?, note :any) -> :any", |args| {
            assert!(args.value().entries().unwrap().all(|(key, _)| key.as_str().is_some()), "keys are strings");
            args.parse()
        }))
        .tool(
            sync("find_user", "(id :int?) -> {name :string, state :keyword, since :datetime}", |args| match args.int("id") {
                Some(1) => Ok(json!({ "name": "Ada", "state": "active", "since": "2026-05-03T11:14:00+02:00", "extra": true })),
                Some(2) => Ok(json!({ "name": 2, "state": "active" })),
                Some(3) => panic!("a bug of the tool"),
                Some(4) => Err("no".parse::<i32>().unwrap_err().into()),
                _ => Err(ToolFailure::new("the user is unknown")),
            })
            .describe("Finds a user by number."),
        )
        .tool(
            Tool::new_async("slow", "(ms :int) -> :int", |args: Args| async move {
                let ms = args.int("ms").unwrap_or(0);
                tokio::time::sleep(Duration::from_millis(u64::try_from(ms)?)).await;
                Ok(ms)
            })
            .unwrap(),
        )
}

fn run(program: &str) -> Answer {
    builder().build().unwrap().run(Request::new(program))
}

fn shown(answer: &Answer) -> String {
    answer.value().map_or_else(ToString::to_string, ptc_lisp::print::readable)
}

#[test]
fn arguments_and_results_of_tools_follow_their_signatures() {
    let answer = run("(tool/echo :user-id \"42\" :tags [\"a\" :b] :note {:first-name #{1 2} :k :v})");
    assert_eq!(shown(&answer), "{\"note\" {\"first_name\" [1 2] \"k\" \"v\"} \"tags\" [\"a\" \"b\"] \"user_id\" 42}");
    let [call] = &*answer.tool_calls else { panic!("{answer:?}") };
    assert_eq!((call.tool.as_str(), call.status, call.error.as_deref()), ("echo", "ok", None));
    let json = r#"{"note":{"first_name":[1,2],"k":"v"},"tags":["a","b"],"user_id":42}"#;
    assert_eq!(call.result_bytes, json.len() as u64);
    assert_eq!(call.warnings, ["user_id: coerced string \"42\" to int", "tags[0]: coerced string \"a\" to keyword"]);

    // The signature adds keywords and instants, which JSON does not have.
    let answer = run("(let [u (tool/find-user {:id 1})] [(:name u) (:state u) (.getTime (:since u))])");
    assert_eq!(shown(&answer), "[\"Ada\" :active 1777799640000]");
}

#[test]
fn failed_tool_call_ends_the_program_with_its_reason() {
    for (program, expected, calls) in [
        (
            "(tool/echo {:user-id \"x\" :tags [1]})",
            "runtime_error: tool_error: tool/echo: tool validation errors:\n- user_id: expected int, got string \"x\"\n- tags[0]: expected keyword, got int 1\n- note: expected a value, got nil",
            0,
        ),
        (
            "(tool/find-user {:id 2})",
            "runtime_error: tool_error: tool/find_user: result validation errors:\n- name: expected string, got int 2\n- since: expected datetime, got nil",
            1,
        ),
        ("(tool/find-user {:id 3})", "runtime_error: tool_error: tool/find_user: the tool panicked", 1),
        ("(tool/find-user {:id 4})", "runtime_error: tool_error: tool/find_user: invalid digit found in string", 1),
        ("(tool/find-user)", "runtime_error: tool_error: tool/find_user: the user is unknown", 1),
        ("(tool/find-usr {})", "runtime_error: unknown_tool: there is no tool/find-usr", 0),
        // Errors that are visible in the text are reported before any call.
        (
            "(do (tool/find-user {:id 1}) (tool/slow {}))",
            "runtime_error: tool_error: tool/slow: tool validation errors:\n- ms: expected int, got nil",
            0,
        ),
        (
            "(do (tool/find-user {:id 1}) (tool/slow {:ms (str \"x\")}))",
            "runtime_error: tool_error: tool/slow: tool validation errors:\n- ms: expected int, got string \"x\"",
            1,
        ),
    ] {
        let answer = run(program);
        assert_eq!(shown(&answer), expected, "{program}");
        assert_eq!(answer.tool_calls.len(), calls, "{program}");
    }
    let failure = run("(tool/echo {})").evaluation.outcome.unwrap_err();
    let hint = "hint: its signature is (user-id :int, tags [:keyword], at :datetime?, note :any) -> :any";
    assert!(failure.feedback.contains(hint), "{}", failure.feedback);
}

#[test]
fn asynchronous_calls_overlap() {
    // No call is answered before all are in flight.
    let all = Arc::new(tokio::sync::Barrier::new(50));
    let meet = Tool::new_async("meet", "(n :int) -> :int", move |args: Args| {
        let all = Arc::clone(&all);
        async move {
            all.wait().await;
            Ok(args.int("n"))
        }
    });
    let engine = Engine::builder().limits(roomy()).tool(meet.unwrap()).build().unwrap();
    let answer = engine.run(Request::new("(sum (pmap #(tool/meet {:n %}) (range 50)))"));
    assert_eq!(shown(&answer), "1225");
}

#[test]
fn listener_receives_events_while_the_program_runs() {
    let (send, heard) = std::sync::mpsc::channel();
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    // The tool returns only after the listener received the line printed before the call.
    let gate = Tool::new("gate", "(n :int) -> :int", {
        let heard = std::sync::Mutex::new(heard);
        move |args: Args| {
            let line: String =
                heard.lock().unwrap().recv_timeout(Duration::from_secs(15)).map_err(|why| ToolFailure::new(why.to_string()))?;
            assert_eq!(line, "tick");
            Ok(args.int("n"))
        }
    });
    let listen = {
        let told = Arc::clone(&told);
        move |event: Event<'_>| {
            let line = match event {
                Event::Printed(line) => {
                    let _ = send.send(line.to_owned());
                    line.to_owned()
                }
                Event::ToolStarted(call) => format!("{} began", call.tool),
                Event::ToolEnded(call) => format!("{} {} {:?}", call.tool, call.status, call.error),
                other => format!("{other:?}"),
            };
            told.lock().unwrap().push(line);
            // A panic of the listener has no effect.
            panic!("a bug of the listener");
        }
    };
    let engine = builder().tool(gate.unwrap()).build().unwrap();
    let program = "(println \"tick\") (tool/gate {:n 1}) (pmap println (range 50)) (println (pr-str ((memoize inc) 1))) (tool/find-user {:id 4})";
    let answer = engine.run(Request::new(program).on_event(listen));
    assert_eq!(answer.prints(), ["tick", "2"]);
    assert_eq!(
        *told.lock().unwrap(),
        ["tick", "gate began", "gate ok None", "2", "find_user began", "find_user error Some(\"invalid digit found in string\")"]
    );
}

#[cfg(feature = "http")]
#[test]
fn events_of_upstream_calls_contain_no_secrets() {
    use crate::web::{Answer, Web};

    let service = Web::start(|_| Answer::json(200, r#"{"items": [1]}"#));
    let engine = builder().deployment(made(&service)).build().unwrap();
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let program = "(println \"s3cr3t-token-value\") (:ok (tool/call {:server \"api\" :tool \"items\"}))";
    let answer = engine.run(Request::new(program).on_event(move |event| {
        heard.lock().unwrap().push(match event {
            Event::Printed(line) => line.to_owned(),
            Event::UpstreamStarted(call) => format!("{} {} began", call.server, call.tool),
            Event::UpstreamEnded(call) => format!("{} {} {} {:?}", call.server, call.tool, call.status, call.http_status),
            other => format!("{other:?}"),
        });
    }));
    assert_eq!(shown(&answer), "true");
    assert_eq!(*told.lock().unwrap(), ["[REDACTED]", "api items began", "api items ok Some(200)"]);
}

#[test]
fn calls_in_flight_end_with_the_program() {
    let short = Limits::default().wall_clock(Duration::from_millis(100));
    let answer = builder().limits(short).build().unwrap().run(Request::new("(tool/slow {:ms 60000})"));
    assert_eq!(answer.preview(), Err("timeout"));
    assert_eq!(answer.tool_calls[0].error.as_deref(), Some("the program ended before the answer"));
}

#[test]
fn tool_of_a_program_that_is_dropped_is_aborted() {
    struct Gone(Arc<AtomicUsize>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let gone = Arc::new(AtomicUsize::new(0));
    let (started, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let held = Arc::clone(&gone);
        let hang = Tool::new_async("hang", "() -> :any", move |_| {
            let (guard, started) = (Gone(Arc::clone(&held)), started.clone());
            async move {
                let _guard = guard;
                let _ = started.send(());
                std::future::pending::<Result<(), ToolFailure>>().await
            }
        });
        let engine = Engine::builder().tool(hang.unwrap()).limits(roomy()).build().unwrap();
        let mut running = Box::pin(engine.run_async(Request::new("(tool/hang)")));
        tokio::select! {
            _ = &mut running => panic!("it hangs"),
            _ = begun.recv() => {}
        }
        drop(running);
        while gone.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The engine is still usable.
        assert_eq!(engine.run_async(Request::new("(+ 1 2)")).await.preview(), Ok("3"));
    });
}

/// Polls a future once.
pub(crate) async fn poll_once<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    let poll = std::future::poll_fn(|context| std::task::Poll::Ready(std::pin::Pin::new(&mut future).poll(context)));
    match poll.await {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn request_may_have_a_signature() {
    let engine = builder().build().unwrap();
    let signature = parse_signature("(limit :int, since :datetime?) -> {count :int, states [:keyword]}").unwrap();
    let run = |program: &str, context: serde_json::Value, mode| {
        let request = Request::new(program).context(&context).unwrap().signature(signature.clone(), mode);
        engine.run(request)
    };
    let answer = run("{:count (inc data/limit) :states [:open]}", json!({ "limit": "10" }), Mode::Enabled);
    assert_eq!(answer.validated(), Some(r#"{"count":11,"states":["open"]}"#));
    assert_eq!(answer.warnings, ["context: limit: coerced string \"10\" to int"]);
    let instant = json!({ "limit": 1, "since": "1970-01-01T00:00:01Z" });
    let answer = run("{:count (.getTime data/since) :states []}", instant.clone(), Mode::Enabled);
    assert_eq!(answer.validated(), Some(r#"{"count":1000,"states":[]}"#));
    // Without checks, the instant remains a JSON string.
    let answer = run("{:since data/since}", instant, Mode::Disabled);
    assert_eq!(answer.validated(), Some(r#"{"since":"1970-01-01T00:00:01Z"}"#));
}

#[test]
fn request_that_does_not_match_its_signature_is_refused() {
    let engine = builder().build().unwrap();
    let signature = parse_signature("(limit :int) -> {count :int}").unwrap();
    let run = |program: &str, context: serde_json::Value| {
        let answer = engine.run(Request::new(program).context(&context).unwrap().signature(signature.clone(), Mode::Enabled));
        shown(&answer)
    };
    assert_eq!(run("1", json!({})), "args_error: context validation errors:\n- limit: expected int, got nil");
    assert_eq!(
        run("{:count \"x\"}", json!({ "limit": 1 })),
        "runtime_error: return validation errors:\n- count: expected int, got string \"x\""
    );
    assert_eq!(
        run("{:count 1 :f inc}", json!({ "limit": 1 })),
        "runtime_error: return: non-JSON-encodable value at f: a function has no JSON form"
    );
}

#[test]
fn definitions_and_results_persist_after_a_run() {
    let engine = builder().build().unwrap();
    let first = engine.run(Request::new("(defn ask [id] (:name (tool/find-user {:id id}))) (def n 1) 5"));
    let failed = engine.run(Request::new("(def n 2) (oops").after(&first));
    assert_eq!(failed.preview(), Err("parse_error"));
    let second = engine.run(Request::new("[(ask n) *1]").after(&failed));
    assert_eq!(shown(&second), "[\"Ada\" 5]");
    assert!(second.evaluation.steps > 0);
}

#[test]
fn missing_keys_of_the_context_are_noted() {
    let engine = builder().build().unwrap();
    let notes =
        |program: &str, context: serde_json::Value| engine.run(Request::new(program).context(&context).unwrap()).notes().to_vec();
    let context = json!({ "orders": [1], "limit": null });
    let wanted = "data/oders, data/x gave nil: the context has data/limit, data/orders";
    assert_eq!(notes("[data/orders data/limit data/oders (map (fn [_] data/oders) [1 2]) data/x]", context.clone()), [wanted]);
    assert_eq!(notes("(if false data/oders data/orders)", context), [""; 0]);
    assert_eq!(notes("data/x", json!({})), ["data/x gave nil: the context is empty"]);
    assert_eq!(engine.run(Request::new("data/x")).notes(), [""; 0]);
}

#[test]
fn programs_discover_host_tools() {
    let answer = run(
        "[(doc tool/find_user) (filter #(re-find #\"find_user|slow\" %) (dir 'tool)) (first (apropos \"finds user\")) (:signature (meta tool/slow))]",
    );
    assert_eq!(
        shown(&answer),
        "[\"tool/find_user\\nDescription: Finds a user by number.\\nKind: tool\\nSignature: (id :int?) -> {name :string, state :keyword, since :datetime}\\nCall: (tool/find_user {:id …})\" [\"find_user - Finds a user by number.\" \"slow - (ms :int) -> :int\"] \"tool/find_user - Finds a user by number.\" \"(ms :int) -> :int\"]"
    );
}

#[test]
fn tools_with_invalid_definitions_are_refused() {
    let nothing = |name: &str, signature: &str| Tool::new(name, signature, |_| Ok(())).map(drop).unwrap_err().to_string();
    assert_eq!(nothing("a b", ":any"), "a tool cannot be named \"a b\": use a letter, then letters, digits, '-' and '_'");
    assert_eq!(nothing("call", ":any"), "a tool cannot be named \"call\": tool/call is a function of the language");
    assert!(nothing("f", "(a :list) -> :any").contains("there is no type :list\n at line 1, column 4"));
    let twice = builder().tool(sync("find-user", ":any", |_| Ok(json!(1)))).build().unwrap_err();
    assert!(matches!(twice, BuildError::Tool(ToolDefinitionError::Twice(_))), "{twice}");
}

/// Returns a deployment with one service, which is mocked by `service`. Its only tool has the arguments `page` and `limit`.
#[cfg(feature = "http")]
fn made(service: &crate::web::Web) -> &'static ptc_catalog::Deployment {
    use ptc_catalog::{
        Arg, Auth, Binding, Catalog, Deployment, OpenApi, Operation, Params, Source, Tools, Transport, Type, Types, Upstream,
    };

    const PAGES: Params = Params("query form explode - page\nquery form explode - limit");

    let spec = OpenApi { auth: &[Auth::Bearer { binding: "tok" }], ..OpenApi::new(service.url("/v1")) };
    let operation = Operation { params: PAGES, ..Operation::new("items", "/items") };
    let arg = |name| Arg { name, required: false, types: Types::from_types(&[Type::Integer]), label: "integer", allowed: "" };
    let tool = ptc_catalog::Tool {
        name: "items",
        args: vec![arg("limit"), arg("page")].leak(),
        closed: true,
        doc: "items",
        definition: r#"{"inputSchema":{"properties":{"limit":{"maximum":100,"type":"integer"},"page":{"minimum":1,"type":"integer"}}},"outputSchema":{"properties":{"items":{"type":"array"},"meta":{"additionalProperties":false,"properties":{"total":{"type":"integer"}},"type":"object"},"next":{}},"type":"object"}}"#,
        operation: Some(Box::leak(Box::new(operation))),
        ..ptc_catalog::Tool::EMPTY
    };
    let upstream =
        Upstream { name: "api", description: "", transport: Transport::OpenApi(spec), tools: Tools::table(vec![tool].leak()) };
    Box::leak(Box::new(Deployment {
        name: "made",
        credentials: vec![Binding { name: "tok", source: Source::Literal { value: "s3cr3t-token-value" } }].leak(),
        catalog: Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: vec![upstream].leak() })),
        ..Deployment::EMPTY
    }))
}

#[cfg(feature = "http")]
#[test]
fn upstreams_created_at_run_time_work_with_host_tools() {
    use crate::web::{Answer, Web};

    let service = Web::start(|_| Answer::json(200, r#"{"items": [1, 2, 3], "secret": "s3cr3t-token-value"}"#));
    let engine = builder().deployment(made(&service)).build().unwrap();
    let program = "(let [r (tool/call {:server \"api\" :tool \"items\"})] [(sum (:items (:value r))) (:secret (:value r)) (tool/slow {:ms 1})])";
    let answer = engine.run(Request::new(program));
    assert_eq!(shown(&answer), "[6 \"[REDACTED]\" 1]");
    assert_eq!((answer.calls().len(), answer.calls()[0].status, answer.tool_calls.len()), (1, "ok", 1));
    assert!(answer.metrics().upstream_result_bytes > 0);
    assert_eq!(service.requests()[0].header("authorization"), Some("Bearer s3cr3t-token-value"));
}

/// The list has 520 records in pages of ten. A program may call 50 times, and its loop does not check whether a call succeeded.
#[cfg(feature = "http")]
#[test]
fn loop_over_more_pages_than_calls_ends_with_notes_in_every_profile() {
    use crate::web::{Answer, Web};
    use ptc_runtime::protocol::revision::Era;
    use ptc_runtime::response::{Profile, answer};

    const RECORDS: usize = 520;
    let service = Web::start(|asked| {
        let query = asked.target.split_once('?').map_or("", |(_, query)| query);
        let number = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name)?.parse::<usize>().ok()).expect(name);
        let (page, limit) = (number("page="), number("limit="));
        let items: Vec<usize> = (0..RECORDS).skip((page - 1) * limit).take(limit).collect();
        let next = (page * limit < RECORDS).then_some(page + 1);
        Answer::json(200, json!({ "items": items, "next": next }))
    });
    let engine = builder().deployment(made(&service)).build().unwrap();
    let call = r#"(tool/call {:server "api" :tool "items" :args {:page p :limit 10}})"#;
    let looped = |call: &str| {
        format!(
            "(loop [p 1 acc []] (let [v (:value {call}) acc (into acc (:items v))] (if (:next v) (recur (:next v) acc) (count acc))))"
        )
    };
    let silent = engine.run(Request::new(looped(call)));
    assert_eq!((shown(&silent).as_str(), silent.calls().len()), ("500", 51));
    let notes = [
        "1 of 51 upstream calls failed and was not checked: 1 × api/items cap_exhausted \"this program has made its 50 upstream calls; \
         fetch more with each call\". A failed call has no :value, so data may be missing. Check :ok of each result, such as \
         (if (:ok r) (:value r) (fail (:message r))), or call with tool/value, which ends the program when a call fails",
        "budget of upstream calls: 50 for each program, 1 was refused. A refused call is {:ok false :reason :cap_exhausted}: fetch more \
         with each call, or split the work over programs",
    ];
    assert_eq!(silent.notes(), notes);
    for profile in [Profile::Slim, Profile::Structured, Profile::Debug] {
        let result: serde_json::Value =
            serde_json::from_str(&answer::tool_result(&silent.evaluation, profile, Era::Stateless)).unwrap();
        let (text, feedback) = (&result["content"][0]["text"], &result["structuredContent"]["feedback"]);
        // The text of the debug profile is JSON, in which quotes are escaped.
        let text = text.as_str().unwrap_or_default().replace("\\\"", "\"");
        assert!(notes.iter().all(|note| text.contains(note)), "{}: {text}", profile.name());
        assert_eq!(feedback.as_str(), (profile != Profile::Slim).then_some(notes.join("\n").as_str()), "{}", profile.name());
    }

    // Neither a program that checks each call nor one within its budget gets a note.
    let checked = engine.run(Request::new(looped(&format!("(let [r {call}] (if (:ok r) r nil))"))));
    assert_eq!(
        (shown(&checked).as_str(), checked.notes()),
        ("500", &notes[1..].iter().map(|note| (*note).to_owned()).collect::<Vec<_>>()[..])
    );
    let within = engine.run(Request::new(looped(&call.replace("10", "20"))));
    assert_eq!((shown(&within).as_str(), within.notes()), ("520", &[][..]));

    // A program can make millions of refused calls. They are counted and not listed.
    let beyond = call.replace(":page p", ":page 60");
    let endless = engine.run(Request::new(format!("(dotimes [_ 10000] {beyond})")));
    assert_eq!(endless.evaluation.unchecked_calls, [("api/items".to_owned(), 9_950)]);

    // Discovery forms have a separate budget.
    let looked_up = engine.run(Request::new(r#"(count (remove nil? (map (fn [_] (dir "api")) (range 28))))"#));
    assert_eq!(shown(&looked_up), "25");
    let note = "budget of discovery forms: 25 for each program, 3 were refused. A refused form gives nil: look up fewer things, or split \
                the work over programs";
    assert_eq!(looked_up.notes(), [note]);
    // A program that fails also gets the note.
    let failed = engine.run(Request::new(format!(
        "(let [p 1] (dotimes [_ 50] (tool/value {})) (+ 1 (:value {call})))",
        &call["(tool/call ".len()..call.len() - 1]
    )));
    assert_eq!(failed.notes(), notes);
    let result = answer::tool_result(&failed.evaluation, Profile::Slim, Era::Stateless);
    assert!(result.contains("type_error") && result.contains("1 of 51 upstream calls failed"), "{result}");
}

/// A literal is rejected before the program runs, and a computed value before anything is sent.
#[cfg(feature = "http")]
#[test]
fn bounds_of_arguments_are_checked_and_integers_are_preserved() {
    use crate::web::{Answer, Web};

    let service = Web::start(|_| Answer::json(200, "{}"));
    let engine = builder().deployment(made(&service)).build().unwrap();
    let run = |args: &str| {
        let answer = engine.run(Request::new(format!(r#"(:ok (tool/call {{:server "api" :tool "items" :args {args}}}))"#)));
        answer.value().map_or_else(|failure| failure.message.clone(), ptc_lisp::print::readable)
    };
    for args in ["{:limit 101}", "{:limit (+ 100 1)}"] {
        assert_eq!(run(args), "tool_error: tool 'api.items' rejected args: 'limit' must be at most 100, got 101", "{args}");
    }
    assert_eq!(run("{:page (- 1 1)}"), "tool_error: tool 'api.items' rejected args: 'page' must be at least 1, got 0");
    assert_eq!(service.requests().len(), 0, "a call that is refused sends nothing");
    assert_eq!(run("{:page (/ 4 2) :limit 100.0}"), "true");
    assert!(service.requests()[0].target.contains("page=2&limit=100"), "{}", service.requests()[0].target);
}

#[cfg(feature = "http")]
#[test]
fn undeclared_output_keys_are_a_note_or_a_fault() {
    use crate::web::{Answer, Web};

    let service = Web::start(|_| Answer::json(200, r#"{"items": [1, 2]}"#));
    let engine = builder().deployment(made(&service)).build().unwrap();
    let run = |source: &str| {
        engine.run(Request::new(format!("(defn value-of [r] (if (:ok r) (:value r) (fail (:message r)))) {source}")))
    };
    // The schema is closed, so that nothing is called.
    let closed = run(r#"(get-in (value-of (tool/call {:server "api" :tool "items"})) [:meta :totl])"#);
    assert_eq!(shown(&closed), "runtime_error: tool_error: api/items: what is at [:meta] has no 'totl', by its output schema");
    assert!(closed.value().unwrap_err().feedback.contains("did you mean 'total'?"), "{closed:?}");
    assert_eq!(service.requests().len(), 0, "a program that is refused sends nothing");
    // The schema is open, so that the key may be present.
    let open = run(r#"(count (:itms (value-of (tool/call {:server "api" :tool "items"}))))"#);
    assert_eq!(shown(&open), "0");
    let [note] = open.notes() else { panic!("{:?}", open.notes()) };
    assert!(note.ends_with("api/items: the value has no 'itms', by its output schema; did you mean 'items'?"), "{note}");
    assert!(note.starts_with("(:itms (value-of (tool/call "), "{note}");
    let right = run(r#"(count (:items (value-of (tool/call {:server "api" :tool "items"}))))"#);
    assert_eq!((shown(&right).as_str(), right.notes()), ("2", &[][..]));
}

#[cfg(feature = "http")]
#[test]
fn upstream_settings_are_those_of_the_embedding_program() {
    use crate::web::{Answer, Web};

    let service = Web::start(|_| Answer::json(200, format!("{{\"items\": {:?}}}", [1; 40])));
    let builder = || builder().deployment(made(&service));
    let program = "(defn ask [] (let [r (tool/call {:server \"api\" :tool \"items\"})] (or (:reason r) (count (:items (:value r)))))) [(ask) (ask)]";
    assert_eq!(shown(&builder().build().unwrap().run(Request::new(program))), "[40 40]");
    let capped = builder().upstreams(|upstreams| upstreams.max_response_bytes = Some(90)).build().unwrap();
    assert_eq!(shown(&capped.run(Request::new(program))), "[:response_too_large :response_too_large]");
    let once = builder().upstreams(|upstreams| upstreams.max_calls_per_program = 1).build().unwrap();
    assert_eq!(shown(&once.run(Request::new(program))), "[40 :cap_exhausted]");
    let refused = builder().upstreams(|upstreams| upstreams.extra_roots = Some(b"no certificate".as_slice().into())).build();
    assert!(matches!(refused, Err(BuildError::Certificates(_))), "{refused:?}");
}

#[test]
fn connect_and_shutdown_need_no_runtime_of_the_caller() {
    use ptc_catalog::{Catalog, Deployment, McpStdio, Tools, Transport, Upstream};

    static GONE: Deployment = Deployment {
        name: "gone",
        catalog: &Catalog {
            digest: "",
            search_index: &[],
            upstreams: &[Upstream {
                name: "absent",
                description: "",
                transport: Transport::McpStdio(McpStdio::new("/nowhere/no-such-program")),
                tools: Tools::NONE,
            }],
        },
        ..Deployment::EMPTY
    };
    let engine = builder().deployment(&GONE).build().unwrap();
    let faults = on_this_thread(engine.connect()).unwrap_err();
    let [(name, fault)] = &*faults else { panic!("{faults:?}") };
    assert_eq!((*name, fault.reason.name()), ("absent", "upstream_unavailable"));
    on_this_thread(engine.shut_down());
}

/// Waits for a future without an executor.
pub(crate) fn on_this_thread<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn stored_programs_are_validated_against_their_schemas() {
    use ptc_catalog::{Deployment, StoredProgram};

    static STORED: Deployment = Deployment {
        name: "stored",
        programs: &[
            StoredProgram {
                name: "always",
                description: "",
                source: "(str (:name (tool/find-user {:id 1})))",
                digest: "",
                args: r#"{"type": "object"}"#,
                output_schema: "",
            },
            StoredProgram {
                name: "half",
                description: "",
                source: "(quot (* 10 data/n) 2)",
                digest: "",
                args: r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#,
                output_schema: r#"{"type": "integer", "maximum": 100}"#,
            },
        ],
        ..Deployment::EMPTY
    };
    let engine = builder().deployment(&STORED).build().unwrap();
    assert_eq!(engine.programs().iter().map(|program| program.name).collect::<Vec<_>>(), ["always", "half"]);
    let half = |n: serde_json::Value| Request::stored("half").context(&json!({ "n": n })).unwrap();
    let answer = engine.run(half(json!(4)));
    assert_eq!((shown(&answer).as_str(), answer.validated()), ("20", Some("20")));
    // Own tools are available in stored programs. Arguments may be omitted if none is required.
    assert_eq!(shown(&engine.run(Request::stored("always"))), "\"Ada\"");
    for (request, expected) in [
        (Request::stored("haf"), "args_error: there is no stored program haf; did you mean half?"),
        (Request::stored("something"), "args_error: there is no stored program something"),
        (Request::stored("half"), "args_error: arguments.n: missing, but required"),
        (half(json!("4")), "args_error: arguments.n: expected integer, got string \"4\""),
        (half(json!(40)), "validation_error: return: expected at most 100, got integer 200"),
        (half(json!(4)).output_schema(r#"{"type": "string"}"#), "validation_error: return: expected string, got integer 20"),
    ] {
        assert_eq!(shown(&engine.run(request)), expected);
    }
}
