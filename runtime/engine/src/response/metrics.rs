//! The `ptc_metrics` block: how much upstream payload a program reduced to how small an answer. Bytes are exact, tokens are
//! estimates and marked as such, and unknown values are `null` or marked unavailable.

use std::time::Duration;

use serde::Serialize;

use ptc_upstream::CallRecord;

/// The block in its documented form.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Metrics {
    schema_version: u32,
    /// Bytes of the answer's `result`. 0 for an error.
    pub final_result_bytes: u64,
    prints_bytes: u64,
    /// Number of upstream calls.
    pub upstream_call_count: u64,
    upstream_ok_count: u64,
    upstream_error_count: u64,
    upstream_oversize_count: u64,
    /// Bytes of the successful answers that programs received.
    pub upstream_result_bytes: u64,
    /// Bytes of failures.
    pub upstream_error_bytes: u64,
    /// Bytes that were received of answers rejected for their size.
    pub upstream_oversize_bytes: u64,
    /// Ratio of bytes of upstream answers to bytes of the answer.
    pub payload_reduction_ratio: Option<f64>,
    estimated_final_result_tokens: u64,
    estimated_upstream_result_tokens: u64,
    token_estimate_method: &'static str,
    #[serde(skip_serializing_if = "is_zero")]
    queued_ms: u64,
    #[serde(skip_serializing_if = "is_zero")]
    processor_wait_ms: u64,
    baseline: Baseline,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
struct Baseline {
    conservative: Conservative,
    optimistic: Optimistic,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
struct Conservative {
    name: &'static str,
    bytes: u64,
    ratio: Option<f64>,
    note: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
struct Optimistic {
    name: &'static str,
    available: bool,
    note: &'static str,
}

impl Metrics {
    /// Computes the metrics. `result` is the answer's text (empty for an error), `prints` the printed lines of the answer.
    pub fn measure(result: &str, prints: &[String], calls: &[CallRecord]) -> Metrics {
        let final_result_bytes = result.len() as u64;
        let mut metrics = Metrics {
            schema_version: 1,
            final_result_bytes,
            prints_bytes: serde_json::to_string(prints).map_or(0, |json| if prints.is_empty() { 0 } else { json.len() as u64 }),
            upstream_call_count: calls.len() as u64,
            upstream_ok_count: 0,
            upstream_error_count: 0,
            upstream_oversize_count: 0,
            upstream_result_bytes: 0,
            upstream_error_bytes: 0,
            upstream_oversize_bytes: 0,
            payload_reduction_ratio: None,
            estimated_final_result_tokens: tokens(final_result_bytes),
            estimated_upstream_result_tokens: 0,
            token_estimate_method: "utf8_bytes_div_4",
            queued_ms: 0,
            processor_wait_ms: 0,
            baseline: Baseline {
                conservative: Conservative {
                    name: "successful_upstream_results_only",
                    bytes: 0,
                    ratio: None,
                    note: "Payload of the successful upstream answers that the program received. Tool schemas and the turns of a \
                           model that calls the tools itself are not counted.",
                },
                optimistic: Optimistic {
                    name: "no_ptc_direct_llm_workflow",
                    available: false,
                    note: "What a model would have spent on direct tool calls cannot be measured by this server.",
                },
            },
        };
        for call in calls {
            let bytes = call.result_bytes;
            let (count, sum) = match () {
                () if call.oversize => (&mut metrics.upstream_oversize_count, &mut metrics.upstream_oversize_bytes),
                () if call.status == "ok" => (&mut metrics.upstream_ok_count, &mut metrics.upstream_result_bytes),
                () => (&mut metrics.upstream_error_count, &mut metrics.upstream_error_bytes),
            };
            *count += 1;
            *sum += bytes;
        }
        let fetched = metrics.upstream_result_bytes;
        let ratio =
            (fetched > 0 && final_result_bytes > 0).then(|| (fetched as f64 / final_result_bytes as f64 * 100.0).round() / 100.0);
        metrics.payload_reduction_ratio = ratio;
        metrics.estimated_upstream_result_tokens = tokens(fetched);
        metrics.baseline.conservative.bytes = fetched;
        metrics.baseline.conservative.ratio = ratio;
        metrics
    }

    /// Adds the time in the queue and the time without a processor.
    #[must_use]
    pub fn waited(mut self, queued: Duration, processor: Duration) -> Metrics {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        (self.queued_ms, self.processor_wait_ms) = (milliseconds(queued), milliseconds(processor));
        self
    }
}

/// Whether `number` is zero, for numbers that are omitted then.
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Returns an estimate of the tokens that a text of so many bytes has.
pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(status: &'static str, result_bytes: u64, oversize: bool) -> CallRecord {
        let reason = (status != "ok").then_some(if oversize { "response_too_large" } else { "tool_error" });
        let mut record = CallRecord::new("s", "t");
        (record.status, record.duration_ms, record.reason) = (status, 1, reason);
        (record.result_bytes, record.oversize) = (result_bytes, oversize);
        record
    }

    /// Returns the documented fields without the notes.
    fn block(result: &str, prints: &[String], calls: &[CallRecord]) -> serde_json::Value {
        let mut block = serde_json::to_value(Metrics::measure(result, prints, calls)).unwrap();
        for baseline in ["conservative", "optimistic"] {
            let note = block["baseline"][baseline].as_object_mut().and_then(|baseline| baseline.remove("note"));
            assert!(note.is_some_and(|note| note.as_str().is_some_and(|note| note.len() > 20)));
        }
        block
    }

    fn expected(numbers: [u64; 11], ratio: Option<f64>) -> serde_json::Value {
        let [answer, prints, count, ok, error, oversize, ok_bytes, error_bytes, oversize_bytes, answer_tokens, call_tokens] =
            numbers;
        serde_json::json!({
            "schema_version": 1,
            "final_result_bytes": answer,
            "prints_bytes": prints,
            "upstream_call_count": count,
            "upstream_ok_count": ok,
            "upstream_error_count": error,
            "upstream_oversize_count": oversize,
            "upstream_result_bytes": ok_bytes,
            "upstream_error_bytes": error_bytes,
            "upstream_oversize_bytes": oversize_bytes,
            "payload_reduction_ratio": ratio,
            "estimated_final_result_tokens": answer_tokens,
            "estimated_upstream_result_tokens": call_tokens,
            "token_estimate_method": "utf8_bytes_div_4",
            "baseline": {
                "conservative": { "name": "successful_upstream_results_only", "bytes": ok_bytes, "ratio": ratio },
                "optimistic": { "name": "no_ptc_direct_llm_workflow", "available": false },
            },
        })
    }

    #[test]
    fn metrics_have_the_documented_fields() {
        let answer = "a".repeat(812);
        // The example of the documentation: three answers of 48,122 bytes are reduced to 812.
        let three = [call("ok", 48_000, false), call("ok", 100, false), call("ok", 22, false)];
        assert_eq!(block(&answer, &[], &three), expected([812, 0, 3, 3, 0, 0, 48_122, 0, 0, 203, 12_031], Some(59.26)));
        // Failed and rejected answers are counted separately and do not affect the ratio.
        let mixed = [call("ok", 10, false), call("error", 7, false), call("error", 3_000_000, true)];
        assert_eq!(block("1234567", &["x".into()], &mixed), expected([7, 5, 3, 1, 1, 1, 10, 7, 3_000_000, 2, 3], Some(1.43)));
        // Without an answer or without fetched bytes there is no ratio.
        assert_eq!(block("", &[], &[call("ok", 10, false)]), expected([0, 0, 1, 1, 0, 0, 10, 0, 0, 0, 3], None));
        assert_eq!(block("12", &[], &[call("error", 10, false)]), expected([2, 0, 1, 0, 1, 0, 0, 10, 0, 1, 0], None));
        assert_eq!(block("12", &[], &[]), expected([2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], None));
        // Sizes are bytes of UTF-8, not characters.
        assert_eq!(block("größe", &[], &[])["final_result_bytes"], 7);
    }
}
