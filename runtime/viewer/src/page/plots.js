// What the calls of the window come to.
import { bytes, clock, count, duration, el, moment, number, ratio, svg } from "./format.js";

const HEIGHT = 110;
const BUCKETS = 40;

/** The smallest value that so many of a hundred do not exceed. */
export const percentile = (sorted, percent) => sorted[Math.max(Math.ceil((sorted.length * percent) / 100), 1) - 1];

const tile = (name, value, title) => el("div", { title }, el("dt", {}, name), el("dd", {}, value));
const plot = (title, drawing) => el("figure", {}, el("h3", {}, title), drawing);
const sum = (rows, of) => rows.reduce((all, row) => all + number(of(row)), 0);

const frame = (label, from, to, ...inside) =>
  svg(
    "svg",
    { height: HEIGHT + 18, role: "img", "aria-label": label },
    svg("line", { x1: 0, x2: "100%", y1: HEIGHT, y2: HEIGHT, class: "axis" }),
    inside,
    svg("text", { x: 0, y: HEIGHT + 14, class: "soft" }, from),
    svg("text", { x: "100%", y: HEIGHT + 14, class: "soft", "text-anchor": "end" }, to),
  );

const overTime = (timed, from, to) => {
  const buckets = Array.from({ length: BUCKETS }, () => ({ ok: 0, error: 0, open: 0 }));
  const width = Math.max(to - from, 1);
  for (const { row, at } of timed) buckets[Math.min(Math.floor(((at - from) / width) * BUCKETS), BUCKETS - 1)][row.status] += 1;
  const most = Math.max(...buckets.map((one) => one.ok + one.error + one.open), 1);
  const bars = buckets.map((one, at) => {
    let top = HEIGHT;
    return ["ok", "error", "open"].map((status) => {
      const height = (one[status] / most) * (HEIGHT - 14);
      top -= height;
      return height > 0 && svg("rect", { x: `${(at * 100) / BUCKETS}%`, width: `${90 / BUCKETS}%`, y: top, height, class: status });
    });
  });
  const label = `${timed.length} calls over time, at most ${most} at once`;
  return frame(label, clock(new Date(from).toISOString()), clock(new Date(to).toISOString()), bars, svg("text", { x: 0, y: 10, class: "soft" }, count(most)));
};

const durations = (timed, from, to) => {
  const ended = timed.filter(({ row }) => row.status !== "open");
  const width = Math.max(to - from, 1);
  const least = 2;
  const most = Math.max(Math.ceil(Math.log10(Math.max(...ended.map(({ row }) => number(row.duration_us)), 1))), least + 1);
  const y = (us) => HEIGHT - 4 - ((Math.max(Math.log10(Math.max(us, 1)), least) - least) / (most - least)) * (HEIGHT - 18);
  const dots = ended.map(({ row, at }) =>
    svg("circle", { cx: `${1 + ((at - from) / width) * 98}%`, cy: y(number(row.duration_us)), r: 2.5, class: row.status, "fill-opacity": 0.7 }),
  );
  const lines = Array.from({ length: most - least + 1 }, (_, step) => least + step).map((power) => [
    svg("line", { x1: 0, x2: "100%", y1: y(10 ** power), y2: y(10 ** power), class: "axis", "stroke-dasharray": "2 4" }),
    svg("text", { x: 0, y: y(10 ** power) - 2, class: "soft" }, duration(10 ** power)),
  ]);
  return frame("Durations over time, on a logarithmic scale", clock(new Date(from).toISOString()), clock(new Date(to).toISOString()), lines, dots);
};

/** A name that leaves room for what is said of it: text of a drawing is not cut by itself. */
const short = (name) => (name.length > 32 ? `${name.slice(0, 31)}…` : name);

/** Lines of `[name, parts, text]`, parts as `[class, number]`. */
const bars = (label, lines) => {
  const most = Math.max(...lines.map(([, parts]) => parts.reduce((all, [, n]) => all + n, 0)), 1);
  const drawn = lines.slice(0, 8).map(([name, parts, said], at) => {
    let x = 0;
    const rects = parts.map(([kind, n]) => {
      const width = (n / most) * 100;
      const rect = svg("rect", { x: `${x}%`, width: `${width}%`, y: at * 34 + 16, height: 12, class: kind });
      x += width;
      return rect;
    });
    return [svg("text", { x: 0, y: at * 34 + 12 }, short(name), svg("title", {}, name)), svg("text", { x: "100%", y: at * 34 + 12, "text-anchor": "end", class: "soft" }, said), rects];
  });
  return svg("svg", { height: drawn.length * 34 + 4, role: "img", "aria-label": `${label}: ${lines.slice(0, 8).map(([name, , said]) => `${short(name)} ${said}`).join(", ")}` }, drawn);
};

const grouped = (rows, of) => {
  const groups = new Map();
  for (const row of rows) for (const [name, add] of of(row)) groups.set(name, add(groups.get(name)));
  return [...groups];
};

/** Tiles and plots of some rows of the list. */
export const statistics = (rows) => {
  if (rows.length === 0) return [];
  const errors = rows.filter((row) => row.status === "error");
  const sorted = rows.filter((row) => row.status === "ok" || row.status === "error").map((row) => number(row.duration_us)).sort((a, b) => a - b);
  const measured = rows.filter((row) => number(row.fetched_bytes) > 0 && row.status === "ok");
  const [fetched, answered] = [sum(measured, (row) => row.fetched_bytes), sum(measured, (row) => row.answer_bytes)];
  const timed = rows.map((row) => ({ row, at: moment(row.ts) })).filter(({ at }) => at !== undefined);
  const times = timed.map(({ at }) => at);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const servers = grouped(rows, (row) => row.servers.map(([name, calls, failed]) => [name, (old = [0, 0]) => [old[0] + calls, old[1] + failed]]));
  const reasons = grouped(errors, (row) => [[row.reason ?? "no reason", (old = 0) => old + 1]]).sort((a, b) => b[1] - a[1]);
  const tools = grouped(measured, (row) => [[row.tool, (old = [0, 0]) => [old[0] + number(row.fetched_bytes), old[1] + number(row.answer_bytes)]]]);
  return [
    el(
      "dl",
      { class: "tiles" },
      tile("calls", count(rows.length)),
      tile("errors", `${count(errors.length)} (${((errors.length / rows.length) * 100).toFixed(1)} %)`),
      tile("median", sorted.length ? duration(percentile(sorted, 50)) : "–", "Half of the calls took no longer"),
      tile("p95", sorted.length ? duration(percentile(sorted, 95)) : "–", "95 of 100 calls took no longer"),
      tile("longest", sorted.length ? duration(sorted.at(-1)) : "–"),
      tile("upstream calls", count(sum(rows, (row) => row.calls))),
      tile("fetched", bytes(fetched), "Bytes of upstream answers behind calls that ended well"),
      tile("answered", bytes(answered), "Bytes that the model read instead"),
      tile("reduced", fetched > 0 && answered > 0 ? ratio(fetched / answered) : "–", "How many bytes of upstream answers stand behind one of an answer"),
      tile("tokens kept away", fetched > answered ? `≈ ${count(Math.round((fetched - answered) / 4))}` : "–", "Estimated: bytes / 4"),
    ),
    el(
      "div",
      { class: "plots" },
      timed.length > 0 && plot("Calls over time", overTime(timed, from, to)),
      timed.length > 0 && plot("Durations", durations(timed, from, to)),
      servers.length > 0 &&
        plot("Upstream calls", bars("Upstream calls", servers.sort((a, b) => b[1][0] - a[1][0]).map(([name, [calls, failed]]) => [name, [["call", calls - failed], ["failed", failed]], failed ? `${count(calls)}, ${count(failed)} failed` : count(calls)]))),
      tools.length > 0 &&
        plot("Bytes fetched and answered", bars("Bytes", tools.sort((a, b) => b[1][0] - a[1][0]).map(([name, [before, after]]) => [name, [["ok", after], ["work", Math.max(before - after, 0)]], `${bytes(before)} → ${bytes(after)}`]))),
      reasons.length > 0 && plot("Reasons of errors", bars("Reasons", reasons.map(([name, n]) => [name, [["error", n]], count(n)]))),
    ),
  ];
};
