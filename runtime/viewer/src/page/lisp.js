// A program with its colours, and the form at which it failed.
import { el } from "./format.js";

const TOKEN = /(;[^\n]*)|(#?"(?:\\[^]|[^"\\])*"?)|(:[^\s,()[\]{}";]+)|(\\[^\s][^\s,()[\]{}";]*|[-+]?\d[^\s,()[\]{}";]*|(?:nil|true|false)(?=[\s,()[\]{}";]|$))|([^\s,()[\]{}";]+)|([\s,()[\]{}]+)/g;
const CLASSES = [undefined, "comment", "string", "keyword", "literal"];

const painted = (text) => {
  let before = "";
  return [...text.matchAll(TOKEN)].map((match) => {
    const token = match[0];
    const at = match.findIndex((group, index) => index > 0 && group !== undefined);
    const head = at === 5 && before.endsWith("(") ? "head" : undefined;
    before = token;
    const name = CLASSES[at] ?? head;
    return name ? el("span", { class: name }, token) : token;
  });
};

/** The nodes of a program. `span` counts in bytes of UTF-8. */
export const program = (text, span) => {
  const raw = new TextEncoder().encode(text);
  const inside = (at) => Number.isInteger(at) && at >= 0 && at <= raw.length;
  if (!span || !inside(span.start) || !inside(span.end) || span.start >= span.end) return painted(text);
  const part = (from, to) => new TextDecoder().decode(raw.subarray(from, to));
  return [
    ...painted(part(0, span.start)),
    el("mark", { title: "Here it failed" }, painted(part(span.start, span.end))),
    ...painted(part(span.end, raw.length)),
  ];
};
