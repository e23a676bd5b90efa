//! Encodes a call of an operation as an HTTP request, with its address and the headers from its arguments.

use litemap::LiteMap;
use ptc_catalog::{Answers, OpenApi, Operation};
use ptc_lisp::host::Reservation;
use ptc_lisp::{Value, json};
use reqwest::header::{HeaderMap, HeaderValue};
use url::Url;

use super::{address, fields, head};
use crate::upstream::arguments::{Bounds, Unsendable};

/// The arguments of a call, completed with the defaults of its operation.
pub(super) struct Arguments<'v> {
    given: LiteMap<&'v str, &'v Value>,
    defaults: Vec<(&'static str, Value)>,
}

impl<'v> Arguments<'v> {
    /// Removes arguments that are `nil`, and decodes the required defaults.
    pub(super) fn new(operation: &Operation, mut given: LiteMap<&'v str, &'v Value>) -> Result<Arguments<'v>, Unsendable> {
        given.retain(|_, value| !value.is_nil());
        let mut defaults = Vec::new();
        for (name, text) in operation.default_args {
            if !given.contains_key(name) {
                let value = json::decode(text.as_bytes())
                    .map_err(|why| Unsendable::Invalid(format!("the default of '{name}' is not JSON: {why}")))?;
                defaults.push((*name, value));
            }
        }
        Ok(Arguments { given, defaults })
    }

    /// Returns the argument of this name, or its default.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let given = self.given.get(name).copied();
        given.or_else(|| self.defaults.iter().find(|(known, _)| *known == name).map(|(_, value)| value))
    }
}

/// The request of an operation, whose bytes are reserved in the memory of the program.
#[derive(Debug)]
pub(crate) struct EncodedRequest {
    pub(super) url: Url,
    /// Headers in addition to those of the client.
    pub(super) headers: HeaderMap,
    pub(super) accept: HeaderValue,
    /// Whether the bytes of a binary body go into the result.
    pub(super) with_bytes: bool,
    pub(super) answers: Answers,
    _reservation: Option<Reservation>,
}

impl EncodedRequest {
    /// Number of copies of the address and the headers that exist at the same time while they are sent: the URL, the target of
    /// the request, and the encoded head.
    const COPIES: usize = 4;

    /// Returns the bytes of the address and of the headers.
    pub(crate) fn len(&self) -> usize {
        len(&self.url, &self.headers)
    }
}

fn len(url: &Url, headers: &HeaderMap) -> usize {
    url.as_str().len() + headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
}

/// What a call says beside its arguments.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallOptions<'v> {
    /// `:accept`
    pub(crate) accept: Option<&'v str>,
    /// `:body false`
    pub(crate) without_bytes: bool,
}

/// Encodes a call of `operation`.
///
/// # Errors
///
/// Says which argument cannot be sent and why, or that the program has no memory for the request.
pub(crate) fn encode(
    spec: &OpenApi,
    operation: &Operation,
    args: LiteMap<&str, &Value>,
    options: CallOptions<'_>,
    bounds: &Bounds,
) -> Result<EncodedRequest, Unsendable> {
    let accept = match options.accept {
        None => head::accept(operation.answers),
        Some(wanted) => accept(operation.answers, wanted)?,
    };
    let args = Arguments::new(operation, args)?;
    let url = address::of(spec, operation, &args, bounds)?;
    let headers = fields::of(operation, &args, bounds)?;
    let reservation = bounds.reserve(len(&url, &headers) * EncodedRequest::COPIES).map_err(Unsendable::Fault)?;
    let Operation { answers, .. } = *operation;
    Ok(EncodedRequest { url, headers, accept, with_bytes: !options.without_bytes, answers, _reservation: reservation })
}

fn accept(answers: Answers, wanted: &str) -> Result<HeaderValue, Unsendable> {
    let value = HeaderValue::from_str(wanted).ok().filter(|_| head::is_declared(answers, wanted));
    value.ok_or_else(|| {
        let types = answers.types().collect::<Vec<_>>().join(", ");
        let wanted = ptc_lisp::print::excerpt(wanted);
        Unsendable::Invalid(format!("the operation does not answer with '{wanted}' (:accept); it answers with {types}"))
    })
}
