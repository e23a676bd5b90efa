//! `tool/all` over HTTP: pages by number and `Link` header, by token, one after the other and at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ptc_catalog::{OpenApi, Operation, Params, Tool, Transport, Type};
use ptc_lisp::Limits;

use crate::web::{Answer, Web};
use crate::world::{World, arg, operation, upstream};

const PAGES: usize = 20;

/// A service with twenty pages of three items at `/numbered` and `/tokens`, which answers after `delay`. The fourth page of `/failing` is a
/// failure.
fn world(delay: Duration) -> (World, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let web = Web::start(move |asked| {
        seen.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(delay);
        let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        let number = |name: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse::<usize>().ok())
        };
        let page = number("page").or(number("cursor")).unwrap_or(1);
        let rows: Vec<usize> = (0..3).map(|row| (page - 1) * 3 + row).collect();
        if path.ends_with("failing") && page == 4 {
            return Answer::json(503, "{}".to_owned());
        }
        if path.ends_with("tokens") {
            let next = if page < PAGES { format!("\"{}\"", page + 1) } else { "null".to_owned() };
            return Answer::json(200, format!("{{\"items\": {rows:?}, \"meta\": {{\"next_cursor\": {next}}}}}"));
        }
        let link = |page: usize, rel: &str| format!("<{path}?page={page}>; rel=\"{rel}\"");
        let links =
            if page < PAGES { format!("Link: {}, {}", link(page + 1, "next"), link(PAGES, "last")) } else { String::new() };
        let mut headers = vec!["Content-Type: application/json".to_owned()];
        headers.extend((!links.is_empty()).then_some(links));
        Answer::Full(200, headers, format!("{rows:?}").into())
    });
    let list = |name: &'static str, path: &'static str, argument: &'static str, kind: Type| {
        let params = Params(format!("query form explode - {argument}").leak());
        let args = vec![arg(argument, false, &[kind], "")].leak();
        Tool { args, closed: true, ..operation(name, Operation { id: name, path, params, default_args: &[] }) }
    };
    let tools = vec![
        list("numbered", "/numbered", "page", Type::Integer),
        list("tokens", "/tokens", "cursor", Type::String),
        list("failing", "/failing", "page", Type::Integer),
    ];
    let world = World::new(vec![upstream("api", Transport::OpenApi(OpenApi::new(web.url(""))), tools)]);
    (world, calls)
}

fn limits() -> Limits {
    Limits::default().wall_clock(Duration::from_secs(20))
}

#[test]
fn all_pages_come_in_order_by_number_and_by_token() {
    let (world, calls) = world(Duration::ZERO);
    for tool in ["numbered", "tokens"] {
        calls.store(0, Ordering::SeqCst);
        let program = format!(r#"(= (range 60) (tool/all {{:server "api" :tool "{tool}"}}))"#);
        let is_whole = world.evaluate(&program, limits()).unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert_eq!(is_whole.as_bool(), Some(true), "{tool}");
        assert_eq!(calls.load(Ordering::SeqCst), PAGES, "{tool}");
    }
    let seven = world.evaluate(r#"(tool/all {:server "api" :tool "numbered" :max 7})"#, limits()).unwrap();
    assert_eq!(ptc_lisp::print::readable(&seven), "[0 1 2 3 4 5 6]");
}

#[test]
fn failed_page_ends_the_program_with_what_had_arrived() {
    let (world, _) = world(Duration::ZERO);
    let error = world.evaluate(r#"(tool/all {:server "api" :tool "failing"})"#, limits()).unwrap_err();
    assert!(error.message.starts_with("tool/all: api/failing failed ("), "{}", error.message);
    assert!(error.message.ends_with(", after 3 pages with 9 items"), "{}", error.message);
}

#[test]
fn pages_by_number_take_a_quarter_of_the_time_of_a_loop() {
    let (world, _) = world(Duration::from_millis(50));
    let time = |program: &str| {
        let begun = Instant::now();
        let value = world.evaluate(program, limits()).expect(program);
        assert_eq!(value.as_int(), Some(60));
        begun.elapsed()
    };
    let looped = time(
        r#"(count (loop [page 1 rows []]
                    (if (> page 20) rows
                      (recur (inc page) (into rows (tool/value {:server "api" :tool "numbered" :args {:page page}}))))))"#,
    );
    let all = time(r#"(count (tool/all {:server "api" :tool "numbered"}))"#);
    assert!(all * 4 <= looped, "{all:?} and {looped:?}");
}
