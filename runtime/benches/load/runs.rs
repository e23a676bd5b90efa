//! Run 1 to run 6. Programs that are repeated are sent again as soon as they end, refused ones after the delay that the refusal
//! names.

use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::generator::{self, Plan, Stream};
use crate::mcp::{Call, Session, next_number};
use crate::options::{Options, Peers};
use crate::record::{Class, Record};
use crate::report::{self, Bound, Row, all_answered, at_most};
use crate::server::{Kind, Server, Upstreams, Usage, eval};

/// Rounds of additions before the measurement of a run.
const WARM_UP: usize = 5;
/// Connections for arrivals, opened before a run.
const ARRIVAL_CONNECTIONS: usize = 16;

const ENDLESS: &str = r#"{"program":"(loop [i 0] (recur (inc i)))"}"#;
const CALL_HANGING: &str = r#"{"program":"(:reason (tool/call {:server \"hang\" :tool \"call\"}))"}"#;
const CALL_QUICK: &str = r#"{"program":"(:value (tool/call {:server \"quick\" :tool \"call\"}))"}"#;
/// A program that makes 1,000 vectors of 6,250 integers: 100 MB in values of 16 bytes, allocated while the program runs.
const LARGE: &str = r#"{"program":"(reduce + (map count (mapv (fn [i] (vec (range 6250))) (range 1000))))"}"#;

/// `--memory-budget-bytes` of run 5.
const BUDGET: u64 = 500_000_000;
/// Maximum memory of the process under that budget: 1.2 times the budget and 32 MB.
const BUDGET_BOUND: u64 = BUDGET * 12 / 10 + 32_000_000;
/// Maximum memory with 2,000 waiting programs.
const WAITING_BOUND: u64 = 200_000_000;
/// Default of `--queue-timeout-ms`.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);

/// State that the runs share.
struct Bench<'a> {
    options: &'a Options,
    upstreams: Upstreams,
    rows: Vec<Row>,
    bounds: Vec<Bound>,
    all_met: bool,
}

/// Runs everything that was selected. Returns whether all bounds are met.
pub(crate) async fn all(options: &Options) -> bool {
    if cfg!(debug_assertions) {
        println!("This build is not optimised: its figures mean nothing.");
    }
    let mut bench = Bench { options, upstreams: Upstreams::start(), rows: Vec::new(), bounds: Vec::new(), all_met: true };
    let wanted = |name: &str| options.runs.contains(&name);
    let ours = (options.peers != Peers::Only).then_some(Kind::Ptc);
    let peers: &[Kind] = if options.peers == Peers::Without { &[] } else { &Kind::PEERS };
    for kind in ours.into_iter().chain(peers.iter().copied()) {
        if wanted("run1") {
            bench.waiting_programs(kind, "1a", 500, 20, &[], Duration::from_millis(1600)).await;
            bench.waiting_programs(kind, "1b", 2000, 50, &["--max-concurrent-calls", "2500"], Duration::from_secs(3)).await;
        }
        if wanted("run2") {
            bench.arrivals_beside_waiting(kind).await;
        }
    }
    bench.print();
    if ours.is_none() {
        return bench.all_met;
    }
    if wanted("run3") {
        bench.endless_loops().await;
    }
    if wanted("run4") {
        bench.hanging_upstream().await;
    }
    if wanted("run5") {
        bench.large_programs().await;
    }
    if wanted("run6") {
        bench.many_short_programs().await;
    }
    bench.all_met
}

impl Bench<'_> {
    /// Run 1: programs that each wait for one second, all started at once.
    async fn waiting_programs(
        &mut self,
        kind: Kind,
        run: &'static str,
        programs: usize,
        sessions: usize,
        flags: &[&str],
        most: Duration,
    ) {
        let Some(server) = self.start(kind, flags) else { return };
        let sessions = Session::open_many(server.address, sessions).await;
        warm_up(&server, &sessions, kind).await;
        let programs = self.options.scaled(programs);
        let plan = Plan::AtOnce { programs, again: None };
        let streams = vec![stream(format!("{programs} programs of 1 s"), &sessions, kind.wait(), plan)];
        let records = generator::run(server.address, programs, streams).await;
        let usage = server.usage();
        if kind == Kind::Ptc {
            self.bounds.push(all_answered(run, &records[0]));
            self.bounds.push(at_most(run, &records[0], 1.0, most));
            if run == "1b" {
                self.bounds.push(report::memory(run, usage, WAITING_BOUND));
            }
        }
        self.add(run, kind, records, usage);
    }

    /// Run 2: additions at a fixed rate while other programs wait.
    async fn arrivals_beside_waiting(&mut self, kind: Kind) {
        let Some(server) = self.start(kind, &[]) else { return };
        let adding = Session::open_many(server.address, 10).await;
        let waiting = Session::open_many(server.address, 10).await;
        warm_up(&server, &adding, kind).await;
        let programs = self.options.scaled(200);
        let streams = vec![
            self.arrivals("(+ 1 2)", 2000.0, &adding, kind.add()),
            self.sent_again("programs of 1 s", programs, &waiting, kind.wait()),
        ];
        let records = generator::run(server.address, programs + ARRIVAL_CONNECTIONS, streams).await;
        if kind == Kind::Ptc {
            self.bounds.extend(records.iter().map(|record| all_answered("2", record)));
            self.bounds.push(at_most("2", &records[0], 0.99, Duration::from_millis(10)));
        }
        self.add("2", kind, records, server.usage());
    }

    /// Run 3: endless loops of one session beside short programs of another session.
    async fn endless_loops(&mut self) {
        let Some(server) = self.start(Kind::Ptc, &[]) else { return };
        let sessions = Session::open_many(server.address, 2).await;
        let (looping, small) = sessions.split_at(1);
        let loops = busy_loop(&server, &small[0], Duration::from_millis(50)).await;
        let programs = self.options.scaled(200);
        let streams = vec![
            self.arrivals("(+ 1 2)", 100.0, small, Kind::Ptc.add()),
            self.arrivals("loops of 50 ms", 5.0, small, eval(&loops, "user=> ")),
            self.sent_again("endless loops", programs, looping, eval(ENDLESS, "\"text\":\"timeout")),
        ];
        let records = generator::run(server.address, programs + ARRIVAL_CONNECTIONS, streams).await;
        self.bounds.extend(records.iter().take(2).map(|record| all_answered("3", record)));
        for (record, most) in records.iter().zip([60, 400]) {
            self.bounds.push(at_most("3", record, 0.99, Duration::from_millis(most)));
        }
        self.add("3", Kind::Ptc, records, server.usage());
        self.print();
    }

    /// Run 4: programs that call a hanging upstream, beside programs that call another upstream.
    async fn hanging_upstream(&mut self) {
        let Some(server) = self.start(Kind::Ptc, &[]) else { return };
        let sessions = Session::open_many(server.address, 20).await;
        let (other, hanging) = sessions.split_at(2);
        let programs = self.options.scaled(1000);
        let streams = vec![
            self.arrivals("calls of another upstream", 100.0, other, eval(CALL_QUICK, "waited")),
            self.sent_again("programs that hang", programs, hanging, eval(CALL_HANGING, "user=> :timeout")),
        ];
        let records = generator::run(server.address, programs + ARRIVAL_CONNECTIONS, streams).await;
        self.bounds.push(all_answered("4", &records[0]));
        self.bounds.push(at_most("4", &records[0], 0.99, Duration::from_millis(60)));
        self.add("4", Kind::Ptc, records, server.usage());
        self.print();
    }

    /// Run 5: programs that each allocate 100 MB under a budget of 500 MB, beside small programs.
    async fn large_programs(&mut self) {
        let budget = BUDGET.to_string();
        let mut flags = self.scheduler_flags(&["--memory-budget-bytes", &budget]);
        // The limits per program are too large to end a large program.
        flags.extend(["--program-memory-limit-bytes", "200000000", "--program-timeout-ms", "60000"]);
        let Some(server) = self.launch(Kind::Ptc, &flags) else { return };
        let sessions = Session::open_many(server.address, 10).await;
        let (small, large) = sessions.split_at(2);
        let programs = self.options.scaled(64);
        let streams = vec![
            self.arrivals("(+ 1 2)", 50.0, small, Kind::Ptc.add()),
            self.sent_again("programs of 100 MB", programs, large, eval(LARGE, "user=> 6250000")),
        ];
        let records = generator::run(server.address, programs + ARRIVAL_CONNECTIONS, streams).await;
        let (usage, large) = (server.usage(), &records[1]);
        let (answered, refused) = (large.count(Class::Answered), large.count(Class::Refused));
        let ended = large.count_reason("memory_limit");
        self.bounds.push(all_answered("5", &records[0]));
        self.bounds.push(report::memory("5", usage, BUDGET_BOUND));
        self.bounds.push(Bound {
            what: format!(
                "run 5: of {} large programs {answered} gave their value, {ended} ended with memory_limit, {refused} were refused, \
                 none otherwise",
                large.sent
            ),
            met: answered + ended + refused == large.sent,
        });
        self.add("5", Kind::Ptc, records, usage);
        self.print();
    }

    /// Run 6: programs of 10 ms, all started at once.
    async fn many_short_programs(&mut self) {
        let Some(server) = self.start(Kind::Ptc, &[]) else { return };
        let sessions = Session::open_many(server.address, 20).await;
        let busy = busy_loop(&server, &sessions[0], Duration::from_millis(10)).await;
        let programs = self.options.scaled(1000);
        let plan = Plan::AtOnce { programs, again: None };
        let streams = vec![stream(format!("{programs} programs of 10 ms"), &sessions, eval(&busy, "user=> "), plan)];
        let records = generator::run(server.address, programs, streams).await;
        let (answered, refused) = (records[0].count(Class::Answered), records[0].count(Class::Refused));
        self.bounds.push(Bound {
            what: format!("run 6: of {} programs {answered} answered, {refused} refused, none otherwise", records[0].sent),
            met: answered + refused == records[0].sent,
        });
        if let Some(fastest) = records[0].fastest_refusal() {
            let what = format!("run 6: first refusal after {} ms, the queue time is {QUEUE_TIMEOUT:?}", fastest.as_millis());
            self.bounds.push(Bound { what, met: fastest >= QUEUE_TIMEOUT });
        }
        self.add("6", Kind::Ptc, records, server.usage());
        self.print();
    }

    fn arrivals(&self, what: &str, per_second: f64, sessions: &[Session], call: Call<'_>) -> Stream {
        let per_second = self.options.rate(per_second);
        let plan = Plan::Rate { per_second, lasts: self.options.lasts() };
        stream(format!("{per_second}/s {what}"), sessions, call, plan)
    }

    fn sent_again(&self, what: &str, programs: usize, sessions: &[Session], call: Call<'_>) -> Stream {
        let plan = Plan::AtOnce { programs, again: Some(self.options.lasts()) };
        stream(format!("{programs} {what}, again"), sessions, call, plan)
    }

    /// Starts a server. `flags` are scheduler flags, which the peers do not have.
    fn start(&mut self, kind: Kind, flags: &[&str]) -> Option<Server> {
        let flags = if kind == Kind::Ptc { self.scheduler_flags(flags) } else { Vec::new() };
        self.launch(kind, &flags)
    }

    fn launch(&mut self, kind: Kind, flags: &[&str]) -> Option<Server> {
        let started = Server::start(kind, &self.upstreams, flags);
        if let Err(reason) = &started {
            println!("skipped: {reason}");
            self.all_met &= kind != Kind::Ptc;
        }
        started.ok()
    }

    fn scheduler_flags<'f>(&self, flags: &[&'f str]) -> Vec<&'f str> {
        if self.options.flags { flags.to_vec() } else { Vec::new() }
    }

    fn add(&mut self, run: &'static str, kind: Kind, records: Vec<Record>, usage: Usage) {
        self.rows.extend(records.into_iter().map(|record| Row { run, server: kind.name(), record, usage }));
    }

    /// Prints the rows and bounds that were added since the last call.
    fn print(&mut self) {
        if !self.rows.is_empty() {
            report::print(&self.rows);
        }
        self.all_met &= report::print_bounds(&self.bounds);
        self.rows.clear();
        self.bounds.clear();
    }
}

/// Builds a stream that repeats one call, sent by all sessions in rotation.
pub(crate) fn stream(name: String, sessions: &[Session], call: Call<'_>, plan: Plan) -> Stream {
    Stream { name, requests: sessions.iter().map(|session| session.request(call)).collect(), plan }
}

/// Makes the server connect its upstreams and compile or load the code that the calls need.
async fn warm_up(server: &Server, sessions: &[Session], kind: Kind) {
    let plan = Plan::AtOnce { programs: sessions.len(), again: None };
    for call in std::iter::repeat_n(kind.add(), WARM_UP).chain([kind.wait()]) {
        generator::run(server.address, sessions.len(), vec![stream(String::new(), sessions, call, plan)]).await;
    }
}

/// Returns the arguments of a program that counts for `target` on an idle server.
async fn busy_loop(server: &Server, session: &Session, target: Duration) -> String {
    let arguments = |turns: u64| format!(r#"{{"program":"(loop [i 0] (if (< i {turns}) (recur (inc i)) i))"}}"#);
    let mut connection = Connection::open(server.address).await.unwrap();
    let mut turns = 10_000;
    loop {
        let call = arguments(turns);
        let mut request = session.request(eval(&call, "user=> "));
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let (number, started) = (next_number(), Instant::now());
            let reply = connection.exchange(request.bytes(number)).await.unwrap();
            let outcome = request.classify(number, reply.status, reply.body);
            assert!(outcome.class == Class::Answered, "the loop of {turns} turns ended with {}", outcome.reason);
            best = best.min(started.elapsed());
        }
        let factor = target.as_secs_f64() / best.as_secs_f64();
        // A short measurement consists mostly of the round trip. Increase the count before relying on it.
        if factor <= 2.0 {
            return arguments((turns as f64 * factor) as u64);
        }
        turns *= 2;
    }
}
