//! The evaluator's state on one thread of one run: meters, the fault that is under way, the host.
//!
//! Everything that evaluates, compiled code and builtins alike, has `&mut Machine` and answers
//! `Result<Value, Raised>`. [`Raised`] is empty, so that a result is as small as a value; what was raised waits in the
//! machine. Nothing in the language catches it.

mod fault;
mod meters;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub use fault::{Fault, Raised};
pub use meters::Gauge;
pub(crate) use meters::Meters;

use crate::host::Host;
use crate::{ErrorKind, Value};

/// Ticks between two looks at the clock, the gauge and the cancel flag.
const QUANTUM: u32 = 1024;

/// The evaluator's state on one thread.
pub struct Machine {
    /// Ticks left before the next look at the clock.
    fuel: u32,
    /// Of the current quantum, for counting steps.
    granted: u32,
    depth: u32,
    pub(crate) fault: Option<Box<Fault>>,
    pub(crate) meters: Arc<Meters>,
    host: Arc<dyn Host>,
    /// The gauge at the last look, and what was charged since.
    gauged: i64,
    pending: i64,
    prints: Vec<String>,
    printed: usize,
}

impl Machine {
    pub(crate) fn new(meters: Arc<Meters>, host: Arc<dyn Host>) -> Self {
        let gauged = meters.gauge.map_or(0, |read| read());
        Machine { fuel: QUANTUM, granted: QUANTUM, depth: 0, fault: None, meters, host, gauged, pending: 0, prints: Vec::new(), printed: 0 }
    }

    /// Ends the program with a fault. The place is filled in on the way out.
    #[cold]
    pub fn raise(&mut self, kind: ErrorKind, message: impl Into<String>) -> Raised {
        self.raise_fault(Fault::new(kind, message))
    }

    /// [`Machine::raise`] with advice on what to do.
    #[cold]
    pub fn raise_with_hint(&mut self, kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Raised {
        let mut fault = Fault::new(kind, message);
        fault.hint = Some(hint.into());
        self.raise_fault(fault)
    }

    /// [`Machine::raise`] with a value that the caller of the run can look at.
    #[cold]
    pub fn raise_with_value(&mut self, kind: ErrorKind, message: impl Into<String>, value: Value) -> Raised {
        let mut fault = Fault::new(kind, message);
        fault.value = Some(value);
        self.raise_fault(fault)
    }

    /// Ends the program with a fault that is already made up.
    #[cold]
    pub fn raise_fault(&mut self, fault: Fault) -> Raised {
        self.fault = Some(Box::new(fault));
        Raised
    }

    /// Calls any callable value: function, builtin, keyword, map, set, vector or var. The arguments may be taken out of
    /// the slice.
    pub fn call(&mut self, f: &Value, args: &mut [Value]) -> Result<Value, Raised> {
        let _ = (f, args);
        Err(self.raise(ErrorKind::InternalError, "calls are not wired up"))
    }

    /// Counts `n` steps. Every so often it looks at the clock, the gauge and the cancel flag.
    #[inline]
    pub fn tick(&mut self, n: u32) -> Result<(), Raised> {
        if self.fuel > n {
            self.fuel -= n;
            Ok(())
        } else {
            self.look(n)
        }
    }

    /// Asks for `bytes` before a growth. Raises where the run's live bytes and these would pass its limit.
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<(), Raised> {
        // Small growths are left to the gauge.
        if bytes < 4096 { Ok(()) } else { self.charge_large(bytes) }
    }

    /// The world.
    pub fn host(&self) -> &dyn Host {
        &*self.host
    }

    /// Collects one line of `println` and its family.
    pub fn print(&mut self, line: String) -> Result<(), Raised> {
        self.charge(line.len())?;
        let limit = self.meters.limits.print_bytes;
        if self.printed < limit {
            self.printed += line.len() + 1;
            if self.printed > limit {
                self.prints.push(format!("… output cut at {limit} bytes"));
            } else {
                self.prints.push(line);
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn charge_large(&mut self, bytes: usize) -> Result<(), Raised> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let limit = i64::try_from(self.meters.limits.memory_bytes).unwrap_or(i64::MAX);
        self.pending = self.pending.saturating_add(bytes);
        if self.meters.live().saturating_add(self.pending) <= limit {
            return Ok(());
        }
        // What was charged before may be counted by the gauge now, or freed again.
        let live = self.read_gauge();
        if live.saturating_add(bytes) > limit {
            self.meters.note_peak(live.saturating_add(bytes));
            return Err(self.out_of_memory());
        }
        self.pending = bytes;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, n: u32) -> Result<(), Raised> {
        let used = u64::from(self.granted - self.fuel) + u64::from(n);
        let steps = self.meters.steps.fetch_add(used, Ordering::Relaxed) + used;
        self.fuel = QUANTUM;
        self.granted = QUANTUM;
        if self.meters.cancel.is_cancelled() || self.meters.stop.load(Ordering::Relaxed) {
            return Err(self.raise(ErrorKind::Cancelled, "the run was cancelled"));
        }
        if let Some(limit) = self.meters.limits.steps.filter(|&limit| steps > limit) {
            return Err(self.raise(ErrorKind::LoopLimitExceeded, format!("the program took more than {limit} steps")));
        }
        if Instant::now() >= self.meters.deadline {
            return Err(self.out_of_time());
        }
        let live = self.read_gauge();
        if live > i64::try_from(self.meters.limits.memory_bytes).unwrap_or(i64::MAX) {
            return Err(self.out_of_memory());
        }
        Ok(())
    }

    /// Reports this thread's change since the last look and answers the run's live bytes.
    fn read_gauge(&mut self) -> i64 {
        self.pending = 0;
        let Some(read) = self.meters.gauge else { return 0 };
        let now = read();
        let delta = now - self.gauged;
        self.gauged = now;
        self.meters.report_bytes(delta)
    }

    #[cold]
    fn out_of_memory(&mut self) -> Raised {
        let limit = self.meters.limits.memory_bytes;
        self.raise_with_hint(
            ErrorKind::MemoryExceeded,
            format!("the program's values need more than {limit} bytes"),
            "filter or aggregate earlier, so that less is held at once",
        )
    }

    #[cold]
    pub(crate) fn out_of_time(&mut self) -> Raised {
        let ms = self.meters.limits.wall_clock.as_millis();
        self.raise(ErrorKind::Timeout, format!("the program ran longer than {ms} ms"))
    }
}
