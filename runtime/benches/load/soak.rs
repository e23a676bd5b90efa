//! Mixed load for minutes while an upstream is repeatedly killed and restarted. Memory, descriptors and threads must not grow
//! after the first quarter of the time, and every request must be answered exactly once.

use std::time::{Duration, Instant};

use crate::generator::{self, Plan};
use crate::mcp::{Call, Session};
use crate::mock::Mock;
use crate::options::Options;
use crate::record::{Class, Record};
use crate::report::{self, Row};
use crate::runs::stream;
use crate::server::{Kind, Server, Upstreams, eval};

/// Limits that end programs within seconds. The memory limit is so small that memory cached by the allocator cannot hide a leak.
const FLAGS: [&str; 6] =
    ["--program-timeout-ms", "3000", "--upstream-call-timeout-ms", "2000", "--program-memory-limit-bytes", "5000000"];
/// Arrivals per second, the name of the stream, its arguments, and the expected content of the answer.
const LOAD: [(f64, &str, &str, &str); 6] = [
    (50.0, "(+ 1 2)", r#"{"program":"(+ 1 2)"}"#, "user=> 3"),
    (
        20.0,
        "calls of the killed upstream",
        r#"{"program":"(:ok (tool/call {:server \"quick\" :tool \"call\"}))"}"#,
        "user=> true",
    ),
    (10.0, "programs of 1 s", r#"{"program":"(:ok (tool/call {:server \"slow\" :tool \"call\"}))"}"#, "user=> true"),
    (1.0, "programs that hang", r#"{"program":"(:reason (tool/call {:server \"hang\" :tool \"call\"}))"}"#, "user=> :timeout"),
    (0.2, "endless loops", r#"{"program":"(loop [i 0] (recur (inc i)))"}"#, "\"text\":\"timeout"),
    (
        0.5,
        "programs beyond their memory",
        r#"{"program":"(count (mapv (fn [i] (vec (range 6250))) (range 1000)))"}"#,
        "\"text\":\"memory_limit",
    ),
];
/// Index of the killed upstream's calls in [`LOAD`], and the value of these calls while the upstream is down.
const KILLED: usize = 1;
const DOWN: &str = "false";
/// Other permitted outcomes of a program on a busy machine.
const OTHER_ENDS: [&str; 3] = [DOWN, "timeout", "memory_limit"];
/// Number of times that the upstream is killed.
const KILLS: u32 = 10;
const SAMPLE: Duration = Duration::from_secs(1);

/// The values of a sample, with the permitted growth from the second to the last quarter as a share and an absolute number. The
/// count of descriptors excludes as many as this process has, since it holds the other end of every connection.
const LIMITS: [(&str, f64, f64); 3] =
    [("resident KiB", 0.1, 4096.0), ("descriptors beyond ours", 0.0, 16.0), ("threads", 0.1, 4.0)];

/// Runs the soak. Returns whether nothing grew and no answer was lost.
pub(crate) async fn soak(options: &Options) -> bool {
    let upstreams = Upstreams::start();
    let server = Server::start(Kind::Ptc, &upstreams, &FLAGS).unwrap_or_else(|reason| panic!("{reason}"));
    let sessions = Session::open_many(server.address, 20).await;
    let lasts = options.lasts();
    let streams = LOAD.into_iter().map(|(per_second, name, arguments, expected)| {
        let per_second = options.rate(per_second);
        stream(format!("{per_second}/s {name}"), &sessions, eval(arguments, expected), Plan::Rate { per_second, lasts })
    });
    let (records, samples, ()) = tokio::join!(
        generator::run(server.address, 32, streams.collect()),
        sample(&server, lasts),
        kill_repeatedly(upstreams.named("quick"), lasts),
    );
    let probe = probe(&server, &sessions, eval(LOAD[KILLED].2, LOAD[KILLED].3)).await;
    let mut faults = record_faults(&records);
    if !probe {
        faults.push("the upstream that came back was not called".into());
    }
    faults.extend(growth(&samples));
    let usage = server.usage();
    match server.stop() {
        Ok(status) if status.success() => {}
        ended => faults.push(format!("the server ended with {ended:?}")),
    }
    let rows: Vec<Row> = records.into_iter().map(|record| Row { run: "soak", server: Kind::Ptc.name(), record, usage }).collect();
    report::print(&rows);
    for fault in &faults {
        println!("FAILED: {fault}");
    }
    faults.is_empty()
}

/// Whether a call of the upstream succeeds. The first attempts may still use connections from before the restart.
async fn probe(server: &Server, sessions: &[Session], call: Call<'_>) -> bool {
    let plan = Plan::AtOnce { programs: 1, again: None };
    for _ in 0..5 {
        let records = generator::run(server.address, 1, vec![stream(String::new(), sessions, call, plan)]).await;
        if records[0].count(Class::Answered) == 1 {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

async fn kill_repeatedly(upstream: &Mock, lasts: Duration) {
    let cycle = lasts / KILLS;
    for _ in 0..KILLS {
        tokio::time::sleep(cycle / 2).await;
        upstream.kill().await;
        tokio::time::sleep(cycle / 4).await;
        upstream.start_again().await;
        tokio::time::sleep(cycle / 4).await;
    }
}

async fn sample(server: &Server, lasts: Duration) -> Vec<[f64; 3]> {
    let started = Instant::now();
    let mut samples = Vec::new();
    while started.elapsed() < lasts {
        tokio::time::sleep(SAMPLE).await;
        let own = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let usage = server.usage();
        samples.push([usage.resident_kib as f64, usage.descriptors as f64 - own as f64, usage.threads as f64]);
    }
    samples
}

/// Lists faults of the answers.
fn record_faults(records: &[Record]) -> Vec<String> {
    let mut faults = Vec::new();
    for record in records {
        for (reason, count) in record.reasons(Class::Failed) {
            faults.push(format!("{}: {count} of {} failed: {reason}", record.name, record.sent));
        }
        for (reason, count) in record.reasons(Class::Ended).filter(|(reason, _)| !OTHER_ENDS.contains(reason)) {
            faults.push(format!("{}: {count} of {} ended with {reason}", record.name, record.sent));
        }
    }
    let killed = &records[KILLED];
    if killed.count(Class::Answered) == 0 || killed.count_reason(DOWN) == 0 {
        faults.push(format!("{}: no call met the upstream alive, or none met it down", killed.name));
    }
    faults
}

/// Lists values that grew from the second quarter of the time to the last.
fn growth(samples: &[[f64; 3]]) -> Vec<String> {
    let quarter = samples.len() / 4;
    let mut faults = Vec::new();
    for (at, (what, share, number)) in LIMITS.into_iter().enumerate() {
        let tenths = samples.chunks(samples.len().div_ceil(10).max(1)).map(|part| format!("{:.0}", median(part, at)));
        println!("{what}, medians by tenths of the time: {}", tenths.collect::<Vec<_>>().join(" "));
        let (second, last) = (median(&samples[quarter..2 * quarter], at), median(&samples[3 * quarter..], at));
        if last > second + second.abs() * share + number {
            faults.push(format!("{what} grew: {second:.0} in the second quarter, {last:.0} in the last"));
        }
    }
    faults
}

fn median(samples: &[[f64; 3]], at: usize) -> f64 {
    let mut all: Vec<f64> = samples.iter().map(|sample| sample[at]).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}
