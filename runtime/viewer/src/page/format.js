// Numbers and texts as people read them. Whatever came from outside becomes text here, never markup.

// Controls, marks that turn the direction of what follows, and letters without a shape are written out.
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\u034f\u115f\u1160\u3164\uffa0]/gu;

/** A value as text in which nothing hides. */
export const shown = (value) => {
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2);
  return text.replace(HIDDEN, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
};

const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : shown(value));
  }
  const parts = children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);
  node.append(...parts.map((child) => (child instanceof Node ? child : shown(child))));
  return node;
};

/** An element of the page. */
export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** An element of a drawing. */
export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

/** A number, or 0: what stands in a file need not be one. */
export const number = (value) => (typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0);

export const count = (value) => number(value).toLocaleString("en");

/** A number of things. */
export const counted = (value, thing) => `${count(value)} ${thing}${number(value) === 1 ? "" : "s"}`;

export const bytes = (value) => {
  const n = number(value);
  if (n < 1000) return `${Math.round(n)} B`;
  const at = Math.min(Math.floor(Math.log10(n) / 3), 4);
  const scaled = n / 1000 ** at;
  return `${scaled.toFixed(scaled < 10 ? 1 : 0)} ${["B", "kB", "MB", "GB", "TB"][at]}`;
};

/** Microseconds. */
export const duration = (value) => {
  const n = number(value);
  if (n < 1000) return `${Math.round(n)} µs`;
  if (n < 1e6) return `${(n / 1000).toFixed(n < 1e4 ? 1 : 0)} ms`;
  if (n < 6e7) return `${(n / 1e6).toFixed(n < 1e7 ? 2 : 1)} s`;
  if (n >= 3.6e9) return `${(n / 3.6e9).toPrecision(3)} h`;
  return `${Math.floor(n / 6e7)} min ${Math.round((n % 6e7) / 1e6)} s`;
};

/** The milliseconds of a time in text, or nothing. */
export const moment = (value) => {
  const at = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(at) ? undefined : at;
};

const two = (n) => String(n).padStart(2, "0");

/** A time of day; with its date where that is not today. */
export const clock = (value) => {
  const at = moment(value);
  if (at === undefined) return shown(value ?? "");
  const date = new Date(at);
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `;
  return `${day}${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

export const ratio = (value) => `${number(value) < 10 ? number(value).toFixed(1) : Math.round(number(value)).toLocaleString("en")}×`;
