//! Statistics over the records of calls.

use litemap::LiteMap;
use serde_json::{Map, Value, json};

use super::record::{Outcome, Record};

/// Number of calls listed with the largest reduction.
const TOP: usize = 5;

/// Returns calls, errors and durations by tool, errors by reason, and upstream calls by status.
pub fn compute(records: &[&Record], with_upstreams: bool) -> Map<String, Value> {
    let mut by_tool: LiteMap<&str, Vec<&Record>> = LiteMap::new();
    let mut reasons: LiteMap<&str, u64> = LiteMap::new();
    for record in records {
        by_tool.entry(record.tool).or_default().push(record);
        if let Some(reason) = record.outcome.reason() {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let mut tools = Map::new();
    tools.extend(by_tool.into_iter().map(|(tool, records)| (tool.to_owned(), of_tool(&records))));
    let times = records.iter().map(|record| record.at);
    let mut shown = Map::new();
    shown.insert("by_tool".into(), tools.into());
    shown.insert("errors".into(), json!({ "by_reason": counts(reasons) }));
    let (from, to) = (times.clone().min().map(|at| at.to_string()), times.max().map(|at| at.to_string()));
    shown.insert("window".into(), json!({ "from": from, "to": to, "calls": records.len() }));
    if with_upstreams {
        shown.insert("upstream_calls".into(), upstream_calls(records));
        shown.insert("payload_reduction".into(), payload_reduction(records));
    }
    shown
}

/// Returns a JSON object even if the map is empty. Serialised directly, an empty map would become an array.
fn counts(of: LiteMap<&str, u64>) -> Value {
    Value::Object(of.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect())
}

fn of_tool(records: &[&Record]) -> Value {
    let errors = records.iter().filter(|record| matches!(record.outcome, Outcome::Error { .. })).count();
    let mut durations: Vec<u64> = records.iter().map(|record| record.duration_ms()).collect();
    durations.sort_unstable();
    let duration_ms = json!({
        "p50": percentile(&durations, 50), "p95": percentile(&durations, 95), "max": durations.last(),
    });
    json!({
        "calls": records.len(), "ok": records.len() - errors, "error": errors,
        "error_rate": rounded(errors as f64 / records.len().max(1) as f64, 3.0), "duration_ms": duration_ms,
    })
}

fn upstream_calls(records: &[&Record]) -> Value {
    let mut ok = 0_u64;
    let mut reasons: LiteMap<&str, u64> = LiteMap::new();
    let mut servers: LiteMap<&str, (u64, u64)> = LiteMap::new();
    let calls: Vec<_> = records.iter().flat_map(|record| &record.upstream_calls).collect();
    for call in &calls {
        let (total, failed) = servers.entry(call.server).or_default();
        *total += 1;
        match call.reason {
            None => ok += 1,
            Some(reason) => {
                *failed += 1;
                *reasons.entry(reason).or_default() += 1;
            }
        }
    }
    let mut by_server = Map::new();
    for (name, (total, failed)) in servers {
        by_server.insert(name.to_owned(), json!({ "total": total, "ok": total - failed, "error": failed }));
    }
    json!({ "total": calls.len(), "ok": ok, "by_reason": counts(reasons), "by_server": by_server })
}

fn payload_reduction(records: &[&Record]) -> Value {
    let with: Vec<_> = records.iter().filter_map(|record| Some((record, record.metrics.as_ref()?))).collect();
    let sum = |of: fn(&ptc_engine::response::metrics::Metrics) -> u64| with.iter().map(|(_, metrics)| of(metrics)).sum::<u64>();
    let (fetched, shown) = (sum(|m| m.upstream_result_bytes), sum(|m| m.final_result_bytes));
    let mut ratios: Vec<_> = with.iter().filter_map(|(record, m)| Some((m.payload_reduction_ratio?, *record, *m))).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let sorted: Vec<f64> = ratios.iter().map(|(ratio, ..)| *ratio).collect();
    let weighted = (fetched > 0 && shown > 0).then(|| rounded(fetched as f64 / shown as f64, 2.0));
    let top: Vec<Value> = ratios
        .iter()
        .rev()
        .take(TOP)
        .map(|(ratio, record, metrics)| {
            json!({
                "request_id": record.request_id, "ts": record.at.to_string(), "tool": record.tool, "ratio": ratio,
                "upstream_result_bytes": metrics.upstream_result_bytes, "final_result_bytes": metrics.final_result_bytes,
            })
        })
        .collect();
    json!({
        "schema_version": 1,
        "calls_with_metrics": with.len(),
        "total_final_result_bytes": shown,
        "total_upstream_result_bytes": fetched,
        "total_upstream_error_bytes": sum(|m| m.upstream_error_bytes),
        "total_upstream_oversize_bytes": sum(|m| m.upstream_oversize_bytes),
        "total_upstream_calls": sum(|m| m.upstream_call_count),
        "reduction_ratio": {
            "p50": percentile(&sorted, 50), "p95": percentile(&sorted, 95), "max": sorted.last(), "weighted": weighted,
        },
        "estimated_tokens": {
            "final_result": shown.div_ceil(4), "upstream_result": fetched.div_ceil(4), "method": "utf8_bytes_div_4",
        },
        "top_reducers": top,
    })
}

/// Returns the smallest value that at least this percentage of the values does not exceed.
fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn rounded(number: f64, digits: f64) -> f64 {
    let scale = 10_f64.powf(digits);
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentile_is_the_nearest_rank() {
        let sorted: Vec<u32> = (1..=20).collect();
        assert_eq!((percentile(&sorted, 50), percentile(&sorted, 95)), (Some(10), Some(19)));
        assert_eq!((percentile(&[7], 50), percentile(&[7], 95)), (Some(7), Some(7)));
        assert_eq!(percentile::<u32>(&[], 50), None);
    }
}
