//! Counts the calls of a program that are in progress, for the share of each upstream.

use std::sync::{MutexGuard, PoisonError};

use litemap::LiteMap;

use super::Shared;
use crate::call_limiter::CallingProgram;
use crate::dispatch::UpstreamConnection;
use crate::fault::UpstreamError;

/// A call in progress, for the number of programs that wait for its upstream.
pub(super) struct CallInProgress<'s> {
    shared: &'s Shared,
    upstream: &'static str,
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        let mut calling = self.shared.calling();
        if let Some((calls, _)) = calling.get_mut(self.upstream) {
            *calls -= 1;
            if *calls == 0 {
                calling.remove(self.upstream);
            }
        }
    }
}

impl Shared {
    /// Counts a call to an upstream. The programs that wait for one upstream may hold at most 80 % of the programs in flight,
    /// unless it is the only one.
    pub(super) fn under_way(&self, connection: &UpstreamConnection) -> Result<CallInProgress<'_>, UpstreamError> {
        let upstream = connection.upstream().name;
        let share = self.limits.most_in_flight.filter(|_| self.upstreams.connections.len() > 1);
        let mut calling = self.calling();
        if let Some((calls, _)) = calling.get_mut(upstream) {
            *calls += 1;
        } else {
            let most = share.map_or(usize::MAX, |most| (most * 4 / 5).max(1));
            calling.insert(upstream, (1, connection.limiter().admit_program(upstream, most)?));
        }
        Ok(CallInProgress { shared: self, upstream })
    }

    fn calling(&self) -> MutexGuard<'_, LiteMap<&'static str, (usize, CallingProgram)>> {
        self.calling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
