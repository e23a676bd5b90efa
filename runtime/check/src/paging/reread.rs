//! Reads pages a second time, to notice that a list by page number became shorter while it was read.
//!
//! A page number counts from the current beginning of the list. If an item of an earlier page is removed between two requests,
//! all later items move up, and the first one of the next page moves into a page that was already read. An announced total shows
//! this. Without one, a page that was read before the removal has other items at its ends when it is read again.
//!
//! If the number of pages is known, two more requests are sufficient. The last page is read before those between, and read again
//! after them: a removal meanwhile moves its first item. The first page, which was read before the last one, is read again too.
//! It takes a third request if the second page was read before the last one, too, to find the number of the first page.

use std::collections::VecDeque;

use ptc_catalog::Paging;
use ptc_lisp::Value;

use super::{Error, Pages, Progress};

/// What identifies the state of a page.
#[derive(Debug)]
struct Edges {
    /// The page number. `None` for the first page.
    number: Option<i64>,
    first: Value,
    last: Value,
    len: usize,
}

/// The last page, whose answer waits for the pages before it.
#[derive(Debug)]
struct LastPage {
    answer: Value,
    header: Option<String>,
}

/// The state of reading pages again.
#[derive(Debug, Default)]
pub(super) struct Reread {
    pages: Vec<Edges>,
    /// The requests for the pages between the first and the last one, while the last one is outstanding.
    between: Option<Vec<Value>>,
    last_page: Option<LastPage>,
    /// The number of pages that were read before the last one, if the last one was read before those between.
    before_last: Option<usize>,
    /// Pages that were requested again.
    outstanding: VecDeque<Edges>,
}

impl Pages {
    fn is_reread(&self, paging: &Paging) -> bool {
        paging.is_reread(self.total.is_some())
    }

    /// Returns the number of requests for a second reading if the list has so many further pages. None are made if `:max` ends it
    /// before.
    pub(super) fn rereads(&self, paging: &Paging, further: usize) -> usize {
        let is_read_to_end = self.pages_to_max().is_none_or(|pages| pages > further);
        if self.is_reread(paging) && is_read_to_end { further.min(2) } else { 0 }
    }

    /// Returns the number of pages that have to be read again if the list ends with the last received page.
    pub(super) fn rereads_at_end(&self, paging: &Paging) -> usize {
        let pages = &self.reread.pages;
        match pages.as_slice() {
            _ if !self.is_reread(paging) || self.received < 2 => 0,
            _ if let Some(before) = self.reread.before_last => before + 1,
            // Nothing follows a page that announces the end or is not full.
            [first, .., last] if pages.len() == self.received || last.len < first.len => pages.len() - 1,
            _ => pages.len(),
        }
    }

    /// Records a received page.
    pub(super) fn record_edges(&mut self, page: &[Value], paging: &Paging) {
        let (Some(first), Some(last)) = (page.first(), page.last()) else { return };
        if self.is_reread(paging) {
            let number = self.number().filter(|_| self.received > 0);
            self.reread.pages.push(Edges { number, first: first.clone(), last: last.clone(), len: page.len() });
        }
    }

    /// Receives requests for the further pages, of which the list has `further`. If pages are read again at the end of the list,
    /// its last page is requested first.
    pub(super) fn rest_or_last(&mut self, mut requests: Vec<Value>, paging: &Paging, further: usize) -> Progress {
        if !self.is_reread(paging) || requests.len() < further {
            return Progress::Rest(requests);
        }
        let Some(last) = requests.pop() else { return Progress::Rest(requests) };
        self.reread.between = Some(requests);
        self.reread.before_last = Some(self.received);
        Progress::Next(last)
    }

    /// Keeps the answer if it is the last page, which was requested first. Returns the requests for the pages before it.
    pub(super) fn keep_last_page(&mut self, answer: &Value, header: Option<&str>) -> Option<Progress> {
        let between = self.reread.between.take()?;
        self.reread.last_page = Some(LastPage { answer: answer.clone(), header: header.map(str::to_owned) });
        Some(Progress::Rest(between))
    }

    /// Receives the last page if it is the only one that is left.
    pub(super) fn receive_last_page(&mut self, calls_left: usize) -> Option<Result<Progress, Error>> {
        let last = if self.rest == 1 { self.reread.last_page.take()? } else { return None };
        Some(self.receive(&last.answer, last.header.as_deref(), calls_left))
    }

    /// Ends the list, after reading pages again if that is necessary.
    pub(super) fn finish(&mut self, paging: &Paging, calls_left: usize) -> Result<Progress, Error> {
        let count = self.rereads_at_end(paging);
        if count == 0 {
            return self.end(paging);
        }
        if count > calls_left {
            let what = format!(
                "no total is announced, so that {count} of its pages have to be read again to see whether the list changed, and the \
                 budget of calls has {calls_left} left"
            );
            return Err(Error { message: self.named(&format!("{what}, {}", self.arrived())), hint: self.narrowing(paging) });
        }
        let mut pages = std::mem::take(&mut self.reread.pages);
        let last = self.reread.before_last.and_then(|_| pages.pop());
        pages.truncate(count - usize::from(last.is_some()));
        pages.extend(last);
        let argument = paging.argument.as_deref().unwrap_or_default();
        let request = |page: &Edges| match page.number {
            Some(number) => self.with(&[(argument, self.number_for(argument, number))]),
            None => self.with(&[]),
        };
        let requests: Vec<Value> = pages.iter().map(request).collect();
        self.reread.outstanding = pages.into();
        Ok(Progress::Rest(requests))
    }

    /// Compares an answer with the page that was requested again. Returns `None` if no page was.
    pub(super) fn compare_again(&mut self, found: Option<&Value>, paging: &Paging) -> Option<Result<Progress, Error>> {
        let before = self.reread.outstanding.pop_front()?;
        let items = || found.and_then(Value::items);
        let (first, last) = (items().and_then(|mut items| items.next()), items().and_then(Iterator::last));
        let is_same = |now: Option<&Value>, before: &Value| now.is_some_and(|now| self.is_same_item(now, before));
        let len = found.and_then(Value::len);
        if len != Some(before.len) || !is_same(first, &before.first) || !is_same(last, &before.last) {
            let name = before.number.map_or_else(|| "the first page".to_owned(), |number| format!("page {number}"));
            let what = format!("{name} has other items when it is read again: the list changed while it was read");
            return Some(Err(self.broken(&what)));
        }
        Some(if self.reread.outstanding.is_empty() { self.end(paging) } else { Ok(Progress::Rest(Vec::new())) })
    }
}
