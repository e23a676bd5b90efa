//! The end of a list: whether the received items are all that there are.

use ptc_catalog::{By, Paging};
use ptc_lisp::{Kind, Value};

use super::{Error, Pages, Progress};

impl Pages {
    /// Returns the number of items before the first received page. `None` if the program began in the middle and the number is
    /// unknown. `pages` is the number of pages so far.
    pub(super) fn items_before(&self, paging: &Paging, pages: usize) -> Option<usize> {
        let Some(at) = self.begins_at else { return Some(0) };
        match paging.by {
            By::Offset => usize::try_from(at - paging.first.unwrap_or(0)).ok(),
            By::Page => {
                let skipped = usize::try_from(at - paging.first.unwrap_or_else(|| at.min(1))).ok()?;
                // The last page may be shorter, so that one page does not tell the size of the others.
                (skipped == 0 || pages > 1).then_some(skipped * self.first_len)
            }
            _ => None,
        }
    }

    /// Whether only a count says that the list ends here. It does not if an item was added meanwhile, or if it is wrong. This
    /// goes unnoticed only if the last page is full.
    pub(super) fn is_end_counted(&self, answer: &Value, header: Option<&str>, paging: &Paging) -> bool {
        let has = |path: &Option<String>| path.as_deref().is_some_and(|path| super::answer::at(answer, path).is_some());
        let size = paging.size.as_deref();
        let size = size
            .and_then(|size| self.given(size))
            .map_or(paging.max_size, Value::as_int)
            .map(|size| size.min(super::MAX_PAGE_SIZE));
        let is_full = self.first_len > 0
            && self.last_items().len() == self.first_len
            && size.is_none_or(|size| i64::try_from(self.first_len).is_ok_and(|len| len >= size));
        matches!(paging.by, By::Page | By::Offset)
            && paging.argument.is_some()
            && paging.next.is_none()
            && header.is_none()
            && !self.has_header
            && !has(&paging.more)
            && !has(&paging.last)
            && (has(&paging.total) || has(&paging.pages))
            && is_full
    }

    /// Ends the list after the request for the page behind its counted end. `found` is what that answer has in place of items.
    pub(super) fn end_after_probe(
        &mut self,
        found: Option<&Value>,
        paging: &Paging,
        calls_left: usize,
    ) -> Result<Progress, Error> {
        self.is_probe = false;
        let page: Vec<Value> = match found {
            Some(list) if list.kind() == Kind::Vector => list.items().into_iter().flatten().cloned().collect(),
            // An answer of another shape says that there is no such page.
            _ => Vec::new(),
        };
        if self.is_base_unknown {
            self.is_base_unknown = false;
            if self.last_items() == page.as_slice() {
                // This was the first page once more, so that its number is 1, and the page behind the end is the second.
                self.at = Some(1);
                self.is_probe = true;
                return self.ask_for_page(2, paging);
            }
        }
        // Some services repeat the last page in place of pages that do not exist.
        let is_repeated = self.last_items() == page.as_slice() || self.is_seen(&page);
        if page.is_empty() || is_repeated {
            return self.finish(paging, calls_left);
        }
        let counted = self.total.map_or_else(|| "the announced pages".to_owned(), |total| format!("the {total} announced items"));
        Err(self.broken(&format!("there are more items after {counted}")))
    }

    /// Ends the list if the failure of the last request only says that there is no page after the last one. Otherwise returns
    /// `None`. `status` is the status of the HTTP answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the items are not as many as announced.
    pub fn end_with_failure(
        &mut self,
        reason: &str,
        message: &str,
        status: Option<u16>,
        calls_left: usize,
    ) -> Option<Result<Progress, Error>> {
        let paging = self.paging.clone().filter(|_| self.is_probe)?;
        let is_end = match status {
            // The request differs from the earlier ones only in its page.
            Some(status) => matches!(status, 400 | 404 | 416 | 422),
            None => reason == "tool_error" && says_no_such_page(message, paging.argument.as_deref().unwrap_or_default()),
        };
        self.is_probe &= !is_end;
        is_end.then(|| self.finish(&paging, calls_left))
    }

    /// Ends the list and compares its items with the announced total.
    pub(super) fn end(&self, paging: &Paging) -> Result<Progress, Error> {
        self.check_repeated_items()?;
        let total = self.total.and_then(|total| usize::try_from(total).ok());
        let (Some(total), Some(before)) = (total, self.items_before(paging, self.received)) else { return Ok(Progress::Done) };
        let there = before + self.items.len();
        // If the first page may have the number 0, page 1 may be the second one.
        let may_be_second = paging.by == By::Page && paging.first.is_none() && self.begins_at == Some(1);
        if there == total || may_be_second && there + self.first_len == total {
            return Ok(Progress::Done);
        }
        Err(self.broken(&format!("{total} items were announced, and {there} are there at the end")))
    }
}

/// Whether the error of a tool speaks of the page that was requested. A status from 500 on or 429 in it has another reason.
fn says_no_such_page(message: &str, argument: &str) -> bool {
    let text = message.to_lowercase();
    let is_fault = |word: &str| word == "429" || word.len() == 3 && word.starts_with('5') && word.parse::<u16>().is_ok();
    let is_about_page = |part: &str| text.contains(part);
    !text.split(|c: char| !c.is_alphanumeric()).any(is_fault)
        && (["page", "404", "not found", "out of range"].into_iter().any(is_about_page)
            || is_about_page(&argument.to_lowercase()))
}
