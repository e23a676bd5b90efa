//! The requests that follow a page.

use std::fmt;

use ptc_catalog::paging;
use ptc_catalog::{By, Paging, Type};
use ptc_lisp::{Kind, Value};

use super::{Error, Pages, Progress, answer, link};

/// The reason why the next page cannot be requested.
#[derive(Debug)]
pub(super) enum NextError {
    /// Neither a link nor an argument of the tool requests it.
    NoArgument,
    /// The last item does not have the member whose value requests it.
    NoId(String),
    /// The answer has no token at this path.
    NoToken(String),
    /// The token has a kind that no argument takes.
    TokenKind(&'static str),
    /// The link cannot be converted to arguments.
    Link(String),
    /// An earlier page announced the same token, id or link.
    Repeated(String),
    /// The request would be the same as the one before.
    SameRequest,
}

impl fmt::Display for NextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NextError::NoArgument => f.write_str("more is announced, and neither a link nor an argument of the tool asks for it"),
            NextError::NoId(member) => write!(f, "more is announced, and the last item has no {member} to ask for it by"),
            NextError::NoToken(path) => write!(f, "more is announced, and {path} has nothing to ask for it by"),
            NextError::TokenKind(kind) => write!(f, "the token of the next page is {kind}"),
            NextError::Link(why) => write!(f, "the link to the next page cannot be followed: {why}"),
            NextError::Repeated(token) => {
                write!(f, "the same next page was announced twice: {}", ptc_lisp::print::excerpt(token))
            }
            NextError::SameRequest => f.write_str("the next page would be asked for with the arguments of this one"),
        }
    }
}

impl Pages {
    /// Returns the request after this page.
    pub(super) fn next(
        &mut self,
        answer: &Value,
        header: Option<&str>,
        paging: &Paging,
        announced: Option<bool>,
    ) -> Result<Progress, Error> {
        let next = self.try_next(answer, header, paging, announced);
        next.map_err(|error| self.broken(&error.to_string()))
    }

    pub(super) fn try_next(
        &mut self,
        answer: &Value,
        header: Option<&str>,
        paging: &Paging,
        announced: Option<bool>,
    ) -> Result<Progress, NextError> {
        let argument = paging.argument.as_deref();
        let token = paging.next.as_deref().and_then(|path| answer::at(answer, path)).filter(|token| !token.is_nil());
        let by_header = header.and_then(|header| link::of_relation(header, "next"));
        let by_link = by_header.or_else(|| token.and_then(Value::as_str).filter(|text| link::is_link(text)));
        match (paging.by, argument) {
            (By::Page, Some(argument)) => {
                if self.is_base_unknown
                    && let Some(number) = self.announced_number(argument, token, by_link)
                {
                    self.at = Some(number - 1);
                    self.base = number - 1;
                    self.is_base_unknown = false;
                }
                if self.is_base_unknown {
                    // The first page has the number 0 or 1. The answer to a request for 1 decides.
                    self.at = Some(1);
                    return self.ask(&[(argument, Value::int(1))]);
                }
                let at = self.at.unwrap_or(1);
                self.rest_of(at + 1, 1, argument, answer, header, paging, announced)
            }
            (By::Offset, Some(argument)) => {
                let begin = self.begins_at.filter(|at| *at >= 0).or(paging.first).unwrap_or(0);
                let mut at = begin + i64::try_from(self.items.len()).unwrap_or(i64::MAX);
                if self.total.is_none() && self.first_len > 1 {
                    at -= 1;
                    self.overlap = self.items.last().cloned();
                }
                let step = i64::try_from(self.first_len).unwrap_or(i64::MAX);
                self.rest_of(at, step, argument, answer, header, paging, announced)
            }
            (By::LastId, Some(argument)) => {
                let member = paging.id.as_deref().unwrap_or("id");
                let id = self.items.last().and_then(|item| answer::at(item, member)).filter(|id| !id.is_nil()).cloned();
                let Some(id) = id else {
                    return Err(NextError::NoId(member.to_owned()));
                };
                self.follow(&ptc_lisp::print::readable(&id))?;
                self.ask(&[(argument, id)])
            }
            (By::Cursor, Some(argument)) if by_link.is_none() => {
                let Some(token) = token.cloned() else {
                    return Err(NextError::NoToken(paging.next.clone().unwrap_or_default()));
                };
                if !matches!(token.kind(), Kind::String | Kind::Int | Kind::BigInt | Kind::Double) {
                    return Err(NextError::TokenKind(token.kind().described()));
                }
                self.follow(&ptc_lisp::print::readable(&token))?;
                let takes_number = self.tool.arg(argument).is_none_or(|arg| arg.types.admits(Type::Integer));
                let token = if takes_number {
                    token
                } else {
                    Value::string(token.as_str().map_or_else(|| ptc_lisp::print::readable(&token), str::to_owned))
                };
                self.ask(&[(argument, token)])
            }
            _ => {
                let link = by_link.ok_or(NextError::NoArgument)?;
                self.follow(link)?;
                let arguments = link::arguments(self.upstream, self.tool, link).map_err(NextError::Link)?;
                let due = arguments.into_iter().filter(|(name, _)| paging::asks_for_page(name) || self.given(name).is_none());
                let due: Vec<(&str, Value)> = due.collect();
                self.ask(&due)
            }
        }
    }

    /// Returns the next page number that the answer announces as a number or a link.
    pub(super) fn announced_number(&self, argument: &str, token: Option<&Value>, link: Option<&str>) -> Option<i64> {
        let by_link = || {
            let arguments = link::arguments(self.upstream, self.tool, link?).ok()?;
            let (_, number) = arguments.into_iter().find(|(name, _)| *name == argument)?;
            number.as_int().or_else(|| number.as_str()?.parse().ok())
        };
        token.and_then(Value::as_int).or_else(by_link)
    }

    /// Requests the pages from a number on: all at once if their number is known, otherwise the next one.
    #[expect(clippy::too_many_arguments, reason = "the parts of a received page")]
    fn rest_of(
        &mut self,
        from: i64,
        step: i64,
        argument: &str,
        answer: &Value,
        header: Option<&str>,
        paging: &Paging,
        announced: Option<bool>,
    ) -> Result<Progress, NextError> {
        let list = self.further(answer, header, paging).filter(|_| announced == Some(true) && self.overlap.is_none());
        let value = |number: i64| self.number_for(argument, number);
        if let Some((list, further)) = list.map(|list| (list, self.up_to_max(list))).filter(|(_, further)| *further > 1) {
            let mut numbers = (0..i64::try_from(further).unwrap_or(i64::MAX)).map(|page| from + page * step);
            let requests: Vec<Value> = numbers.clone().map(|number| self.with(&[(argument, value(number))])).collect();
            self.at = numbers.next_back();
            self.rest = further;
            if let Some(last) = requests.last() {
                self.sent = last.clone();
            }
            return Ok(self.rest_or_last(requests, paging, list));
        }
        self.at = Some(from);
        let number = self.number_for(argument, from);
        self.ask(&[(argument, number)])
    }

    /// Returns a number as the argument takes it, some as text.
    pub(super) fn number_for(&self, argument: &str, number: i64) -> Value {
        let is_text = self.tool.arg(argument).is_some_and(|arg| !arg.types.admits(Type::Integer));
        if is_text { Value::string(number.to_string()) } else { Value::int(number) }
    }

    /// Requests the page with this number.
    pub(super) fn ask_for_page(&mut self, number: i64, paging: &Paging) -> Result<Progress, Error> {
        let Some(argument) = paging.argument.as_deref() else { return self.end(paging) };
        let number = self.number_for(argument, number);
        self.ask(&[(argument, number)]).map_err(|error| self.broken(&error.to_string()))
    }

    fn follow(&mut self, token: &str) -> Result<(), NextError> {
        if self.followed.insert(token.to_owned()) { Ok(()) } else { Err(NextError::Repeated(token.to_owned())) }
    }

    fn ask(&mut self, due: &[(&str, Value)]) -> Result<Progress, NextError> {
        let request = self.with(due);
        if request == self.sent {
            return Err(NextError::SameRequest);
        }
        self.sent = request.clone();
        Ok(Progress::Next(request))
    }
}
