//! Encodes a call of an operation as an HTTP request, with its address and the headers from its arguments.

use litemap::LiteMap;
use ptc_catalog::{Answers, OpenApi, Operation};
use ptc_lisp::host::Reservation;
use ptc_lisp::{Value, json};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::body::{self, RequestBody};
use super::{address, fields, head};
use crate::arguments::{Bounds, Unsendable};
use crate::call_rules::CallRules;
use ptc_secrets::random;

/// The arguments of a call, completed with the defaults of its operation.
pub(super) struct Arguments<'v> {
    given: LiteMap<&'v str, &'v Value>,
    defaults: Vec<(&'static str, Value)>,
}

impl<'v> Arguments<'v> {
    /// Decodes the required defaults.
    pub(super) fn new(operation: &Operation, given: LiteMap<&'v str, &'v Value>) -> Result<Arguments<'v>, Unsendable> {
        let mut defaults = Vec::new();
        for (name, text) in operation.default_args {
            if given.get(name).is_none_or(|value| value.is_nil()) {
                let value = json::decode(text.as_bytes())
                    .map_err(|why| Unsendable::Invalid(format!("the default of '{name}' is not JSON: {why}")))?;
                defaults.push((*name, value));
            }
        }
        Ok(Arguments { given, defaults })
    }

    /// Returns the argument of this name, or its default. `nil` leaves an argument out.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.get_or_nil(name).filter(|value| !value.is_nil())
    }

    /// Returns the argument of this name, or its default; `nil` if the argument is `nil`.
    pub(super) fn get_or_nil(&self, name: &str) -> Option<&Value> {
        let given = self.given.get(name).copied();
        let default = self.defaults.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        given.filter(|value| !value.is_nil()).or(default).or(given)
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
    pub(super) method: Method,
    pub(super) body: Option<RequestBody>,
    pub(super) rules: CallRules,
    _reservation: Option<Reservation>,
}

impl EncodedRequest {
    /// Number of copies of the address and the headers that exist at the same time while they are sent: the URL, the target of
    /// the request, and the encoded head.
    const COPIES: usize = 4;

    /// Returns the bytes of the address and of the headers.
    pub(crate) fn len(&self) -> usize {
        len(&self.url, &self.headers) + self.body.as_ref().map_or(0, |body| body.bytes.len())
    }
}

#[cfg(feature = "fuzzing")]
impl EncodedRequest {
    /// Returns the address and the headers, for the fuzz targets.
    pub(crate) fn head(&self) -> (&Url, &HeaderMap) {
        (&self.url, &self.headers)
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
    /// `:idempotency_key`
    pub(crate) idempotency_key: Option<&'v str>,
}

/// Encodes a call of `operation`.
///
/// # Errors
///
/// Says which argument cannot be sent and why, or that the program has no memory for the request.
pub(crate) fn encode(
    spec: &OpenApi,
    operation: &Operation,
    rules: CallRules,
    args: LiteMap<&str, &Value>,
    options: CallOptions<'_>,
    bounds: &Bounds,
) -> Result<EncodedRequest, Unsendable> {
    let accept = match options.accept {
        None => head::accept(operation.answers),
        Some(wanted) => accept(operation.answers, wanted)?,
    };
    let args = Arguments::new(operation, args)?;
    let url = address::build(spec, operation, &args, bounds)?;
    let mut headers = fields::headers(operation, &args, bounds)?;
    if let Some(name) = spec.idempotency_header.filter(|_| rules.is_write) {
        let key = options.idempotency_key.map_or_else(random_uuid, |key| Ok(key.to_owned()))?;
        let invalid = |what: &str| Unsendable::Invalid(format!("the idempotency {what} is not valid"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("header"))?;
        headers.insert(name, HeaderValue::from_str(&key).map_err(|_| invalid("key"))?);
    }
    let body = body::encode(spec, operation, &args, bounds)?;
    let method = Method::from_bytes(operation.method.as_bytes())
        .map_err(|_| Unsendable::Invalid(format!("'{}' is not a method of HTTP", operation.method)))?;
    let reservation = bounds.reserve(len(&url, &headers) * EncodedRequest::COPIES).map_err(Unsendable::Fault)?;
    let Operation { answers, .. } = *operation;
    let with_bytes = !options.without_bytes;
    Ok(EncodedRequest { url, headers, accept, with_bytes, answers, method, body, rules, _reservation: reservation })
}

/// Returns a random UUID (RFC 9562, version 4).
pub(super) fn random_uuid() -> Result<String, Unsendable> {
    let mut bytes = [0; 16];
    let failed = |error| Unsendable::Invalid(format!("the operating system has no random bytes: {error}"));
    random::fill(&mut bytes).map_err(failed)?;
    let random = u128::from_be_bytes(bytes);
    let (high, low) = ((random >> 64) as u64, random as u64);
    let (version, variant) = (0x4000 | high & 0x0fff, 0x8000 | (low >> 48) & 0x3fff);
    Ok(format!("{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, low & 0xffff_ffff_ffff))
}

fn accept(answers: Answers, wanted: &str) -> Result<HeaderValue, Unsendable> {
    let value = HeaderValue::from_str(wanted).ok().filter(|_| head::is_declared(answers, wanted));
    value.ok_or_else(|| {
        let types = answers.types().collect::<Vec<_>>().join(", ");
        let wanted = ptc_lisp::print::excerpt(wanted);
        Unsendable::Invalid(format!("the operation does not answer with '{wanted}' (:accept); it answers with {types}"))
    })
}
