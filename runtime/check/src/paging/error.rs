//! The errors of a list that cannot be read completely.

use ptc_catalog::Paging;
use ptc_lisp::Value;

use super::{Error, Pages, answer};

impl Pages {
    pub(super) fn named(&self, what: &str) -> String {
        format!("tool/all: {}/{}: {what}", self.upstream.name, self.tool.name)
    }

    pub(super) fn broken(&self, what: &str) -> Error {
        let hint = "read the pages by tool/value, one after the other, to see what each of them says".to_owned();
        Error { message: self.named(&format!("{what}, {}", self.arrived())), hint }
    }

    pub(super) fn misshapen(&self, answer: &Value, paging: &Paging) -> Error {
        let place = if paging.items.is_empty() { "the answer".to_owned() } else { format!("'{}'", paging.items) };
        let what = format!("{place} should be the list of items, and the answer is {}", answer::described(answer));
        if self.received > 0 {
            return self.broken(&what);
        }
        Error { message: self.named(&what), hint: self.written_loop() }
    }

    pub(super) fn misfit(&self, answer: &Value) -> Error {
        let what = format!(
            "the answer does not tell how the list is paged: looked for one list of items, and for a page number, an offset, a \
             token or a link of the next page with an argument that takes it; the answer is {}",
            answer::described(answer)
        );
        Error { message: self.named(&what), hint: self.written_loop() }
    }

    /// Returns advice for a list that is too long for the budget of calls.
    pub(super) fn narrowing(&self, paging: &Paging) -> String {
        const LISTED: usize = 20;
        let paging_names = [paging.argument.as_deref(), paging.size.as_deref()];
        let narrowing = self.tool.args.iter().map(|arg| arg.name).filter(|name| !paging_names.contains(&Some(name)));
        match narrowing.take(LISTED).collect::<Vec<_>>().join(", ").as_str() {
            "" => "stop after n items with :max n".to_owned(),
            names => format!("narrow the list by its arguments ({names}), or stop after n items with :max n"),
        }
    }

    pub(super) fn written_loop(&self) -> String {
        format!(
            "where the list is whole, take it from (tool/value …); otherwise write the loop: (loop [args {{…}} rows []] (let [page \
             (tool/value {{:server {:?} :tool {:?} :args args}}) rows (into rows (:items page))] (if-let [next (:next page)] (recur \
             (assoc args :cursor next) rows) rows)))",
            self.upstream.name, self.tool.name
        )
    }
}
