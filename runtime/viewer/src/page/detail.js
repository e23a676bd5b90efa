// One call: what is in its trace file.
import { bytes, clock, count, counted, duration, el, number, ratio, shown } from "./format.js";
import { program } from "./lisp.js";
import { timeline } from "./timeline.js";

/** Characters of one text that are shown; the endpoint has all of them. */
const MOST_TEXT = 200_000;
const MOST_ROWS = 1000;

const is = (value) => value !== undefined && value !== null;
const object = (value) => (typeof value === "object" && value !== null && !Array.isArray(value) ? value : {});
const block = (title, content, note) => [el("h3", {}, title, note && el("span", { class: "soft" }, ` ${note}`)), el("pre", { tabindex: 0, "aria-label": title }, content)];

const cut = (text) => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}\n… ${count(text.length - MOST_TEXT)} more characters` : text);

const text = (title, value, note) => is(value) && value !== "" && block(title, cut(shown(value)), note);

/** A program as the trace has it, with the form at which it failed. */
const source = (title, given, span) => {
  const said = object(given);
  const whole = typeof said.text === "string" ? said.text : undefined;
  const size = is(said.bytes) ? bytes(said.bytes) : "";
  if (whole !== undefined) return block(title, program(whole.slice(0, MOST_TEXT), object(span)), size);
  const digest = is(said.sha256) && ` SHA-256 ${shown(said.sha256)}`;
  return size && [el("h3", {}, title), el("p", { class: "soft" }, `${size}; its words are kept with --trace-payloads full.`, digest)];
};

const task = (start) => {
  const said = object(start.task);
  return is(said.text) ? text("Task", said.text) : source("Task", said);
};

/** What is there for those who want to know: closed until then. */
const folded = (title, content) => is(content) && content !== "" && el("details", {}, el("summary", {}, title), el("pre", { tabindex: 0, "aria-label": title }, cut(shown(content))));

/** Messages of a conversation, each under who says it. */
const conversation = (messages) => (Array.isArray(messages) ? messages.slice(0, MOST_ROWS).map(object).map((said) => `── ${shown(said.role)}\n${shown(said.content)}`).join("\n\n") : undefined);

/** What the planner of a task wrote turn by turn, what became of it, and what was said, where the trace has it. */
const turns = (spans) =>
  spans
    .filter((line) => line.span === "planner")
    .slice(0, MOST_ROWS)
    .map((line) => {
      const ran = spans.find((other) => other.span === "eval" && other.turn === line.turn) ?? {};
      const tokens = object(line.tokens);
      const said = [duration(line.duration_us), `${bytes(line.prompt_bytes)} asked, ${bytes(line.completion_bytes)} written`];
      if (is(tokens.total)) said.push(counted(tokens.total, "token"));
      const number = shown(line.turn);
      const became = ran.status === "error" ? ran : line;
      return [
        el("h3", {}, `Turn ${number}`, is(became.reason) && [" ", el("span", { class: "mark error" }, shown(became.reason))]),
        el("p", { class: "soft" }, said.join(" · ")),
        is(became.message) && el("p", { class: "message" }, cut(shown(became.message))),
        is(ran.program) && source(`Program ${number}`, ran.program, ran.error_span),
        folded(`What helps in turn ${number}`, ran.feedback),
        folded(`Answer of the planner ${number}`, line.completion),
        folded(`Prompt ${number}`, conversation(line.prompt)),
      ];
    });

const numeric = { class: "number" };

/** Columns of upstream calls: name, attributes, content. */
const COLUMNS = [
  ["upstream", {}, (line) => line.server],
  ["tool", { class: "mono" }, (line) => line.tool],
  ["turn", numeric, (line) => is(line.turn) && line.turn],
  ["effect", {}, (line) => is(line.effect) && line.effect],
  ["status", {}, (line) => [el("span", { class: line.status === "ok" ? "good" : "bad" }, is(line.reason) ? line.reason : line.status), is(line.error) && el("div", { class: "soft wide" }, cut(shown(line.error)))]],
  ["rule", {}, (line) => is(line.rule) && line.rule],
  ["from", numeric, (line) => is(line.start_us) && duration(line.start_us)],
  ["took", numeric, (line) => duration(is(line.duration_us) ? line.duration_us : number(line.duration_ms) * 1000)],
  ["bytes", numeric, (line) => [bytes(line.result_bytes), line.oversize === true && el("div", { class: "bad" }, "too large")]],
  ["HTTP", numeric, (line) => is(line.http_status) && line.http_status],
  ["credential", {}, (line) => is(object(line.auth).binding) && `${shown(line.auth.scheme)} ${shown(line.auth.binding)}`],
];

const calls = (lines) => {
  if (lines.length === 0) return [];
  const drawn = lines.slice(0, MOST_ROWS);
  const columns = COLUMNS.filter(([, , of]) => drawn.some((line) => of(line) !== false));
  const head = el("tr", {}, columns.map(([name, more]) => el("th", { scope: "col", ...more }, name)));
  const body = drawn.map((line) => el("tr", {}, columns.map(([, more, of]) => el("td", more, of(line)))));
  return [
    el("h3", {}, `Upstream calls (${count(lines.length)})`),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Upstream calls" }, el("table", {}, el("thead", {}, head), el("tbody", {}, body))),
    lines.length > drawn.length && el("p", { class: "soft" }, `${count(lines.length - drawn.length)} more are in the file.`),
  ];
};

const facts = (rows) => el("dl", { class: "facts" }, rows.filter(([, value]) => is(value) && value !== "" && value !== false).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

const reduced = (metrics) => {
  const [before, after] = [number(metrics.upstream_result_bytes), number(metrics.final_result_bytes)];
  return before > 0 && `${bytes(before)} fetched, ${bytes(after)} answered${after > 0 ? ` (${ratio(before / after)})` : ""}`;
};

/** The nodes of a call: `trace` is what the endpoint said, `row` its row of the list where that has it. */
export const detail = (trace) => {
  const lines = trace.lines.map(object);
  const start = lines.find((line) => line.event === "call.start") ?? {};
  const end = lines.findLast((line) => line.event === "call.success" || line.event === "call.fail") ?? {};
  const spans = lines.filter((line) => line.event === "span");
  const upstream = spans.filter((line) => line.span === "upstream_call");
  const ended = is(end.event);
  const status = ended ? (end.event === "call.success" ? "ok" : "error") : "open";
  const took = is(end.duration_us) ? end.duration_us : number(end.duration_ms) * 1000;
  const metrics = object(end.ptc_metrics);
  const prints = Array.isArray(end.prints) ? end.prints.map(shown).join("\n") : undefined;
  return [
    el(
      "div",
      { class: "title" },
      el("a", { href: "#", class: "back" }, "← all calls"),
      el("h2", {}, start.tool ?? end.tool ?? "a call"),
      el("span", { class: `mark ${status}` }, ended ? (end.reason ?? status) : "no end"),
      ended && el("span", {}, duration(took)),
    ),
    is(end.message) && el("p", { class: "message" }, cut(shown(end.message))),
    !ended && el("p", { class: "open" }, "It still runs, or the process ended in it."),
    trace.cut && el("p", { class: "bad" }, "The file is too large to be read whole; what follows is its beginning."),
    number(trace.unreadable) > 0 && el("p", { class: "bad" }, `${counted(trace.unreadable, "line")} of the file could not be read as JSON objects and are left out.`),
    facts([
      ["began", is(start.ts) && clock(start.ts)],
      ["request", start.request_id],
      ["bytes", reduced(metrics)],
      ["answer", is(end.result_bytes) && `${bytes(end.result_bytes)}${end.truncated === true ? ", cut" : ""}`],
      ["validation", start.output_schema_present === true && "against an output schema"],
      ["HTTP request", start.transport_request_id],
      ["owner", start.owner_hash],
      ["protocol session", start.mcp_session_hash],
      ["traceparent", start.traceparent],
      ["file", el("code", {}, trace.id)],
    ]),
    timeline(spans.filter((line) => line.span !== "upstream_call"), upstream, took),
    task(start),
    // Each program of a task stands in its turn; traces of earlier versions have the last one alone.
    spans.some((line) => is(line.turn) && is(line.program)) ? [] : [source("Program", start.program ?? end.program, end.error_span), text("What helps", end.feedback)],
    turns(spans),
    text("Prints", prints, is(end.prints_count) ? counted(end.prints_count, "line") : ""),
    !is(prints) && number(end.prints_count) > 0 && [el("h3", {}, "Prints"), el("p", { class: "soft" }, `${counted(end.prints_count, "line")}; traces of this server keep their number only.`)],
    text("Result", end.result),
    calls(upstream),
    text("Context", start.context),
  ]
    .flat(Infinity)
    .filter(Boolean);
};
