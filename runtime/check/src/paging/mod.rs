//! Reads all pages of a list: makes the requests in order and decides whether the list is complete.
//!
//! [`Pages`] is a state machine without I/O. It returns the arguments of a request and receives the answer. It ends with all
//! items or with an error, never with an incomplete list. [`UnreadPages`] records the first pages of lists that a program did not
//! read further.

mod answer;
mod budget;
mod end;
mod error;
mod link;
mod next;
mod repeated;
mod reread;
mod unread;

pub use unread::{Announced, UnreadPages, announced};

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use ptc_catalog::paging::{self, Argument, NOT_PAGED};
use ptc_catalog::{Arg, By, Paging, Tool, Upstream};
use ptc_lisp::{Kind, Value, json};

use self::repeated::Repeated;
use self::reread::Reread;

/// Maximum page size that is requested, even if the declared maximum is larger. Answers have a limit in bytes.
const MAX_PAGE_SIZE: i64 = 1000;

/// The next action after a page.
#[derive(Debug)]
pub enum Progress {
    /// The list is complete.
    Done,
    /// Request the next page with these arguments.
    Next(Value),
    /// Request all other pages with these arguments, possibly at the same time. Their answers are received in this order.
    Rest(Vec<Value>),
}

/// The reason why a list cannot be read completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What was expected and what was found.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// The pages of one list.
#[expect(clippy::struct_excessive_bools, reason = "independent observations about the pages")]
#[derive(Debug)]
pub struct Pages {
    upstream: &'static Upstream,
    tool: &'static Tool,
    /// The program's arguments.
    args: Value,
    /// How the list is paged. Without a schema this is unknown until the first answer.
    paging: Option<Paging>,
    /// Number of items after which to stop.
    max: Option<usize>,
    items: Vec<Value>,
    /// Number of received pages.
    received: usize,
    /// Index of the first item of the previous page.
    last_page: usize,
    /// Number of items in the first page, and whether a later page had fewer.
    first_len: usize,
    was_short: bool,
    /// Page number or offset of the page that was received last. `None` if the first page was requested without a number.
    at: Option<i64>,
    /// The page number or offset that the program itself requested, if any.
    begins_at: Option<i64>,
    total: Option<i64>,
    /// Tokens, ids and links that were followed.
    followed: HashSet<String>,
    has_header: bool,
    /// Whether a page had the member that shows whether there are more.
    says_more: bool,
    /// Whether the previous page announced this one.
    was_announced: bool,
    /// The number of the first page.
    base: i64,
    /// Number of pages of [`Progress::Rest`] that are still outstanding.
    rest: usize,
    /// Whether the first page was requested without a number, so that its number may be 0 or 1.
    is_base_unknown: bool,
    sent: Value,
    /// Hashes of received pages with objects as items.
    seen: HashSet<u64>,
    repeated: Repeated,
    reread: Reread,
    /// Whether the outstanding request is for the page after the counted end, which should have no items.
    is_probe: bool,
    /// The last item of the previous page, which the next page has to start with. Pages by offset overlap by one item if no total
    /// is announced, so that a list that has become shorter is noticed.
    overlap: Option<Value>,
}

/// Returns the arguments of a tool in the form that paging uses.
pub fn arguments(tool: &Tool) -> Vec<Argument<'static>> {
    let argument = |arg: &'static Arg| Argument { name: arg.name, types: arg.types, first: None, maximum: None, says: "" };
    tool.args.iter().map(argument).collect()
}

impl Pages {
    /// Starts to read the list that a tool returns for these arguments, a map or nil. `max` is the number of items after which to
    /// stop.
    ///
    /// # Errors
    ///
    /// Returns an error if paging is disabled for the tool by configuration, or if the tool is an operation that writes.
    pub fn new(upstream: &'static Upstream, tool: &'static Tool, args: Value, max: Option<usize>) -> Result<Pages, Error> {
        let args = if args.is_nil() { Value::map([]) } else { args };
        let mut pages = Pages {
            upstream,
            tool,
            paging: Paging::parse(tool.paging),
            max,
            items: Vec::new(),
            received: 0,
            last_page: 0,
            first_len: 0,
            was_short: false,
            at: None,
            begins_at: None,
            total: None,
            followed: HashSet::new(),
            has_header: false,
            says_more: false,
            was_announced: false,
            base: 1,
            rest: 0,
            is_base_unknown: false,
            sent: args.clone(),
            seen: HashSet::new(),
            repeated: Repeated::default(),
            reread: Reread::default(),
            is_probe: false,
            overlap: None,
            args,
        };
        if tool.paging == NOT_PAGED {
            let hint = format!("(tool/value {{:server {:?} :tool {:?} …}}) gives its value", upstream.name, tool.name);
            return Err(Error { message: pages.named("the tool is configured not to be paged"), hint });
        }
        if tool.operation.is_some() && tool.effect().is_write() {
            let hint =
                "tool/value calls it once; if it only reads, its override in the config needs \"read_only\": true".to_owned();
            return Err(Error { message: pages.named("the operation writes, and reading pages would repeat it"), hint });
        }
        if let Some(argument) = pages.paging.as_ref().and_then(|paging| paging.argument.clone()) {
            let given = pages.given(&argument);
            pages.begins_at = given.map(number_or_negative);
        }
        Ok(pages)
    }

    /// Returns the arguments of the first page.
    pub fn first(&mut self) -> Value {
        self.sent = self.with(&[]);
        self.sent.clone()
    }

    /// Returns the received items.
    pub fn into_items(self) -> Vec<Value> {
        self.items
    }

    /// Describes the progress: `after 3 pages with 300 items`.
    pub fn arrived(&self) -> String {
        let pages = if self.received == 1 { "page" } else { "pages" };
        format!("after {} {pages} with {} items", self.received, self.items.len())
    }

    /// Receives the answer to the next outstanding request, with its `Link` header. `calls_left` is the remaining budget of
    /// calls.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be established that the list is complete.
    pub fn receive(&mut self, answer: &Value, header: Option<&str>, calls_left: usize) -> Result<Progress, Error> {
        let paging = match &self.paging {
            Some(paging) => paging.clone(),
            None => self.decide(answer, header)?,
        };
        let found = answer::at(answer, &paging.items);
        if let Some(compared) = self.compare_again(found, &paging) {
            return compared;
        }
        if self.is_probe {
            return self.end_after_probe(found, &paging, calls_left);
        }
        if let Some(requests) = self.keep_last_page(answer, header) {
            return Ok(requests);
        }
        let mut page: Vec<Value> = match found {
            Some(list) if list.kind() == Kind::Vector => list.items().into_iter().flatten().cloned().collect(),
            Some(nil) if nil.is_nil() => Vec::new(),
            None if self.is_empty_without_list(answer) => Vec::new(),
            _ => return Err(self.misshapen(answer, &paging)),
        };
        if let Some(last) = self.overlap.take() {
            if !page.first().is_some_and(|first| self.is_same_item(first, &last)) {
                return Err(self
                    .broken("the page does not begin with the last item of the one before: the list changed while it was read"));
            }
            page.remove(0);
        }
        self.has_header |= header.is_some();
        self.settle_base(&page, answer, &paging);
        // The answer to the request for page 1 shows whether this is the first page again or the second one.
        let is_base_found = self.is_base_unknown && self.received == 1;
        let is_first_again = is_base_found && self.last_items() == page.as_slice();
        if is_base_found {
            self.is_base_unknown = false;
            self.base = i64::from(is_first_again);
        }
        let announced = self.announced(answer, header, &paging)?;
        let total = answer::count_at(answer, paging.total.as_deref());
        if let (Some(before), Some(now)) = (self.total, total)
            && before != now
        {
            return Err(self.broken(&format!("the announced total changed from {before} to {now} while the pages were read")));
        }
        self.total = self.total.or(total);
        if is_first_again {
            return self.next(answer, header, &paging, announced);
        }
        if !page.is_empty() && self.received > 0 && self.last_items() == page.as_slice() {
            return Err(self.broken("a page has the same items as the one before"));
        }
        if page.first().is_some_and(|item| item.kind() == Kind::Map) && !self.seen.insert(hash(&page)) {
            return Err(self.broken("a page has the same items as an earlier one"));
        }
        self.record_repeated_items(&page);
        if page.is_empty() && self.was_announced && matches!(paging.by, By::Page | By::Offset) {
            return Err(self.broken("a page has no items, and the page before announced some"));
        }
        self.was_announced = announced == Some(true);
        self.record_edges(&page, &paging);
        self.add(page, &paging)?;
        if self.received == 1 {
            self.check_budget(answer, header, &paging, announced, calls_left)?;
        }
        if let Some(max) = self.max
            && self.items.len() >= max
        {
            self.items.truncate(max);
            return self.check_repeated_items().map(|()| Progress::Done);
        }
        if self.rest > 0 {
            self.rest -= 1;
            if self.rest > 0 {
                if announced == Some(false) {
                    return Err(self.broken("the list became shorter while its pages were read"));
                }
                if let Some(received) = self.receive_last_page(calls_left) {
                    return received;
                }
                return Ok(Progress::Rest(Vec::new()));
            }
        }
        match announced {
            Some(true) => {
                if self.items.len() == self.last_page {
                    return Err(self.broken("a page has no items while more are announced"));
                }
                self.next(answer, header, &paging, announced)
            }
            None if matches!(paging.by, By::Page | By::Offset) && self.items.len() > self.last_page => {
                self.next(answer, header, &paging, announced)
            }
            Some(false) if calls_left > self.rereads_at_end(&paging) && self.is_end_counted(answer, header, &paging) => {
                self.is_probe = true;
                self.next(answer, header, &paging, announced)
            }
            Some(false) | None => self.finish(&paging, calls_left),
        }
    }

    /// Determines from the first answer how the list is paged.
    fn decide(&mut self, answer: &Value, header: Option<&str>) -> Result<Paging, Error> {
        let arguments = arguments(self.tool);
        let shape = answer::shape(answer);
        let found = paging::infer(self.tool.name, &arguments, &shape, header.is_some())
            .or_else(|| paging::whole(self.tool.name, &arguments, &shape))
            .or_else(|| paging::last_page(self.tool.name, &arguments, &shape))
            .map(|found| match header {
                Some(_) if found.by == By::Link && found.next.is_none() => Paging { by: By::Header, ..found },
                _ => found,
            });
        let Some(mut found) = found else { return Err(self.misfit(answer)) };
        if found.by == By::Link && found.next.is_none() && found.total.is_none() && found.more.is_none() {
            // Only a limited page size could make this list incomplete.
            let given = found.size.as_deref().map(|size| (size.to_owned(), self.given(size).and_then(Value::as_int)));
            let count = answer::at(answer, &found.items).and_then(Value::len).unwrap_or(0);
            if let Some((size, given)) = given
                && given.is_none_or(|given| usize::try_from(given).is_ok_and(|given| count >= given))
            {
                let what = format!("the tool takes {size}, and nothing in its answer shows whether the list is complete");
                let hint = format!("give a larger {size} than the list is long, or use tool/value");
                return Err(Error { message: self.named(&what), hint });
            }
        }
        if let Some(argument) = &found.argument {
            self.begins_at = self.given(argument).map(number_or_negative);
        }
        if let (By::Page, Some(argument), None) = (found.by, &found.argument, found.first) {
            found.first = declared_first(self.tool, argument);
        }
        found.max_size = None;
        self.paging = Some(found.clone());
        Ok(found)
    }

    /// Whether an answer announces more pages. Returns `None` if it does not tell.
    fn announced(&self, answer: &Value, header: Option<&str>, paging: &Paging) -> Result<Option<bool>, Error> {
        let flag = |path: &Option<String>| path.as_deref().and_then(|path| answer::at(answer, path)).and_then(Value::as_bool);
        let (more, last) = (flag(&paging.more), flag(&paging.last).map(|last| !last));
        if self.received > 0 && self.rest == 0 && paging.more.is_some() && more.is_none() && last.is_none() && self.says_more {
            let path = paging.more.as_deref().unwrap_or_default();
            return Err(self.broken(&format!("a page does not have {path}, which the page before has")));
        }
        if let Some(said) = more.or(last) {
            return Ok(Some(said));
        }
        if header.is_some() || self.has_header {
            return Ok(Some(header.is_some_and(|header| link::of_relation(header, "next").is_some())));
        }
        if let Some(path) = &paging.next {
            let next = answer::at(answer, path);
            return Ok(Some(
                next.is_some_and(|next| !next.is_nil() && next.as_bool() != Some(false) && next.as_str() != Some("")),
            ));
        }
        if paging.by == By::Header {
            return Ok(Some(false));
        }
        let count = |path: &Option<String>| answer::count_at(answer, path.as_deref());
        if let (Some(pages), Some(page)) = (count(&paging.pages), count(&paging.page)) {
            return Ok(Some(page - self.base + 1 < pages));
        }
        if let (Some(total), Some(before)) = (count(&paging.total), self.items_before(paging, self.received + 1)) {
            let here = answer::at(answer, &paging.items).and_then(Value::len).unwrap_or(0);
            return Ok(Some(i64::try_from(before + self.items.len() + here).unwrap_or(i64::MAX) < total));
        }
        let before = self.number().map(|number| number - self.base).or(self.is_base_unknown.then_some(0));
        let pages = count(&paging.pages).filter(|_| paging.by == By::Page);
        Ok(pages.zip(before).map(|(pages, before)| before + 1 < pages))
    }

    /// Returns the number of the received page. The later ones of [`Progress::Rest`] are outstanding.
    fn number(&self) -> Option<i64> {
        let outstanding = i64::try_from(self.rest.saturating_sub(1)).unwrap_or_default();
        self.at.map(|at| at - outstanding)
    }

    /// Updates the base of page numbers after a page was received.
    fn settle_base(&mut self, page: &[Value], answer: &Value, paging: &Paging) {
        let flag = paging.more.as_deref().and_then(|path| answer::at(answer, path));
        if flag.is_some_and(|flag| flag.as_bool().is_some()) {
            self.says_more = true;
        }
        if self.received > 0 {
            return;
        }
        self.at = match paging.by {
            By::Page => {
                let known = self.begins_at.filter(|at| *at >= 0).or(paging.first);
                known.or_else(|| answer::count_at(answer, paging.page.as_deref()))
            }
            By::Offset => Some(self.begins_at.filter(|at| *at >= 0).or(paging.first).unwrap_or(0)),
            _ => None,
        };
        self.base = paging.first.or(self.at.filter(|_| self.begins_at.is_none())).unwrap_or(1);
        self.is_base_unknown = paging.by == By::Page && self.at.is_none() && !page.is_empty();
    }

    fn last_items(&self) -> &[Value] {
        self.items.get(self.last_page..).unwrap_or_default()
    }

    fn add(&mut self, page: Vec<Value>, paging: &Paging) -> Result<(), Error> {
        let count = page.len();
        if self.received == 0 {
            self.first_len = count;
        } else if paging.by == By::Page && self.total.is_none() && count > 0 && self.was_short {
            return Err(
                self.broken("a page that was not the last has fewer items than the first: the list changed while it was read")
            );
        } else if paging.by == By::Offset && self.rest > 1 && count != self.first_len {
            let what = format!("a page has {count} items where {} were asked for", self.first_len);
            return Err(self.broken(&what));
        }
        self.was_short |= count < self.first_len;
        self.last_page = self.items.len();
        self.items.extend(page);
        self.received += 1;
        Ok(())
    }

    /// Returns the program's arguments, overridden with these, and with the largest page size.
    fn with(&self, due: &[(&str, Value)]) -> Value {
        let paging = self.paging.as_ref();
        let size = paging.and_then(|paging| Some((paging.size.as_deref()?, paging.max_size?)));
        let size = size.filter(|(size, most)| self.given(size).is_none() && *most > 0);
        let replaced = |key: &Value| key.as_name().is_some_and(|key| due.iter().any(|(name, _)| is_same(key, name)));
        let own = self.args.entries().into_iter().flatten().filter(|(key, _)| !replaced(key));
        let own = own.map(|(key, value)| (key.clone(), value.clone()));
        let size = size.map(|(size, most)| (Value::string(size), Value::int(most.min(MAX_PAGE_SIZE))));
        let due = due.iter().map(|(name, value)| (Value::string(name), value.clone()));
        Value::map(own.chain(size).chain(due))
    }

    /// Returns the program's value for an argument.
    fn given(&self, name: &str) -> Option<&Value> {
        let mut entries = self.args.entries()?;
        entries
            .find(|(key, value)| key.as_name().is_some_and(|key| is_same(key, name)) && !value.is_nil())
            .map(|(_, value)| value)
    }

    /// Whether an answer without the list means an empty list. Some services omit an empty list. The answer must then contain
    /// nothing that could be another list or an error.
    fn is_empty_without_list(&self, answer: &Value) -> bool {
        let is_plain = |(key, value): (&Value, &Value)| {
            !matches!(value.kind(), Kind::Vector | Kind::Map)
                && !matches!(key.as_name(), Some("error" | "errors" | "message" | "code"))
        };
        self.received == 0 && answer.entries().is_some_and(|mut entries| entries.all(is_plain))
    }
}

/// Returns the number of an argument, which may be text, or -1 for a token.
fn number_or_negative(given: &Value) -> i64 {
    given.as_int().or_else(|| given.as_str()?.parse().ok()).unwrap_or(-1)
}

/// Returns the number of the first page according to the input schema: the default or the minimum of the argument.
fn declared_first(tool: &Tool, argument: &str) -> Option<i64> {
    let definition = json::decode(tool.definition.as_bytes()).ok()?;
    let declared = definition.get("inputSchema")?.get("properties")?.get(argument)?;
    ["default", "minimum"].iter().find_map(|key| declared.get(key)?.as_int()).filter(|first| matches!(first, 0 | 1))
}

fn hash(items: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    items.hash(&mut hasher);
    hasher.finish()
}

/// Whether a name in a program, after replacing hyphens with underscores, is the name of an argument.
fn is_same(written: &str, name: &str) -> bool {
    let same = |(w, n): (u8, u8)| w == n || (w == b'-' && n == b'_');
    written.len() == name.len() && written.bytes().zip(name.bytes()).all(same)
}
