//! The number of further pages, compared with the budget of calls.

use ptc_catalog::{By, Paging};
use ptc_lisp::Value;

use super::{Error, Pages, answer, link};

impl Pages {
    /// Returns the number of further pages until `max` items are received.
    pub(super) fn pages_to_max(&self) -> Option<usize> {
        self.max.map(|max| max.saturating_sub(self.items.len()).div_ceil(self.first_len.max(1)))
    }

    /// Returns the number of pages to request of so many further ones.
    pub(super) fn up_to_max(&self, further: usize) -> usize {
        self.pages_to_max().map_or(further, |pages| pages.min(further))
    }

    /// Returns the number of further pages of the list, if the answer contains it.
    pub(super) fn further(&self, answer: &Value, header: Option<&str>, paging: &Paging) -> Option<usize> {
        if self.first_len == 0 {
            return None;
        }
        let total = self.total.and_then(|total| usize::try_from(total).ok()).zip(self.items_before(paging, self.received));
        let by_total = total.map(|(total, before)| total.saturating_sub(before + self.items.len()).div_ceil(self.first_len));
        let from = match paging.by {
            By::Page => self.at.unwrap_or(self.base).saturating_sub(self.base),
            _ => i64::try_from(self.received).ok()? - 1,
        };
        let by_pages = answer::count_at(answer, paging.pages.as_deref());
        let by_pages = by_pages.filter(|_| paging.by == By::Page || self.begins_at.is_none());
        let by_pages = by_pages.and_then(|pages| usize::try_from(pages - 1 - from).ok());
        let last = header.and_then(|header| link::of_relation(header, "last")).filter(|_| paging.by == By::Page);
        let by_link = paging
            .argument
            .as_deref()
            .and_then(|argument| usize::try_from(self.announced_number(argument, None, last)? - self.at?).ok());
        by_pages.or(by_total).or(by_link)
    }

    pub(super) fn check_budget(
        &self,
        answer: &Value,
        header: Option<&str>,
        paging: &Paging,
        announced: Option<bool>,
        calls_left: usize,
    ) -> Result<(), Error> {
        let further = self.further(answer, header, paging).filter(|_| announced != Some(false));
        let Some(further) = further else { return Ok(()) };
        let rereads = self.rereads(paging, further);
        let further = self.up_to_max(further);
        let missing = match (further + rereads).saturating_sub(calls_left) {
            0 => return Ok(()),
            1 => "1 is missing".to_owned(),
            missing => format!("{missing} are missing"),
        };
        let total = self.total.map_or_else(String::new, |total| format!(" with {total} items"));
        let again = if rereads == 0 { String::new() } else { format!(", {rereads} of which have to be read again") };
        let pages = further + self.received;
        let what =
            format!("the list has {pages} pages{total}{again}, and {calls_left} calls are left after the first: {missing}");
        Err(Error { message: self.named(&what), hint: self.narrowing(paging) })
    }
}
