//! Printed lines of a run.

use super::{Machine, Raised};
use crate::print::{MAX_CUT_MARK, push_cut_mark};

impl Machine {
    /// Collects one line of `println` and its family.
    ///
    /// # Errors
    ///
    /// Raises a fault if the memory limit is exceeded.
    pub fn print(&mut self, mut line: String) -> Result<(), Raised> {
        self.fail_if_comparison_gave_up()?;
        self.charge(line.len())?;
        let limit = self.meters.limits.print_bytes;
        // One long line leaves room for others.
        let longest = limit / 4;
        if line.len() > longest && longest > 2 * MAX_CUT_MARK {
            let end = line.floor_char_boundary(longest - MAX_CUT_MARK);
            let gone = line.get(end..).map_or(0, |rest| rest.chars().count());
            line.truncate(end);
            push_cut_mark(&mut line, gone);
        }
        let left = limit.saturating_sub(self.printed);
        self.printed = self.printed.saturating_add(line.len()).saturating_add(1);
        if left == 0 {
            return Ok(());
        }
        let cut = line.len() >= left;
        if cut {
            // Show the part that fits: usually one large value was printed for inspection.
            line.truncate(line.floor_char_boundary(left));
        }
        self.line(line);
        if cut {
            self.line(format!("… output cut at {limit} bytes"));
        }
        Ok(())
    }

    /// Drops the lines that are printed from now on.
    pub(crate) fn mute(&mut self) {
        self.muted = true;
    }

    fn line(&mut self, line: String) {
        if !self.muted {
            self.host.printed(&line);
        }
        self.prints.push(line);
    }
}
