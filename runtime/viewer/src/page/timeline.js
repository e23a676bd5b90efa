// One call from its arrival to its answer: what the server did in a lane for each kind of work, upstream calls below, those at the
// same time side by side.
import { counted, duration, el, number, shown, svg } from "./format.js";

/** Heights of a lane with labels, and of one without. */
const LANE = 24;
const THIN = 9;
const MOST = 400;
/** Calls that have room for a lane and a label of their own. */
const LABELLED = 60;

/** A lane for each span; where that would be too many, each goes into the first lane that is free. */
const lanes = (spans) => {
  if (spans.length <= LABELLED) return spans.map((span, lane) => ({ ...span, lane }));
  const ends = [];
  return spans.map((span) => {
    let lane = ends.findIndex((end) => end <= span.start);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = span.start + span.took;
    return { ...span, lane };
  });
};

const bar = (span, total, { top, height, labelled }) => {
  const from = (span.start / total) * 100;
  const width = Math.max((span.took / total) * 100, 0.4);
  const left = from < 60;
  const said = `${span.label} ${duration(span.took)}`;
  const whole = `${said}, from ${duration(span.start)}`;
  return svg(
    "g",
    { tabindex: 0, role: "listitem", "aria-label": whole, class: "bar" },
    svg("title", {}, whole),
    svg("rect", { x: `${Math.min(from, 99.6)}%`, y: top + height / 8, width: `${width}%`, height: (height * 3) / 4, rx: 2, class: span.kind }),
    labelled && svg("text", { x: `${from}%`, dx: left ? 4 : -4, y: top + 16, "text-anchor": left ? "start" : "end" }, said),
  );
};

/** The timeline of `spans` (`analyze`, `eval`) and `calls`, lines of a trace; nothing where there are none. */
export const timeline = (spans, calls, took) => {
  const span = (line, kind, label) => ({ line, start: number(line.start_us), took: number(line.duration_us), kind, label });
  const own = spans.slice(0, MOST).map((line) => span(line, "work", `${shown(line.span)}${line.turn === undefined ? "" : ` ${shown(line.turn)}`}`));
  const kinds = [...new Set(own.map((one) => shown(one.line.span)))];
  // Traces of earlier versions do not tell when a call began.
  const timed = calls.filter((line) => typeof line.start_us === "number").slice(0, MOST);
  const upstream = timed.map((line) => span(line, line.status === "ok" ? "call" : "failed", `${shown(line.server)} ${shown(line.tool)}`));
  if (own.length + upstream.length === 0) return [];
  const total = Math.max(number(took), ...[...own, ...upstream].map((one) => one.start + one.took), 1);
  const placed = lanes(upstream.sort((a, b) => a.start - b.start));
  const kind = (one) => kinds.indexOf(shown(one.line.span));
  const alone = (one) => own.filter((other) => kind(other) === kind(one)).length === 1;
  const labelled = placed.length <= LABELLED;
  const [first, height] = [kinds.length * LANE, labelled ? LANE : THIN];
  const bottom = first + height * placed.reduce((most, one) => Math.max(most, one.lane + 1), 0);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => [
    svg("line", { x1: `${part * 100}%`, x2: `${part * 100}%`, y1: 0, y2: bottom, class: "axis" }),
    svg("text", { x: `${part * 100}%`, y: bottom + 14, class: "soft", "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, part === 0 ? "0" : duration(part * total)),
  ]);
  const drawing = svg(
    "svg",
    { height: bottom + 20, role: "list", "aria-label": `Timeline of ${duration(total)}`, id: "timeline" },
    ticks,
    own.map((one) => bar(one, total, { top: kind(one) * LANE, height: LANE, labelled: alone(one) || one.took * 8 > total })),
    placed.map((one) => bar(one, total, { top: first + one.lane * height, height, labelled })),
  );
  const left = calls.length - timed.length;
  return [el("h3", {}, "Timeline"), drawing, left > 0 && el("p", { class: "soft" }, `Not drawn: ${counted(left, "upstream call")}; the table has all.`)];
};
