//! The `ptc_metrics` block: how much upstream payload a program turned into how small an answer. Bytes are exact, tokens are
//! estimates and say so, and what cannot be known is `null` or marked unavailable.

use serde::Serialize;

use crate::upstream::CallRecord;

/// The block, in its documented form.
#[derive(Debug, Serialize)]
pub struct Metrics {
    schema_version: u32,
    /// Bytes of the answer's `result`; 0 on an error.
    pub final_result_bytes: u64,
    prints_bytes: u64,
    upstream_call_count: u64,
    upstream_ok_count: u64,
    upstream_error_count: u64,
    upstream_oversize_count: u64,
    /// Bytes of the successful answers that programs received.
    pub upstream_result_bytes: u64,
    upstream_error_bytes: u64,
    upstream_oversize_bytes: u64,
    payload_reduction_ratio: Option<f64>,
    estimated_final_result_tokens: u64,
    estimated_upstream_result_tokens: u64,
    token_estimate_method: &'static str,
    baseline: Baseline,
}

#[derive(Debug, Serialize)]
struct Baseline {
    conservative: Conservative,
    optimistic: Optimistic,
}

#[derive(Debug, Serialize)]
struct Conservative {
    name: &'static str,
    bytes: u64,
    ratio: Option<f64>,
    note: &'static str,
}

#[derive(Debug, Serialize)]
struct Optimistic {
    name: &'static str,
    available: bool,
    note: &'static str,
}

impl Metrics {
    /// Counts. `result` is the answer's text (empty on an error), `prints` the printed lines of the answer.
    pub fn of(result: &str, prints: &[String], calls: &[CallRecord]) -> Metrics {
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
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
