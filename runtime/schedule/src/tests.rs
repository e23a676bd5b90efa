//! Slots, processors and memory together.

use std::sync::mpsc;

use ptc_lisp::limits::Limits;
use ptc_lisp::{ErrorKind, Program, Run, Value};

use super::admission::PROGRAM_BYTES;
use super::*;
use crate::alloc;

const OWNER: &str = "one";

fn limits() -> ScheduleLimits {
    let mut limits = ScheduleLimits::detect();
    limits.processors.value = 1;
    limits.in_flight.value = 1;
    limits.queued = 2;
    limits.queue_timeout_ms.value = 20_000;
    limits
}

fn client_key(session: u64) -> ClientKey {
    ClientKey { owner: OWNER.into(), session }
}

/// Requests admission. Returns a channel that receives the outcome.
fn enter(scheduler: &Arc<Scheduler>, session: u64, cancel: &Cancel) -> mpsc::Receiver<Result<AdmissionPermit, Rejection>> {
    let (send, receive) = mpsc::channel();
    scheduler.enter(&client_key(session), 0, cancel, move |outcome| {
        let _ = send.send(outcome);
    });
    receive
}

/// Returns the used bytes of the budget without those of `programs` in flight.
fn used_beside(scheduler: &Scheduler, programs: u64) -> u64 {
    scheduler.load().used_bytes - programs * PROGRAM_BYTES as u64
}

fn admitted(outcome: &mpsc::Receiver<Result<AdmissionPermit, Rejection>>) -> AdmissionPermit {
    outcome.recv_timeout(Duration::from_secs(10)).expect("an outcome").expect("a slot")
}

#[test]
fn call_beyond_the_limit_waits_until_the_queue_is_full() {
    let (scheduler, cancel) = (Scheduler::new(limits()), Cancel::default());
    let first = admitted(&enter(&scheduler, 1, &cancel));
    let (second, third) = (enter(&scheduler, 1, &cancel), enter(&scheduler, 1, &cancel));
    assert!(scheduler.is_full());
    // This session already has most entries. Another session displaces its newest entry.
    assert_eq!(enter(&scheduler, 1, &cancel).recv().unwrap().err(), Some(Rejection::QueueFull));
    let other = enter(&scheduler, 2, &cancel);
    assert_eq!(third.recv().unwrap().err(), Some(Rejection::QueueFull));
    drop(first);
    // Each holds its slot as long as the outcome is kept.
    let next = [&second, &other].map(|call| call.recv_timeout(Duration::from_millis(100)));
    assert_eq!(next.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{next:?}");
}

#[test]
fn queued_call_ends_at_its_timeout_and_when_it_is_cancelled() {
    let mut limits = limits();
    limits.queue_timeout_ms.value = 30;
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let held = admitted(&enter(&scheduler, 1, &cancel));
    let began = Instant::now();
    assert_eq!(enter(&scheduler, 2, &cancel).recv().unwrap().err(), Some(Rejection::TimedOut));
    assert!(began.elapsed() >= Duration::from_millis(30));
    let mine = Cancel::default();
    let waiting = enter(&scheduler, 2, &mine);
    mine.cancel();
    assert_eq!(waiting.recv().unwrap().err(), Some(Rejection::Cancelled));
    assert!(!scheduler.is_idle());
    drop(held);
    assert!(scheduler.is_idle());
}

#[test]
fn program_in_flight_counts_its_stack_and_connection() {
    let mut limits = limits();
    // A container with 1 GiB.
    (limits.in_flight.value, limits.memory_budget_bytes.value) = (2_500, 512 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permits: Vec<_> = (0..2_500).map(|_| admitted(&enter(&scheduler, 1, &cancel))).collect();
    assert_eq!(scheduler.load().used_bytes, 2_500 * PROGRAM_BYTES as u64);
    drop(permits);
    assert_eq!(scheduler.load().used_bytes, 0);
}

#[test]
fn call_without_free_memory_waits() {
    let mut limits = limits();
    (limits.in_flight.value, limits.memory_budget_bytes.value) = (10, 4 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let held = scheduler.hold(4 << 20);
    let waiting = enter(&scheduler, 1, &cancel);
    assert!(waiting.recv_timeout(Duration::from_millis(50)).is_err());
    drop(held);
    admitted(&waiting);
}

/// Requests admission for a request with this size.
fn enter_with(
    scheduler: &Arc<Scheduler>,
    owner: &str,
    bytes: usize,
    cancel: &Cancel,
) -> mpsc::Receiver<Result<AdmissionPermit, Rejection>> {
    let (send, receive) = mpsc::channel();
    let client_key = ClientKey { owner: owner.into(), session: 1 };
    scheduler.enter(&client_key, bytes, cancel, move |outcome| {
        let _ = send.send(outcome);
    });
    receive
}

#[test]
fn requests_beyond_the_memory_of_the_queue_are_refused() {
    const MIB: usize = 1 << 20;
    let mut limits = limits();
    (limits.queued, limits.memory_budget_bytes.value) = (100, 128 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let first = admitted(&enter_with(&scheduler, "a", 4 * MIB, &cancel));
    let (second, third) = (enter_with(&scheduler, "a", 4 * MIB, &cancel), enter_with(&scheduler, "a", 4 * MIB, &cancel));
    // The queue's part of the budget has room for two of them.
    assert_eq!(enter_with(&scheduler, "a", 4 * MIB, &cancel).recv().unwrap().err(), Some(Rejection::QueueFull));
    // A client with fewer bytes in the queue displaces the newest entry of the client with most.
    let mine = Cancel::default();
    let other = enter_with(&scheduler, "b", MIB, &mine);
    assert_eq!(third.recv().unwrap().err(), Some(Rejection::QueueFull));
    assert_eq!(used_beside(&scheduler, 1), 9 * MIB as u64);
    mine.cancel();
    assert_eq!(other.recv().unwrap().err(), Some(Rejection::Cancelled));
    drop(first);
    drop(admitted(&second));
    assert_eq!((scheduler.load().used_bytes, scheduler.load().queued), (0, 0));
}

#[test]
fn large_request_that_does_not_fit_displaces_nothing() {
    const MIB: usize = 1 << 20;
    let mut limits = limits();
    (limits.queued, limits.memory_budget_bytes.value) = (100, 64 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let holding = admitted(&enter_with(&scheduler, "a", 0, &cancel));
    let waiting = ["a", "a", "b"].map(|owner| enter_with(&scheduler, owner, MIB, &cancel));
    // The queue takes 4 MiB. Without one entry of `a`, 2 MiB are free.
    assert_eq!(enter_with(&scheduler, "c", 4 * MIB, &cancel).recv().unwrap().err(), Some(Rejection::QueueFull));
    assert_eq!((scheduler.load().queued, used_beside(&scheduler, 1)), (3, 3 << 20));
    drop((holding, waiting));
}

#[test]
fn request_larger_than_the_queue_waits_alone_if_it_fits_into_the_budget() {
    const MIB: usize = 1 << 20;
    let mut limits = limits();
    (limits.queued, limits.memory_budget_bytes.value) = (100, 64 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let holding = admitted(&enter_with(&scheduler, "a", 0, &cancel));
    // The queue takes 4 MiB.
    let large = enter_with(&scheduler, "a", 16 * MIB, &cancel);
    assert!(scheduler.is_full() && scheduler.load().queued == 1);
    assert_eq!(enter_with(&scheduler, "a", 16 * MIB, &cancel).recv().unwrap().err(), Some(Rejection::QueueFull));
    drop(holding);
    let holding = admitted(&large);
    let held = scheduler.hold(40 * MIB);
    assert_eq!(enter_with(&scheduler, "a", 16 * MIB, &cancel).recv().unwrap().err(), Some(Rejection::QueueFull));
    drop((holding, held));
    assert_eq!(scheduler.load().used_bytes, 0);
}

#[test]
fn full_queue_of_a_session_at_its_limit_leaves_slots_to_others() {
    let mut limits = limits();
    (limits.in_flight.value, limits.in_flight_per_session) = (10, Some(Limit::default_of(1)));
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let first = admitted(&enter(&scheduler, 1, &cancel));
    let waiting = [1, 1].map(|session| enter(&scheduler, session, &cancel));
    assert_eq!(scheduler.load().queued, 2);
    assert!(!scheduler.is_full(), "slots are free");
    let other = admitted(&enter(&scheduler, 2, &cancel));
    assert_eq!(scheduler.load().queued, 2, "nothing was displaced");
    drop((first, other));
    for call in &waiting {
        drop(admitted(call));
    }
}

#[test]
fn queue_without_memory_for_a_request_is_full() {
    let mut limits = limits();
    limits.queued = 100;
    limits.memory_budget_bytes.value = 64 << 20;
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let holding = admitted(&enter_with(&scheduler, "a", 0, &cancel));
    assert!(!scheduler.is_full());
    let waiting = enter_with(&scheduler, "a", 4 << 20, &cancel);
    assert!(scheduler.is_full());
    drop(holding);
    drop(admitted(&waiting));
    assert!(!scheduler.is_full());
}

#[test]
fn memory_of_a_request_is_free_before_the_next_program_is_admitted() {
    let mut limits = limits();
    limits.memory_budget_bytes.value = 8 << 20;
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let first = admitted(&enter_with(&scheduler, "a", (7 << 20) + 1, &cancel));
    let second = enter_with(&scheduler, "a", 0, &cancel);
    drop(first);
    // At once, not when the queue is checked again.
    drop(second.try_recv().expect("an outcome").expect("a slot"));
}

#[test]
fn reservations_count_until_they_are_dropped_and_end_the_largest_program() {
    let mut limits = limits();
    (limits.in_flight.value, limits.memory_budget_bytes.value) = (10, (8 << 20) + PROGRAM_BYTES as u64);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permit = admitted(&enter(&scheduler, 1, &cancel));
    let ended = || scheduler.refusals()[Refusal::MemoryBudget as usize].1;
    let begin = || {
        let lease = permit.lease(&cancel);
        // The run has an account once it has begun.
        let program = Program::compile("1").expect("it is right");
        Run::new(&program).share(lease.share()).execute_on_thread().result.expect("a value");
        lease
    };
    let first = begin();
    let share = first.share();
    share.report_bytes(1 << 20);
    share.report_reserved(5 << 20);
    // The program has ended, and its answer is still being sent.
    drop(first);
    assert_eq!(used_beside(&scheduler, 1), 5 << 20);
    let second = begin();
    let other = second.share();
    other.report_reserved(3 << 20);
    assert_eq!(ended(), 0, "both fit");
    other.report_reserved(1 << 20);
    assert_eq!(ended(), 1);
    share.report_reserved(-(5 << 20));
    other.report_reserved(-(4 << 20));
    drop((share, other, second));
    assert_eq!(used_beside(&scheduler, 1), 0);
}

#[test]
fn waiting_owner_is_admitted_before_the_owner_with_most_calls() {
    let mut limits = limits();
    (limits.in_flight.value, limits.queued) = (2, 100);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let enter = |owner: &str, session: u64| {
        let (send, receive) = mpsc::channel();
        scheduler.enter(&ClientKey { owner: owner.into(), session }, 0, &cancel, move |outcome| {
            let _ = send.send(outcome);
        });
        receive
    };
    let held = [1, 2].map(|session| admitted(&enter("many", session)));
    let waiting: Vec<_> = (3..50).map(|session| enter("many", session)).collect();
    let other = enter("few", 100);
    drop(held);
    // Of the two free slots each owner gets one, however many sessions of an owner wait.
    let admitted = [other.try_recv().is_ok(), waiting[0].try_recv().is_ok(), waiting[1].try_recv().is_ok()];
    assert_eq!(admitted, [true, true, false]);
}

#[test]
fn branches_of_all_programs_share_the_processors() {
    let mut limits = limits();
    limits.in_flight.value = 10;
    let scheduler = Scheduler::new(limits);
    let cancel = Cancel::default();
    let endless = run_until(&cancel, &scheduler, 1, "(pmap (fn [_] (loop [] (recur))) (range 4))");
    // The only processor is taken by one branch while others wait for it.
    while scheduler.processors.counts().1 < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let short = run(&scheduler, 2, "(sum (pmap inc (range 10)))");
    assert_eq!(short.recv().unwrap().unwrap(), Value::int(55));
    cancel.cancel();
    assert_eq!(endless.recv().unwrap().unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(scheduler.processors.counts().0, 1);
}

#[test]
fn granted_growth_counts_before_it_is_allocated() {
    const MIB: i64 = 1 << 20;
    let mut limits = limits();
    (limits.in_flight.value, limits.memory_budget_bytes.value) = (10, 8 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permits = [1, 2].map(|session| admitted(&enter(&scheduler, session, &cancel)));
    let [first, second] = permits.each_ref().map(|permit| permit.lease(&cancel));
    let (one, other) = (first.share(), second.share());
    let soon = || Instant::now() + Duration::from_millis(200);
    assert!(one.reserve_growth(5 * MIB, soon()));
    assert_eq!(used_beside(&scheduler, 2), 5 << 20);
    // The first has not allocated anything yet, and none of them can be ended for the other.
    assert!(!other.reserve_growth(5 * MIB, soon()));
    // The gauge shows 4 MiB of the growth; the rest was not needed.
    one.report_bytes(-MIB);
    assert_eq!(used_beside(&scheduler, 2), 4 << 20);
    drop((one, other, first, second));
    assert_eq!(used_beside(&scheduler, 2), 0);
}

#[test]
fn program_ended_while_inputs_are_counted_reports_the_budget() {
    let mut limits = limits();
    limits.memory_budget_bytes.value = 8 << 20;
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permit = admitted(&enter(&scheduler, 1, &cancel));
    for is_released in [false, true] {
        let lease = permit.lease(&cancel);
        let computing = lease.begin().expect("a processor");
        assert!(!lease.count_bytes(9 << 20) && lease.is_ended());
        if is_released {
            lease.count_bytes(-(9 << 20));
        }
        let program = Program::compile("1").expect("it is right");
        let fault = Run::new(&program).share(lease.share()).execute_on_thread().result.expect_err("it is ended");
        assert!(fault.message.contains("memory budget of 8388608 bytes"), "{}", fault.message);
        drop(computing);
    }
    assert_eq!(scheduler.refusals()[Refusal::MemoryBudget as usize].1, 2);
}

#[test]
fn program_that_has_ended_is_not_ended_for_memory() {
    let mut limits = limits();
    (limits.in_flight.value, limits.memory_budget_bytes.value) = (10, 8 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permits = [1, 2].map(|session| admitted(&enter(&scheduler, session, &cancel)));
    let [first, second] = permits.each_ref().map(|permit| permit.lease(&cancel));
    let program = Program::compile("1").expect("it is right");
    let computing = first.begin().expect("a processor");
    for lease in [&first, &second] {
        Run::new(&program).share(lease.share()).execute_on_thread().result.expect("a value");
    }
    drop(computing);
    first.share().report_bytes(6 << 20);
    // Only the first has ended. Its answer is on the way and releases enough.
    second.share().report_reserved(4 << 20);
    second.share().report_reserved(-(4 << 20));
    assert_eq!(scheduler.refusals()[Refusal::MemoryBudget as usize].1, 0);
}

#[test]
fn program_that_waits_for_memory_until_its_deadline_reports_the_budget() {
    let mut limits = limits();
    (limits.in_flight.value, limits.memory_budget_bytes.value) = (10, 8 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permits = [1, 2].map(|session| admitted(&enter(&scheduler, session, &cancel)));
    let [ended, waiting] = permits.each_ref().map(|permit| permit.lease(&cancel));
    drop(ended.begin().expect("a processor"));
    // Its memory becomes free, but not in time.
    ended.share().report_bytes(6 << 20);
    let program = Program::compile("(count (vec (range 400000)))").expect("it is right");
    let limits = Limits::default().memory_bytes(1 << 30).wall_clock(Duration::from_millis(300));
    let run = Run::new(&program).limits(limits).gauge(alloc::live_bytes).share(waiting.share());
    let fault = run.execute_on_thread().result.expect_err("there is no memory");
    assert!(fault.kind == ErrorKind::MemoryExceeded && fault.message.contains("memory budget of 8388608 bytes"), "{fault:?}");
}

#[test]
fn programs_that_wait_for_memory_continue_when_it_is_released() {
    let mut limits = limits();
    (limits.in_flight.value, limits.processors.value, limits.memory_budget_bytes.value) = (10, 10, 8 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permits: Vec<_> = (0..5).map(|session| admitted(&enter(&scheduler, session, &cancel))).collect();
    let ended = permits[0].lease(&cancel);
    drop(ended.begin().expect("a processor"));
    ended.share().report_bytes(7 << 20);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for permit in &permits[1..] {
            let (lease, deadline) = (permit.lease(&cancel), began + Duration::from_mins(1));
            scope.spawn(move || assert!(lease.share().reserve_growth(1 << 20, deadline)));
        }
        while scheduler.budget.waiters() < 4 {
            std::thread::yield_now();
        }
        drop(ended);
    });
    assert!(began.elapsed() < Duration::from_secs(30), "they waited for their deadlines");
}

#[test]
fn program_with_several_branches_counts_once_as_running() {
    let mut limits = limits();
    (limits.in_flight.value, limits.processors.value) = (10, 2);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let permits = [1, 2].map(|session| admitted(&enter(&scheduler, session, &cancel)));
    let lease = permits[0].lease(&cancel);
    let computing = lease.begin().expect("a processor");
    let branch = lease.share();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            branch.acquire(Instant::now() + Duration::from_secs(10));
            let load = scheduler.load();
            assert_eq!((load.running, load.waiting), (1, 1));
            branch.release();
        });
    });
    drop(computing);
    assert_eq!((scheduler.load().running, scheduler.load().waiting), (0, 2));
}

#[test]
fn computing_program_yields_its_thread_after_a_time_slice() {
    let mut limits = limits();
    (limits.in_flight.value, limits.processors.value) = (10, 2);
    let (scheduler, fibers) = (Scheduler::new(limits), crate::fibers::Fibers::new(1));
    let (send, ends) = mpsc::channel();
    let loops = "(loop [i 0] (if (< i 30000000) (recur (inc i)) i))";
    for (session, source) in [(1, loops), (2, "(+ 1 2)")] {
        let permit = admitted(&enter(&scheduler, session, &Cancel::default()));
        let work = move || {
            if session == 2 {
                // A processor is always free. Only the thread is occupied.
                ptc_lisp::fiber::park(Some(Instant::now() + Duration::from_millis(20)));
            }
            let lease = permit.lease(&Cancel::default());
            let computing = lease.begin().expect("a processor");
            let program = Program::compile(source).expect("it is right");
            let limits = Limits::default().wall_clock(Duration::from_secs(30));
            let outcome = Run::new(&program).limits(limits).gauge(alloc::live_bytes).share(lease.share()).execute();
            drop(computing);
            outcome.result.expect("a value");
        };
        let send = send.clone();
        fibers.spawn(work, move |done| send.send((session, done)).expect("the test waits"));
    }
    drop(send);
    assert_eq!(ends.iter().collect::<Vec<_>>(), [(2, Ok(())), (1, Ok(()))]);
}

/// Runs a program of a session on a separate thread.
fn run(scheduler: &Arc<Scheduler>, session: u64, source: &'static str) -> mpsc::Receiver<Result<Value, ptc_lisp::Error>> {
    run_until(&Cancel::default(), scheduler, session, source)
}

/// Runs a program of a session on a separate thread until it ends or is cancelled.
fn run_until(
    cancel: &Cancel,
    scheduler: &Arc<Scheduler>,
    session: u64,
    source: &'static str,
) -> mpsc::Receiver<Result<Value, ptc_lisp::Error>> {
    let permit = admitted(&enter(scheduler, session, cancel));
    let cancel = cancel.clone();
    let (send, receive) = mpsc::channel();
    let stack = ptc_lisp::STACK_BYTES + ptc_lisp::STACK_SLACK_BYTES;
    let thread = std::thread::Builder::new().stack_size(stack);
    let work = move || {
        let lease = permit.lease(&cancel);
        let computing = lease.begin().expect("a processor");
        let program = Program::compile(source).expect("it is right");
        let limits = Limits::default().memory_bytes(1 << 30).wall_clock(Duration::from_secs(30));
        let run = Run::new(&program).limits(limits).cancel(cancel).gauge(alloc::live_bytes).share(lease.share());
        let outcome = run.execute();
        drop(computing);
        send.send(outcome.result).expect("the test waits");
    };
    thread.spawn(work).expect("a thread");
    receive
}

#[test]
fn short_program_ends_before_an_endless_one() {
    let mut limits = limits();
    limits.in_flight.value = 10;
    let scheduler = Scheduler::new(limits);
    let cancel = Cancel::default();
    let endless = run_until(&cancel, &scheduler, 1, "(loop [] (recur))");
    let short = run(&scheduler, 2, "(+ 1 2)");
    assert_eq!(short.recv().unwrap().unwrap(), Value::int(3));
    cancel.cancel();
    assert_eq!(endless.recv().unwrap().unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(scheduler.load().running, 0);
}

#[test]
fn largest_program_is_ended_when_the_budget_is_exhausted() {
    let mut limits = limits();
    (limits.in_flight.value, limits.processors.value) = (10, 2);
    limits.memory_budget_bytes.value = 64 << 20;
    let scheduler = Scheduler::new(limits);
    let greedy = "(count (mapv (fn [i] (vec (range 6250))) (range 5000)))";
    let outcomes = [1, 2, 3].map(|session| run(&scheduler, session, greedy)).map(|program| program.recv().unwrap());
    for outcome in outcomes {
        let fault = outcome.expect_err("each needs more than there is");
        assert!(fault.message.contains("memory budget of 67108864 bytes"), "{}", fault.message);
    }
    let modest = run(&scheduler, 4, "(count (range 1000))").recv().unwrap();
    assert_eq!(modest.unwrap(), Value::int(1_000));
    while !scheduler.is_idle() {
        std::thread::yield_now();
    }
    assert_eq!(scheduler.load().used_bytes, 0);
}

#[test]
fn largest_program_of_the_owner_with_most_memory_is_ended() {
    const MIB: i64 = 1 << 20;
    let mut limits = limits();
    (limits.in_flight.value, limits.memory_budget_bytes.value) = (10, 16 << 20);
    let (scheduler, cancel) = (Scheduler::new(limits), Cancel::default());
    let program = Program::compile("1").expect("it is right");
    // `many` holds 8 MiB, `one` the largest program, and `new` needs more than there is.
    let held = [("many", 3), ("one", 5), ("many", 4), ("many", 1), ("new", 1)];
    let programs: Vec<_> = (0_u64..)
        .zip(held)
        .map(|(session, (owner, bytes))| {
            let (send, receive) = mpsc::channel();
            scheduler.enter(&ClientKey { owner: owner.into(), session }, 0, &cancel, move |outcome| {
                let _ = send.send(outcome);
            });
            let permit = admitted(&receive);
            let lease = permit.lease(&cancel);
            Run::new(&program).share(lease.share()).execute_on_thread().result.expect("a value");
            lease.share().report_bytes(bytes * MIB);
            (permit, lease)
        })
        .collect();
    let lives = || programs.iter().map(|(_, lease)| lease.count_bytes(0)).collect::<Vec<_>>();
    assert_eq!(lives(), [true; 5]);
    programs[4].1.share().report_reserved(4 * MIB);
    assert_eq!(lives(), [true, true, false, true, true]);
    assert_eq!(scheduler.refusals()[Refusal::MemoryBudget as usize].1, 1);
}
