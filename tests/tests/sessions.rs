//! Tests replicas of a listening server that share sessions through a real Redis server.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::redis::Redis;
use crate::redis::replica::{Client, PASSWORD, Replica, message, reason, replica};
use ptc_tests::process::{Background, free_port, run, wait_for};
use serde_json::{Value, json};

#[test]
#[ignore = "needs what .ci/peers installs"]
fn replicas_share_sessions_of_an_owner_and_survive_a_crash() {
    let redis = Redis::start(PASSWORD);
    let options = ["--max-sessions-per-owner", "2", "--program-timeout-ms", "600000"];
    let (one, two) = (Replica::start(&redis, &options), Replica::start(&redis, &options));
    let (mut here, mut there) = (one.client(), two.client());
    let id = here.open();
    let defined =
        here.eval(&id, "(def rate 3) (defn scaled [n] (* rate n)) (def add (let [five 5] #(+ five %))) (println \"made\")");
    assert_eq!(defined.pointer("/memory/stored_keys"), Some(&json!(["add", "rate", "scaled"])), "{defined}");
    assert_eq!(there.result(&id, "[(scaled 2) (add 2)]"), "user=> [6 7]");
    assert_eq!(there.result(&id, "(def rate 10) *1"), "user=> [6 7]");
    assert_eq!(here.result(&id, "[(scaled 2) (first *1)]"), "user=> [20 6]");
    for client in [&mut here, &mut there] {
        let seen = client.data("lisp_session_inspect", &json!({ "session_id": id, "view": "prints" }));
        assert_eq!((seen.get("prints"), seen.pointer("/session/turn")), (Some(&json!(["made"])), Some(&json!(4))), "{seen}");
        assert_eq!(seen.pointer("/session/title"), Some(&json!("shared")));
    }
    // Bindings have the same size in memory on both replicas.
    let usage = |client: &mut Client| client.data("lisp_session_inspect", &json!({ "session_id": id }))["usage"].clone();
    assert_eq!(usage(&mut here), usage(&mut there));
    // A fault changes nothing, on either replica.
    assert_eq!(reason(&there.eval(&id, "(def rate 0) (fail \"no\")")), "fail");
    assert_eq!(here.result(&id, "rate"), "user=> 10");
    // Limits count the sessions of all replicas.
    let second = there.open();
    assert_eq!(reason(&here.data("lisp_session_start", &json!({}))), "session_limit_exceeded");
    there.data("lisp_session_close", &json!({ "session_id": second }));
    assert_eq!(reason(&here.eval(&second, "1")), "session_closed");
    assert_eq!(reason(&here.eval("ptcs_unknown", "1")), "session_not_found");
    let forgot = there.data("lisp_session_forget", &json!({ "session_id": id, "bindings": ["add"], "clear": ["prints"] }));
    assert_eq!(forgot.get("stored_keys"), Some(&json!(["rate", "scaled"])));
    assert_eq!(reason(&here.eval(&id, "(add 1)")), "runtime_error");
    // The replica that evaluates is killed. Its lease expires, and the other replica continues with the session's last state.
    here.begin(&id, "(def rate 1000) (loop [] (recur))", &mut there);
    assert_eq!(reason(&there.eval(&id, "1")), "session_busy");
    assert_eq!(reason(&there.data("lisp_session_forget", &json!({ "session_id": id, "clear": ["memory"] }))), "session_busy");
    one.signal("-KILL");
    assert_eq!(there.result(&id, "(scaled 2)"), "user=> 20");
    drop(one);
    let three = Replica::start(&redis, &options);
    assert_eq!(three.client().result(&id, "(scaled 3)"), "user=> 30");
    // No key in the store contains a password or a name that a client could use as its own.
    let keys = redis.cli(&["keys", "*"]);
    assert!(keys.lines().all(|key| key.starts_with("ptc:plain:")) && !keys.contains("loopback"), "{keys}");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn closing_a_session_ends_its_evaluation_on_any_replica() {
    let redis = Redis::start(PASSWORD);
    let options = ["--program-timeout-ms", "600000"];
    let (one, two) = (Replica::start(&redis, &options), Replica::start(&redis, &options));
    let (mut here, mut there, mut beside) = (one.client(), two.client(), one.client());
    for closer in [&mut there, &mut beside] {
        let id = here.open();
        here.begin(&id, "(loop [] (recur))", closer);
        assert_eq!(closer.data("lisp_session_close", &json!({ "session_id": id })).get("closed"), Some(&json!(true)));
        let (_, ended) = here.receive();
        let ended = ended.pointer("/result/structuredContent").cloned().unwrap_or_default();
        assert_eq!((reason(&ended), ended.get("session")), ("cancelled", Some(&Value::Null)), "{ended}");
        assert!(message(&ended).contains("the session was closed while this ran"), "{ended}");
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn concurrent_evaluations_of_a_session_are_serialized() {
    let redis = Redis::start(PASSWORD);
    let replicas = [Replica::start(&redis, &[]), Replica::start(&redis, &[])];
    let id = replicas[0].client().open();
    replicas[0].client().result(&id, "(def n 0)");
    let (clients, each) = (6, 20);
    std::thread::scope(|scope| {
        for at in 0..clients {
            let (replica, id) = (&replicas[at % 2], &id);
            scope.spawn(move || {
                let mut client = replica.client();
                for _ in 0..each {
                    client.result(id, "(def n (inc n))");
                }
            });
        }
    });
    assert_eq!(replicas[1].client().result(&id, "n"), format!("user=> {}", clients * each));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn commit_with_an_expired_lease_is_refused() {
    let redis = Redis::start(PASSWORD);
    let options = ["--program-timeout-ms", "600000"];
    let (one, two) = (Replica::start(&redis, &options), Replica::start(&redis, &options));
    let (mut here, mut there) = (one.client(), two.client());
    let id = here.open();
    here.result(&id, "(def x :first)");
    // The program runs long enough to be still running when its process is stopped. It continues when the process continues.
    here.begin(&id, "(def x :late) (loop [n 0] (if (< n 30000000) (recur (inc n)) n))", &mut there);
    one.signal("-STOP");
    assert_eq!(there.result(&id, "(def x :second) x"), "user=> :second");
    one.signal("-CONT");
    let (_, late) = here.receive();
    let late = late.pointer("/result/structuredContent").cloned().unwrap_or_default();
    assert_eq!(reason(&late), "session_store_unavailable", "{late}");
    assert!(message(&late).contains("went on elsewhere"), "{late}");
    assert_eq!(here.result(&id, "x"), "user=> :second");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn simultaneous_evaluations_are_each_committed_once_or_refused() {
    let redis = Redis::start(PASSWORD);
    let replicas = [Replica::start(&redis, &[]), Replica::start(&redis, &[])];
    let (rounds, together) = (40, Barrier::new(2));
    let id = replicas[0].client().open();
    replicas[0].client().result(&id, "(def log [])");
    // Each evaluation writes its own name. The results that its client received must be true.
    let told: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2)
            .map(|at| {
                let (replica, id, together) = (&replicas[at], &id, &together);
                scope.spawn(move || {
                    let mut client = replica.client();
                    let mut run = |round| {
                        together.wait();
                        let answer = client.eval(id, &format!("(def log (conj log [{at} {round}]))"));
                        assert!(["", "session_busy"].contains(&reason(&answer)), "{answer}");
                        reason(&answer).is_empty()
                    };
                    (0..rounds).map(&mut run).collect()
                })
            })
            .collect();
        both.into_iter().map(|each| each.join().expect("a client")).collect()
    });
    let mut client = replicas[1].client();
    let log = client.result(&id, "(count log)");
    let kept = told.iter().flatten().filter(|kept| **kept).count();
    assert_eq!(log, format!("user=> {kept}"));
    for (at, told) in told.iter().enumerate() {
        // The entries are in the order in which the client sent them, each once.
        let expected: Vec<usize> = (0..rounds).filter(|round| told[*round]).collect();
        let mine = format!("(= {expected:?} (mapv second (filter #(= {at} (first %)) log)))").replace(',', "");
        assert_eq!(client.result(&id, &mine), "user=> true", "{expected:?}");
    }
    // In every round at least one of the two ran.
    assert!((0..rounds).all(|round| told.iter().any(|told| told[round])), "{told:?}");
    // One turn is for the definition, one for each stored evaluation, and three for the queries.
    let seen = client.data("lisp_session_inspect", &json!({ "session_id": id }));
    assert_eq!(seen.pointer("/session/turn"), Some(&json!(1 + kept + 3)), "{seen}");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn session_store_is_reached_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let port = free_port();
    let mut command = Command::new("redis-server");
    command.args([
        "--port",
        "0",
        "--tls-port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--tls-auth-clients",
        "no",
    ]);
    command.args(["--requirepass", PASSWORD, "--tls-cert-file"]).arg(&certificate).arg("--tls-key-file").arg(&key);
    let _redis = Background::start(&mut command).ready_on(port);
    let url = format!("rediss://:{PASSWORD}@localhost:{port}/1");
    let start = |options: &[&str]| {
        let port = free_port();
        let child = replica(port, &url, options).stderr(Stdio::null()).spawn().expect("the server starts");
        let replica = Replica { child, port };
        wait_for(|| TcpStream::connect(("127.0.0.1", port)).is_ok(), "the server");
        replica
    };
    let trusted = start(&["--ca-file", certificate.to_str().expect("plain text")]);
    let mut client = trusted.client();
    let id = client.open();
    client.result(&id, "(def x 5)");
    assert_eq!(client.result(&id, "x"), "user=> 5");
    assert!(trusted.ready().starts_with("HTTP/1.1 200"));
    // Without `--ca-file` the certificate is not trusted.
    let wary = start(&[]);
    assert_eq!(reason(&wary.client().data("lisp_session_start", &json!({}))), "session_store_unavailable");
    assert!(wary.ready().starts_with("HTTP/1.1 503"));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn stored_sessions_end_at_maximum_age_and_when_idle() {
    let redis = Redis::start(PASSWORD);
    let options = ["--session-ttl-ms", "4000", "--session-idle-timeout-ms", "1500", "--program-timeout-ms", "600000"];
    let (one, two) = (Replica::start(&redis, &options), Replica::start(&redis, &options));
    let (mut here, mut there) = (one.client(), two.client());
    // Listing does not count as use, so a session that is only listed expires too.
    let listed = here.open();
    wait_for(|| there.status(&listed).is_empty(), "the end of an idle session");
    assert_eq!(reason(&there.eval(&listed, "1")), "session_closed");
    let used = here.open();
    let mut turns = 0;
    let end = loop {
        let answer = there.eval(&used, "1");
        if !reason(&answer).is_empty() {
            break answer;
        }
        turns += 1;
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(turns > 1);
    assert_eq!(reason(&end), "session_closed", "{end}");
    assert_eq!(reason(&here.eval(&used, "1")), "session_closed");
    // An evaluation counts as use, however long it takes. The maximum age ends the session nevertheless, and nothing of it is
    // kept.
    let running = here.open();
    here.begin(&running, "(loop [] (recur))", &mut there);
    wait_for(|| there.status(&running).is_empty(), "the end of a session by age");
    assert_eq!(redis.cli(&["keys", "*session:*"]).trim(), "");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn lost_session_store_is_reported_and_reconnected() {
    let mut redis = Redis::start(PASSWORD);
    let replica = Replica::start(&redis, &[]);
    let mut client = replica.client();
    let id = client.open();
    client.result(&id, "(defn f [n] (* 2 n))");
    assert!(replica.ready().starts_with("HTTP/1.1 200"));
    redis.kill();
    let failed = client.eval(&id, "(f 1)");
    assert_eq!(reason(&failed), "session_store_unavailable", "{failed}");
    assert!(message(&failed).contains("redis://127.0.0.1") && !failed.to_string().contains(PASSWORD), "{failed}");
    for (tool, arguments) in
        [("lisp_session_start", json!({})), ("lisp_session_list", json!({})), ("lisp_session_close", json!({ "session_id": id }))]
    {
        assert_eq!(reason(&client.data(tool, &arguments)), "session_store_unavailable", "{tool}");
    }
    let ready = replica.ready();
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("session_store_unavailable"), "{ready}");
    let without = client.data("lisp_eval", &json!({ "program": "(+ 1 2)" }));
    assert_eq!(without.get("result"), Some(&json!("user=> 3")), "what needs no session goes on");
    // A server that starts meanwhile waits for its store.
    let other = Replica::start(&redis, &[]);
    assert!(other.ready().starts_with("HTTP/1.1 503"));
    redis.restart();
    for replica in [&replica, &other] {
        wait_for(|| replica.ready().starts_with("HTTP/1.1 200"), "the store");
        assert_eq!(replica.client().result(&id, "(f 21)"), "user=> 42");
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn state_from_the_store_counts_in_the_memory_budget() {
    let redis = Redis::start(PASSWORD);
    let large = ["--max-session-binding-bytes", "100000000", "--max-session-memory-bytes", "100000000"];
    let options = ["--program-timeout-ms", "600000", "--http-metrics", "--program-memory-limit-bytes", "100000000"];
    let replica = Replica::start(&redis, &[&large[..], &options].concat());
    let mut client = replica.client();
    let id = client.open();
    client.result(&id, "(def numbers (vec (range 200000))) nil");
    wait_for(|| replica.used_bytes() == 0, "the end of the first evaluation");
    let mut running = replica.client();
    let arguments = json!({ "session_id": id, "program": "(loop [] (recur))" });
    running.send("tools/call", &json!({ "name": "lisp_session_eval", "arguments": arguments }));
    wait_for(|| client.status(&id) == "running", "the evaluation");
    wait_for(|| replica.used_bytes() >= 3_200_000, "the memory of its state");
    client.data("lisp_session_close", &json!({ "session_id": id }));
    running.receive();
    wait_for(|| replica.used_bytes() == 0, "the end of the evaluation");
}

/// A store that accepts connections and never replies releases the programs that wait for it.
#[test]
#[ignore = "needs what .ci/peers installs"]
fn store_that_does_not_reply_releases_its_programs_after_a_time_limit() {
    const CALLS: usize = 20;
    let redis = Redis::start(PASSWORD);
    let replica = Replica::start(&redis, &["--max-concurrent-calls", "20", "--max-sessions-per-owner", "20"]);
    let mut first = replica.client();
    let ids: Vec<String> = (0..CALLS).map(|_| first.open()).collect();
    let mut clients: Vec<Client> = ids.iter().map(|_| replica.client()).collect();
    redis.signal("-STOP");
    let began = Instant::now();
    for (client, id) in clients.iter_mut().zip(&ids) {
        client.send("tools/call", &json!({ "name": "lisp_session_eval", "arguments": { "session_id": id, "program": "1" } }));
    }
    for client in &mut clients {
        let answer = client.receive().1.pointer("/result/structuredContent").cloned().unwrap_or_default();
        assert_eq!(reason(&answer), "session_store_unavailable", "{answer}");
        assert!(message(&answer).contains("cannot be used: "), "{answer}");
    }
    // A reply may take 5 s, and an attempt on a new connection up to 7 s more.
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert_eq!(first.data("lisp_eval", &json!({ "program": "(+ 1 2)" })).get("result"), Some(&json!("user=> 3")));
    redis.signal("-CONT");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn unstorable_value_is_refused_immediately() {
    let redis = Redis::start(PASSWORD);
    let replica = Replica::start(&redis, &[]);
    let mut client = replica.client();
    let id = client.open();
    client.result(&id, "(def x 1)");
    for (program, holder) in [
        ("(def x 2) (def xf (map inc)) nil", "`xf` holds a transducer"),
        ("(def x 2) (def xs (range)) nil", "`xs` holds an infinite sequence"),
    ] {
        let refused = client.eval(&id, program);
        assert_eq!(reason(&refused), "session_not_storable", "{refused}");
        assert!(message(&refused).starts_with(holder), "{refused}");
    }
    assert_eq!(client.result(&id, "x"), "user=> 1");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn wrong_credentials_fail_the_start_and_are_not_shown() {
    let redis = Redis::start(PASSWORD);
    for credentials in ["", ":another-not-a-secret@", "user:another-not-a-secret@"] {
        let ended = run(&mut replica(free_port(), &redis.url(credentials), &[]));
        assert_eq!(ended.code, Some(2), "{credentials}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("--session-store redis://127.0.0.1") && ended.stderr.contains("refuse"),
            "{credentials}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("another-not-a-secret"), "{}", ended.stderr);
    }
    for (url, complaint) in [
        ("rediss://127.0.0.1#insecure", "only a port and a database"),
        ("http://x:not-a-secret@y", "expected memory, or redis[s]://"),
    ] {
        let ended = run(&mut replica(free_port(), url, &[]));
        assert_eq!(ended.code, Some(2), "{url}");
        assert!(ended.stderr.contains(complaint) && !ended.stderr.contains("not-a-secret"), "{}", ended.stderr);
    }
    // The address can come from a file, so that no list of processes shows its password.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store");
    let from_file = |address: &str| {
        std::fs::write(&file, format!("{address}\n")).expect("a file");
        let mut command = replica(free_port(), "", &["--session-store-file", file.to_str().expect("plain text")]);
        run(command.env_remove("PTC_RUNNER_MCP_SESSION_STORE"))
    };
    let refused = from_file(&redis.url(":another-not-a-secret@"));
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("--session-store redis://127.0.0.1") && refused.stderr.contains("refuse"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("another-not-a-secret"), "{}", refused.stderr);
    let unreadable = from_file("not an address of a store");
    assert_eq!(unreadable.code, Some(2));
    assert!(
        unreadable.stderr.contains("--session-store-file: expected a readable file that holds redis"),
        "{}",
        unreadable.stderr
    );
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn evaluations_in_a_store_share_the_threads_of_all_programs() {
    const SESSIONS: usize = 100;
    let redis = Redis::start(PASSWORD);
    let options = [
        "--max-sessions",
        "200",
        "--max-sessions-per-owner",
        "200",
        "--program-timeout-ms",
        "600000",
        "--queue-timeout-ms",
        "60000",
    ];
    let replica = Replica::start(&redis, &options);
    let mut first = replica.client();
    let ids: Vec<String> = (0..SESSIONS).map(|_| first.open()).collect();
    assert_eq!(first.result(&ids[0], "(def n (reduce + (pmap inc (range 60)))) n"), "user=> 1830");
    let send = |client: &mut Client, id: &String, program: &str| {
        client.send("tools/call", &json!({ "name": "lisp_session_eval", "arguments": { "session_id": id, "program": program } }));
    };
    // While the store does not answer, evaluations wait for it, and other programs run.
    let mut clients: Vec<Client> = ids.iter().map(|_| replica.client()).collect();
    redis.signal("-STOP");
    for (client, id) in clients.iter_mut().zip(&ids) {
        send(client, id, "1");
    }
    for _ in 0..50 {
        let began = Instant::now();
        let answer = first.data("lisp_eval", &json!({ "program": "(+ 1 2)" }));
        assert_eq!(answer.get("result"), Some(&json!("user=> 3")));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    redis.signal("-CONT");
    for client in &mut clients {
        let answer = client.receive().1.pointer("/result/structuredContent").cloned().unwrap_or_default();
        assert!(answer.get("result") == Some(&json!("user=> 1")) || reason(&answer) == "session_store_unavailable", "{answer}");
    }
    wait_for(|| first.eval(&ids[0], "n").get("result") == Some(&json!("user=> 1830")), "the store");
    // Each of these has branches of its own that have begun.
    for (client, id) in clients.iter_mut().zip(&ids) {
        send(client, id, "(doall (pmap (fn [_] (loop [] (recur))) (range 4)))");
    }
    let running = |client: &mut Client| {
        let all = client.data("lisp_session_list", &json!({}));
        let all = all.get("sessions").and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter().filter(|session| session.get("eval_status") == Some(&json!("running"))).count()
    };
    wait_for(|| running(&mut first) == SESSIONS, "the evaluations");
    let status = std::fs::read_to_string(format!("/proc/{}/status", replica.child.id())).expect("it lives");
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).expect("a field of Linux");
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    assert!(threads.trim().parse::<usize>().is_ok_and(|threads| threads <= 16 * processors + 20), "{threads} threads");
    for id in &ids {
        first.data("lisp_session_close", &json!({ "session_id": id }));
    }
    for client in &mut clients {
        let answer = client.receive().1.pointer("/result/structuredContent").cloned().unwrap_or_default();
        assert_eq!(reason(&answer), "cancelled", "{answer}");
    }
}

/// A session in a store is looked up when the call has a place.
#[test]
#[ignore = "needs what .ci/peers installs"]
fn refusal_by_a_store_reports_the_time_in_the_queue() {
    let redis = Redis::start(PASSWORD);
    let options = [
        "--max-concurrent-calls",
        "1",
        "--program-timeout-ms",
        "600000",
        "--queue-timeout-ms",
        "60000",
        "--debug-tool",
        "--http-metrics",
    ];
    let replica = Replica::start(&redis, &options);
    let (mut first, mut waiting, mut beside) = (replica.client(), replica.client(), replica.client());
    let session = first.open();
    first.begin(&session, "(loop [] (recur))", &mut beside);
    waiting.send("tools/call", &json!({ "name": "lisp_session_eval", "arguments": { "session_id": "nope", "program": "1" } }));
    wait_for(|| replica.get("/metrics").contains("ptc_programs_queued 1\n"), "the queue");
    std::thread::sleep(Duration::from_millis(50));
    beside.data("lisp_session_close", &json!({ "session_id": session }));
    let refused = waiting.receive().1.pointer("/result/structuredContent").cloned().unwrap_or_default();
    assert_eq!(reason(&refused), "session_not_found", "{refused}");
    let recent = beside.data("lisp_debug", &json!({ "op": "recent", "errors_only": true }));
    let calls = recent.get("calls").and_then(Value::as_array).cloned().unwrap_or_default();
    let call = calls.iter().find(|call| reason(call) == "session_not_found").unwrap_or_else(|| panic!("{recent}"));
    assert!(call.get("queued_ms").and_then(Value::as_u64).is_some_and(|waited| waited >= 50), "{call}");
}
