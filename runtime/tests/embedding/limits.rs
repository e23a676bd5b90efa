//! Engines under load and limits: the queue, shares of owners, cancellation and memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ptc_lisp::limits::{Cancel, Limits};
use ptc_runtime::embed::{Args, Request, Tool};
use serde_json::json;

use crate::engine::{builder, on_this_thread, poll_once};

#[test]
fn runs_beyond_the_limit_wait_in_the_queue() {
    let release = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&release);
    let hold = Tool::new_async("hold", "() -> :int", move |_: Args| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            Ok(1)
        }
    });
    let engine = builder().tool(hold.unwrap()).schedule(|limits| {
        (limits.in_flight.value, limits.queued, limits.queue_timeout_ms.value) = (1, 1, 20_000);
    });
    let engine = engine.build().unwrap();
    on_this_thread(async {
        let run = |program: &str| Box::pin(engine.run_async(Request::new(program)));
        let (mut first, mut second) = (run("(tool/hold)"), run("2"));
        assert!(poll_once(&mut first).await.is_none());
        assert!(poll_once(&mut second).await.is_none(), "it waits");
        let refused = run("3").await;
        let failure = refused.value().unwrap_err();
        assert_eq!((failure.reason.name(), failure.retry_after_ms), ("busy", Some(5_000)));
        // A run whose future is dropped leaves the queue.
        drop(second);
        let mut third = run("(+ 1 2)");
        assert!(poll_once(&mut third).await.is_none(), "it waits");
        release.notify_one();
        assert_eq!(first.await.preview(), Ok("1"));
        assert_eq!(third.await.preview(), Ok("3"));
    });
}

#[test]
fn owner_with_many_sessions_does_not_starve_another() {
    let engine = builder().schedule(|limits| limits.processors.value = 1).build().unwrap();
    on_this_thread(async {
        let run = |owner, session, program| Box::pin(engine.run_async(Request::new(program).on_behalf_of(owner, session)));
        let mut loops: Vec<_> = (0..100).map(|session| run("many", session, "(loop [i 0] (recur (inc i)))")).collect();
        for future in &mut loops {
            assert!(poll_once(future).await.is_none());
        }
        let began = std::time::Instant::now();
        for _ in 0..20 {
            assert_eq!(run("few", 1_000, "(+ 1 2)").await.preview(), Ok("3"));
        }
        // If all sessions had equal shares, each run would wait for a hundred time slices of 10 ms.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    });
}

/// Runs ten branches that call a tool under a limit of `branches`. Returns the maximum number of calls that were open at the same
/// time. The first calls wait until `together` of them are open.
fn open_calls(branches: usize, together: usize) -> usize {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, reached) = (Arc::clone(&most), Arc::new(tokio::sync::Notify::new()));
    let visit = Tool::new_async("visit", "(n :int) -> :int", move |args: Args| {
        let (open, most, reached) = (Arc::clone(&open), Arc::clone(&most), Arc::clone(&reached));
        async move {
            let is_reached = reached.notified();
            if most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst) + 1 >= together {
                reached.notify_waiters();
            }
            if most.load(Ordering::SeqCst) < together {
                is_reached.await;
            }
            // Another branch, if there was one, would call meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
            open.fetch_sub(1, Ordering::SeqCst);
            Ok(args.int("n"))
        }
    });
    let engine = builder().tool(visit.unwrap()).schedule(move |limits| limits.branches.value = branches).build().unwrap();
    let answer = engine.run(Request::new("(pmap (fn [n] (tool/visit {:n n})) (range 10))"));
    assert_eq!(answer.preview(), Ok("[0 1 2 3 4 5 6 7 8 9]"));
    seen.load(Ordering::SeqCst)
}

#[test]
fn branches_above_the_limit_run_sequentially_in_their_caller() {
    assert_eq!(open_calls(0, 1), 1);
    // The caller works too.
    assert_eq!(open_calls(2, 3), 3);
}

#[test]
fn run_is_cancelled_by_another_thread() {
    let cancel = Cancel::default();
    let engine = builder().build().unwrap();
    let answer = std::thread::scope(|scope| {
        let run = scope.spawn(|| engine.run(Request::new("(tool/slow {:ms 60000})").cancel(cancel.clone())));
        cancel.cancel();
        run.join().unwrap()
    });
    assert_eq!(answer.preview(), Err("cancelled"));
}

#[test]
fn run_that_is_cancelled_in_its_last_step_is_cancelled() {
    let cancel = Cancel::default();
    let stop = cancel.clone();
    let stop = Tool::new_async("stop", "() -> :int", move |_: Args| {
        stop.cancel();
        std::future::ready(Ok(1))
    });
    let engine = builder().tool(stop.unwrap()).build().unwrap();
    assert_eq!(engine.run(Request::new("(tool/stop)").cancel(cancel)).preview(), Err("cancelled"));
}

#[test]
fn memory_limit_applies_to_many_calls_in_total() {
    // Arguments are allocated on one thread and freed on another, which must not distort the count.
    let limits = Limits::default().wall_clock(Duration::from_secs(20)).memory_bytes(4 * 1024 * 1024);
    let engine = builder().limits(limits).build().unwrap();
    let text = "x".repeat(4_000);
    let program =
        "(reduce (fn [n _] (+ n (count (:note (tool/echo {:user-id 1 :tags [] :note (str data/text n)}))))) 0 (range 3000))";
    let answer = engine.run(Request::new(program).context(&json!({ "text": text })).unwrap());
    assert!(answer.value().unwrap().as_int().unwrap() > 12_000_000, "{answer:?}");
}
