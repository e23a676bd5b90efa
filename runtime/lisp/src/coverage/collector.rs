//! The coverage of many programs over many runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Coverage;
use crate::Program;

/// Instruments each program once, by its text, so that the counts of all its runs are added up.
#[derive(Debug, Default)]
pub struct Collector {
    programs: Mutex<BTreeMap<Arc<str>, Option<Measured>>>,
}

/// A program with its counters.
#[derive(Debug, Clone)]
struct Measured {
    program: Arc<Program>,
    coverage: Arc<Coverage>,
}

impl Collector {
    /// Returns the program with probes, which runs in place of the given one. `None` if it refers to definitions of earlier
    /// programs.
    pub fn instrument(&self, program: &Program) -> Option<Arc<Program>> {
        Some(self.measured(program)?.program)
    }

    /// Returns the counters of a program. They are zero if it has not run.
    pub fn coverage(&self, program: &Program) -> Option<Arc<Coverage>> {
        Some(self.measured(program)?.coverage)
    }

    fn measured(&self, program: &Program) -> Option<Measured> {
        let make = || {
            let (program, coverage) = Coverage::instrument(program)?;
            Some(Measured { program: Arc::new(program), coverage: Arc::new(coverage) })
        };
        self.lock().entry(Arc::clone(&program.source)).or_insert_with(make).clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Option<Measured>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
