//! The collector that receives spans, configured with OpenTelemetry's environment variables.
//!
//! Only the variables of an exporter of spans over OTLP/HTTP with JSON are read. The flag has precedence.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use ptc_runtime::secrets::MIN_SECRET_CHARS;
use ptc_runtime::settings::Fault;
use ptc_runtime::settings::flag::base_url;
use zeroize::Zeroizing;

/// The path of spans below the URL of a collector.
const PATH: &str = "/v1/traces";
/// Default time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The expected format of a URL.
const URL: &str = "a URL of http or https, without user, query and fragment";
/// The expected format of headers and attributes.
const PAIRS: &str = "name=value,name=value with values as in URLs";

/// Settings of the export of spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    /// The URL to which batches are sent.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, HeaderText)>,
    /// Time limit of a request.
    pub timeout: Duration,
    /// The service name. `None` means the deployment's name.
    pub service: Option<String>,
    /// Further resource attributes.
    pub resource: Vec<(String, String)>,
}

/// The value of a header, which may be a secret. Its `Debug` output contains only its length.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderText(Zeroizing<String>);

impl OtlpSettings {
    /// Reads the settings and warnings. The settings are `None` without an endpoint or with `OTEL_SDK_DISABLED`.
    ///
    /// # Errors
    ///
    /// Returns a fault for each variable with an invalid value, unless the export is off.
    pub fn read(flag: Option<&str>, var: impl Fn(&str) -> Option<OsString>) -> Result<(Option<Self>, Vec<String>), Vec<Fault>> {
        let mut faults = Vec::new();
        let mut text = |name: &'static str| match var(name).filter(|value| !value.is_empty())?.into_string() {
            Ok(text) => Some(text),
            Err(odd) => {
                faults.push(wrong(name, &odd.to_string_lossy(), "text in UTF-8"));
                None
            }
        };
        let traces = text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let all = text("OTEL_EXPORTER_OTLP_ENDPOINT");
        // A variable for traces has precedence over one for all signals.
        let mut either =
            |[one, other]: [&'static str; 2]| text(one).map(|t| (one, t)).or_else(|| text(other).map(|t| (other, t)));
        let headers = either(["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]);
        let timeout = either(["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"]);
        let protocol = either(["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]);
        let service = text("OTEL_SERVICE_NAME");
        let attributes = text("OTEL_RESOURCE_ATTRIBUTES");
        let off = text("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"))
            || (flag.is_none() && text("OTEL_TRACES_EXPORTER").is_some_and(|word| word == "none"));
        if off || (flag.is_none() && traces.is_none() && all.is_none()) {
            // Faults in other variables do not matter if the exporter is disabled.
            return Ok((None, Vec::new()));
        }
        let mut url = |name, text: &str| {
            let url = base_url(text);
            if url.is_none() {
                faults.push(wrong(name, "a value", URL));
            }
            url
        };
        let url = match (flag, traces, all) {
            (Some(flag), ..) => Some(format!("{flag}{PATH}")),
            (_, Some(exact), _) => url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &exact),
            (.., base) => base.and_then(|base| url("OTEL_EXPORTER_OTLP_ENDPOINT", &base)).map(|base| format!("{base}{PATH}")),
        };
        let mut paired = |name, text: &str| {
            pairs(text).unwrap_or_else(|| {
                faults.push(wrong(name, &format!("{} bytes", text.len()), PAIRS));
                Vec::new()
            })
        };
        let headers = headers.map(|(name, text)| paired(name, &text)).unwrap_or_default();
        let mut resource = attributes.map(|text| paired("OTEL_RESOURCE_ATTRIBUTES", &text)).unwrap_or_default();
        let named = resource.iter().position(|(name, _)| name == "service.name").map(|at| resource.remove(at).1);
        let timeout = timeout.map(|(name, text)| (name, text.parse().ok().filter(|ms| *ms > 0), text));
        if let Some((name, None, found)) = &timeout {
            faults.push(wrong(name, found, "a number of milliseconds, 1 or more"));
        }
        let warnings = protocol.filter(|(_, word)| word != "http/json").map(|(name, word)| {
            format!("{name} says {word}; spans are sent as http/json, which a collector takes at the port of http/protobuf")
        });
        let Some(url) = url.filter(|_| faults.is_empty()) else { return Err(faults) };
        let settings = OtlpSettings {
            url,
            headers: headers.into_iter().map(|(name, value)| (name, HeaderText(Zeroizing::new(value)))).collect(),
            timeout: timeout.and_then(|(_, ms, _)| ms).map_or(TIMEOUT, Duration::from_millis),
            service: service.or(named),
            resource,
        };
        Ok((Some(settings), warnings.into_iter().collect()))
    }

    /// Returns the secrets in the headers: values, and credentials after a scheme such as `Bearer`.
    pub fn header_secrets(&self) -> impl Iterator<Item = &str> {
        let texts = self.headers.iter().flat_map(|(_, value)| {
            let value = value.text();
            [Some(value), value.split_once(' ').map(|(_, token)| token)].into_iter().flatten()
        });
        // Shorter values occur in ordinary text and are not redacted anywhere.
        texts.filter(|text| text.chars().count() >= MIN_SECRET_CHARS)
    }
}

impl HeaderText {
    /// Returns the value.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HeaderText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

fn wrong(place: &str, found: &str, expected: &str) -> Fault {
    Fault::Value { place: place.to_owned(), found: found.to_owned(), expected: expected.to_owned() }
}

/// Parses `name=value,name=value`. Returns `None` for another format.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            let decode = |text: &str| Some(percent_decode_str(text.trim()).decode_utf8().ok()?.into_owned());
            let name = decode(name).filter(|name| !name.is_empty())?;
            Some((name, decode(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flag: Option<&str>, env: &[(&str, &str)]) -> Result<(Option<OtlpSettings>, Vec<String>), Vec<String>> {
        let var = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        OtlpSettings::read(flag, var).map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn otlp_endpoint_is_chosen_in_documented_order() {
        let (all, traces) = (
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318/"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://exact/in/path"),
        );
        for (flag, env, url) in [
            (None, &[][..], None),
            (None, &[("OTEL_EXPORTER_OTLP_HEADERS", "broken")], None),
            (None, &[all], Some("http://all:4318/v1/traces")),
            (None, &[all, traces], Some("https://exact/in/path")),
            (Some("http://flag:1/base"), &[all, traces], Some("http://flag:1/base/v1/traces")),
            (None, &[all, ("OTEL_TRACES_EXPORTER", "none")], None),
            (Some("http://flag:1"), &[("OTEL_TRACES_EXPORTER", "none")], Some("http://flag:1/v1/traces")),
            (Some("http://flag:1"), &[("OTEL_SDK_DISABLED", "True")], None),
        ] {
            let (settings, warnings) = read(flag, env).expect("all is right");
            assert_eq!((settings.map(|settings| settings.url).as_deref(), warnings), (url, Vec::new()), "{flag:?} {env:?}");
        }
    }

    #[test]
    fn otlp_headers_names_and_timeouts_are_read_from_variables() {
        let env = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20not-a-secret-0, x-tenant=a%2Cb"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=by-attribute,deployment.environment=test"),
        ];
        let (settings, _) = read(Some("http://c"), &env).expect("all is right");
        let settings = settings.expect("an endpoint");
        let headers: Vec<_> = settings.headers.iter().map(|(name, value)| (name.as_str(), value.text())).collect();
        assert_eq!(headers, [("authorization", "Bearer not-a-secret-0"), ("x-tenant", "a,b")]);
        assert_eq!(settings.header_secrets().collect::<Vec<_>>(), ["Bearer not-a-secret-0", "not-a-secret-0"]);
        assert!(!format!("{settings:?}").contains("secret"), "{settings:?}");
        assert_eq!((settings.timeout, settings.service.as_deref()), (Duration::from_millis(2500), Some("by-attribute")));
        assert_eq!(settings.resource, [("deployment.environment".to_owned(), "test".to_owned())]);
        let named = [&env[..], &[("OTEL_SERVICE_NAME", "named"), ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=b")]].concat();
        let (settings, _) = read(Some("http://c"), &named).expect("all is right");
        let settings = settings.expect("an endpoint");
        assert_eq!((settings.service.as_deref(), settings.headers.len()), (Some("named"), 1));
    }

    #[test]
    fn wrong_variables_are_named_without_their_values() {
        let env = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:not-a-secret@c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "not-a-secret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
        ];
        assert_eq!(
            read(None, &env).expect_err("three faults"),
            [
                "OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL of http or https, without user, query and fragment, found 'a value'",
                "OTEL_EXPORTER_OTLP_HEADERS: expected name=value,name=value with values as in URLs, found '12 bytes'",
                "OTEL_EXPORTER_OTLP_TIMEOUT: expected a number of milliseconds, 1 or more, found '0'",
            ]
        );
        let (_, warnings) = read(Some("http://c"), &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).expect("all is right");
        assert_eq!(warnings.len(), 1);
    }
}
