//! `tool/all` over HTTP: the conventions of published APIs, complete and with faults, with pages in sequence and in parallel.

#[path = "../../check/tests/conventions/mod.rs"]
mod conventions;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ptc_catalog::{OpenApi, Operation, Params, Tool, Transport, Type};
use ptc_lisp::{Limits, Value};

use crate::web::{Answer, Web};
use crate::world::{World, arg, operation, upstream};

use self::conventions::{CONVENTIONS, COUNTS, Convention, Service, TROUBLES, Trouble, is_unnoticed};

const PAGES: usize = 20;

/// A world with the HTTP service of a convention.
struct Peer {
    world: World,
    service: Arc<Mutex<Service>>,
    base: &'static str,
}

impl Peer {
    fn start(convention: &'static Convention) -> Peer {
        let service = Arc::new(Mutex::new(Service::new(0, Trouble::None, "")));
        let shared = Arc::clone(&service);
        let web = Web::start(move |asked| {
            let answer = shared.lock().unwrap().respond(convention, &arguments(&asked.target));
            let Some((body, link)) = answer else { return Answer::json(500, "{}") };
            let mut headers = vec!["Content-Type: application/json".to_owned()];
            headers.extend(link.map(|link| format!("Link: {link}")));
            Answer::Full(200, headers, body.into_bytes())
        });
        let (base, tool) = (web.url(""), conventions::tool(convention, true));
        let upstreams = vec![upstream("service", Transport::OpenApi(OpenApi::new(base)), vec![tool])];
        let world = World::with(upstreams, Vec::new(), |settings| settings.max_calls_per_program = 200);
        Peer { world, service, base }
    }

    /// Reads all pages. Returns the ids of all items, or the error of the program.
    fn read(&self, count: usize, trouble: Trouble) -> Result<Vec<usize>, String> {
        *self.service.lock().unwrap() = Service::new(count, trouble, self.base);
        let program = r#"(map :id (tool/all {:server "service" :tool "list"}))"#;
        let ids = self.world.evaluate(program, limits()).map_err(|error| error.message)?;
        let id = |item: &Value| item.as_str()?.strip_prefix('i')?.parse().ok();
        Ok(ids.items().unwrap().map(|item| id(item).expect("an id")).collect())
    }
}

/// Returns the arguments in the query of a request to the mock service.
fn arguments(target: &str) -> Value {
    let pairs = target.split_once('?').map_or("", |(_, query)| query).split('&').filter_map(|pair| pair.split_once('='));
    Value::map(pairs.map(|(name, text)| {
        let value = text.parse().map_or_else(|_| Value::string(text), Value::int);
        (Value::string(name.replace("%24", "$")), value)
    }))
}

#[test]
fn lists_of_every_convention_are_complete_or_a_fault() {
    for convention in CONVENTIONS {
        let peer = Peer::start(convention);
        for count in COUNTS {
            let name = format!("{} with {count} items", convention.name);
            let all: Vec<usize> = (0..count).collect();
            assert_eq!(peer.read(count, Trouble::None), Ok(all.clone()), "{name}");
            for trouble in TROUBLES {
                match peer.read(count, *trouble) {
                    Ok(ids) if ids != all => assert!(is_unnoticed(convention, *trouble), "{name}: {trouble:?}: {ids:?}"),
                    Ok(_) => {
                        // A second page is requested unless the first one is known to be the last.
                        let is_failed = *trouble == Trouble::Fails && count > conventions::SIZE;
                        let is_miscounted = *trouble == Trouble::WrongTotal && convention.has_total;
                        assert!(!is_failed && !is_miscounted, "{name}: {trouble:?} is not noticed");
                    }
                    Err(message) => assert!(message.starts_with("tool/all: service/list"), "{name}: {message}"),
                }
            }
        }
    }
}

/// Returns a service with twenty pages of three items at `/numbered`, `/counted` and `/tokens`, which answers after `delay`. The
/// fourth page of `/failing` fails.
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
        if path.ends_with("counted") {
            let rows = if page > PAGES { &[] } else { rows.as_slice() };
            return Answer::json(200, format!("{{\"items\": {rows:?}, \"total\": {}}}", PAGES * 3));
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
        Tool { args, closed: true, ..operation(name, Operation { params, ..Operation::new(name, path) }) }
    };
    let tools = vec![
        list("numbered", "/numbered", "page", Type::Integer),
        list("counted", "/counted", "page", Type::Integer),
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
fn all_pages_are_in_order_by_number_and_by_token() {
    let (world, calls) = world(Duration::ZERO);
    // Without a total, the first and the last page are read twice. With a total, the number of the first page is not declared, so
    // that page 1 is read twice, and one more request shows that nothing follows the full last page.
    for (tool, further) in [("numbered", 2), ("counted", 2), ("tokens", 0)] {
        calls.store(0, Ordering::SeqCst);
        let program = format!(r#"(= (range 60) (tool/all {{:server "api" :tool "{tool}"}}))"#);
        let is_whole = world.evaluate(&program, limits()).unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert_eq!(is_whole.as_bool(), Some(true), "{tool}");
        assert_eq!(calls.load(Ordering::SeqCst), PAGES + further, "{tool}");
    }
    let seven = world.evaluate(r#"(tool/all {:server "api" :tool "numbered" :max 7})"#, limits()).unwrap();
    assert_eq!(ptc_lisp::print::readable(&seven), "[0 1 2 3 4 5 6]");
}

#[test]
fn failed_page_ends_the_program_with_the_items_read() {
    let (world, _) = world(Duration::ZERO);
    let error = world.evaluate(r#"(tool/all {:server "api" :tool "failing"})"#, limits()).unwrap_err();
    assert!(error.message.starts_with("tool/all: api/failing failed ("), "{}", error.message);
    assert!(error.message.ends_with(", after 3 pages with 9 items"), "{}", error.message);
}

#[test]
fn failed_page_cancels_other_requests_in_flight() {
    let web = Web::start(|asked| {
        let page: usize = asked.target.rsplit_once('=').and_then(|(_, page)| page.parse().ok()).unwrap_or(1);
        if page == 3 {
            return Answer::json(500, "{}");
        }
        if page > 3 {
            return Answer::Hang;
        }
        Answer::json(200, format!("{{\"rows\": [{page}], \"page\": {page}, \"pages\": 20, \"total\": 20}}"))
    });
    let operation = Operation { params: Params("query form explode - page"), ..Operation::new("list", "/list") };
    let args = vec![arg("page", false, &[Type::Integer], "")].leak();
    let list = Tool { args, closed: true, ..crate::world::operation("list", operation) };
    let world = World::new(vec![upstream("api", Transport::OpenApi(OpenApi::new(web.url(""))), vec![list])]);
    let begun = Instant::now();
    let error = world.evaluate(r#"(tool/all {:server "api" :tool "list"})"#, limits()).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}: {}", begun.elapsed(), error.message);
    assert!(
        error.message.contains("(upstream_unavailable)") && error.message.ends_with(", after 2 pages with 2 items"),
        "{}",
        error.message
    );
}

#[test]
fn pages_by_number_take_a_quarter_of_the_time_of_a_loop() {
    // The delay is long compared with variations of the machine's load.
    let (world, _) = world(Duration::from_millis(200));
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
    let all = time(r#"(count (tool/all {:server "api" :tool "counted"}))"#);
    assert!(all * 4 <= looped, "{all:?} and {looped:?}");
}
