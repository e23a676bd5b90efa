// The list of calls, its filters, and what keeps it up to date.
import { bytes, clock, count, counted, duration, el, number, ratio, shown } from "./format.js";
import { detail } from "./detail.js";
import { statistics } from "./plots.js";

const $ = (id) => document.getElementById(id);
// Asked again rather than held open: nothing new is a 304 of a hundred bytes, and a server has one connection less for each page.
const PERIOD = 1500;
const PAGE = 300;
/** List and call stand beside each other. */
const WIDE = matchMedia("(min-width: 70rem)");
const state = { rows: [], total: 0, tag: undefined, following: true, most: PAGE, open: undefined, drawn: undefined, known: undefined };

// The token comes in the link and leaves the address bar at once; it stays as long as the tab.
const link = new URLSearchParams(location.hash.slice(1));
if (link.has("token")) {
  sessionStorage.setItem("token", link.get("token"));
  history.replaceState(null, "", location.pathname);
}

const ask = (path, tag) => {
  const token = sessionStorage.getItem("token");
  const headers = { ...(token && { authorization: `Bearer ${token}` }), ...(tag && { "if-none-match": tag }) };
  return fetch(path, { headers, cache: "no-store", credentials: "omit", redirect: "error" });
};

const trouble = (sentence) => {
  $("trouble").hidden = !sentence;
  $("trouble").textContent = sentence ?? "";
};

const chosen = () => {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [status, tool, server, slow] = ["status", "tool", "server", "slow"].map((id) => $(id).value);
  return state.rows.filter(
    (row) =>
      (!status || row.status === status) &&
      (!tool || row.tool === tool) &&
      (!server || row.servers.some(([name]) => name === server)) &&
      number(row.duration_us) >= Number(slow) &&
      words.every((word) => row.search.includes(word)),
  );
};

const searchable = (row) =>
  [row.tool, row.request_id, row.reason, row.message, row.preview, row.id, ...row.servers.map(([name]) => name)].filter(Boolean).join(" ").toLowerCase();

const line = (row) => {
  const [before, after] = [number(row.fetched_bytes), number(row.answer_bytes)];
  const size = before > 0 ? `${bytes(before)} → ${after > 0 ? `${bytes(after)} ${ratio(before / after)}` : "–"}` : row.result_bytes === null ? "" : bytes(row.result_bytes);
  const isNew = state.known !== undefined && !state.known.has(row.id);
  const about = [row.preview && row.tool, clock(row.ts), row.calls > 0 && counted(row.calls, "upstream call"), row.reason];
  return el(
    "li",
    {},
    el(
      "a",
      { class: isNew ? "row new" : "row", href: `#call=${encodeURIComponent(row.id)}`, "data-id": row.id, "aria-current": row.id === state.open ? "true" : false },
      el("span", { class: `status ${row.status}` }, row.status === "open" ? "no end" : row.status),
      el("span", { class: row.preview && "mono" }, row.preview || row.tool || "a call"),
      el("span", { class: "number" }, row.status === "open" ? "" : duration(row.duration_us)),
      el("span", { class: "about soft" }, about.filter(Boolean).join(" · ")),
      el("span", { class: "number soft" }, size),
    ),
  );
};

const options = (select, names) => {
  const [first] = select.options;
  const value = select.value;
  const all = value && !names.includes(value) ? [...names, value] : names;
  select.replaceChildren(first, ...all.map((name) => el("option", { value: name }, name)));
  // What is shown of a name may be more than the name.
  [...select.options].slice(1).forEach((option, at) => (option.value = all[at]));
  select.value = value;
  select.hidden = all.length === 0;
};

const draw = () => {
  const rows = chosen();
  state.drawn = rows;
  const focused = document.activeElement?.dataset?.id;
  $("list").replaceChildren(...rows.slice(0, state.most).map(line));
  if (focused) rowOf(focused)?.focus({ preventScroll: true });
  $("more").hidden = rows.length <= state.most;
  $("nothing").hidden = rows.length > 0;
  $("nothing").textContent = state.rows.length > 0 ? "No call fits the filters." : "No calls yet. They appear here as they come.";
  const all = state.total > state.rows.length ? `${count(state.rows.length)} of ${count(state.total)} calls` : counted(state.total, "call");
  $("count").textContent = rows.length === state.rows.length ? all : `${count(rows.length)} of ${all}`;
  $("figures").replaceChildren(...statistics(rows));
};

const rowOf = (id) => [...$("list").querySelectorAll("[data-id]")].find((row) => row.dataset.id === id);

const refresh = async () => {
  try {
    const answer = await ask(`api/calls?limit=${$("window").value}`, state.tag);
    if (answer.status === 401 || answer.status === 429) {
      $("panes").hidden = true;
      $("unlock").hidden = false;
      trouble(answer.status === 429 ? "Too many wrong tokens; wait a minute." : sessionStorage.getItem("token") ? "That token is not right." : undefined);
      return;
    }
    if (answer.status !== 304) {
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      const said = await answer.json();
      if (said.error) throw new Error(said.error);
      const open = state.rows.find((row) => row.id === state.open);
      state.known = state.tag && new Set(state.rows.map((row) => row.id));
      state.rows = said.calls.map((row) => ({ ...row, search: searchable(row) }));
      state.total = said.total;
      state.tag = answer.headers.get("etag");
      options($("tool"), [...new Set(state.rows.map((row) => row.tool))].sort());
      options($("server"), [...new Set(state.rows.flatMap((row) => row.servers.map(([name]) => name)))].sort());
      draw();
      const now = state.rows.find((row) => row.id === state.open);
      if (open && now && open.status !== now.status) await show();
    }
    $("panes").hidden = false;
    $("unlock").hidden = true;
    trouble();
  } catch (fault) {
    trouble(`No answer: ${shown(fault.message)}. Asking again.`);
  }
};

let asking = Promise.resolve();
const soon = () => (asking = asking.then(refresh));

/** Shows the call that the address names, or none. */
const show = async () => {
  const id = new URLSearchParams(location.hash.slice(1)).get("call") ?? undefined;
  const was = state.open;
  state.open = id;
  document.body.classList.toggle("opened", id !== undefined);
  for (const row of $("list").querySelectorAll("[data-id]")) {
    if (row.dataset.id === id) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
  $("detail").hidden = id === undefined;
  $("stats").hidden = id !== undefined;
  if (id === undefined) {
    document.title = "Calls";
    if (was) rowOf(was)?.focus();
    return;
  }
  rowOf(id)?.scrollIntoView({ block: "nearest" });
  let nodes;
  try {
    const answer = await ask(`api/calls/${encodeURIComponent(id)}`);
    const said = answer.ok ? await answer.json() : undefined;
    nodes = said ? detail(said) : [el("p", { class: "bad" }, answer.status === 404 ? "There is no such call; its file may have made room for newer ones." : `The server answers ${answer.status}.`), el("a", { href: "#" }, "← all calls")];
  } catch (fault) {
    nodes = [el("p", { class: "bad" }, `No answer: ${shown(fault.message)}`)];
  }
  // Another one was opened meanwhile.
  if (state.open !== id) return;
  $("detail").replaceChildren(...nodes);
  document.title = `${$("detail").querySelector("h2")?.textContent ?? "A call"} · Calls`;
  if (was !== id) {
    $("detail").scrollTop = 0;
    if (!WIDE.matches) scrollTo(0, 0);
    $("detail").focus({ preventScroll: true });
  }
};

/** To the next call, or by -1 to the one before. */
const move = (step) => {
  const ids = (state.drawn ?? []).slice(0, state.most).map((row) => row.id);
  const at = ids.indexOf(state.open ?? document.activeElement?.dataset?.id);
  const next = ids[at < 0 ? 0 : Math.min(Math.max(at + step, 0), ids.length - 1)];
  if (next === undefined) return;
  if (state.open) location.hash = `call=${encodeURIComponent(next)}`;
  else rowOf(next)?.focus();
};

const follow = (on) => {
  state.following = on;
  $("follow").setAttribute("aria-pressed", String(on));
  $("follow").textContent = on ? "Following" : "Follow";
  if (on) soon();
};

const KEYS = {
  j: () => move(1),
  ArrowDown: () => move(1),
  k: () => move(-1),
  ArrowUp: () => move(-1),
  "/": () => ($("search").focus(), $("search").select()),
  f: () => follow(!state.following),
  "?": () => $("help").showModal(),
  Escape: () => state.open && (location.hash = ""),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") {
      $("search").value = "";
      draw();
      event.target.blur();
    }
    return;
  }
  // Arrows scroll what has its own scroll bar.
  if (event.key.startsWith("Arrow") && event.target.matches("pre, .scroll")) return;
  const does = KEYS[event.key];
  if (!does) return;
  event.preventDefault();
  does();
});
$("filters").addEventListener("input", (event) => {
  state.most = PAGE;
  if (event.target === $("window")) {
    state.tag = undefined;
    soon();
  } else draw();
});
$("filters").addEventListener("submit", (event) => {
  event.preventDefault();
  $("list").querySelector("a")?.focus();
});
$("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  soon().then(show);
});
$("follow").addEventListener("click", () => follow(!state.following));
$("keys").addEventListener("click", () => $("help").showModal());
$("more").addEventListener("click", () => {
  state.most += PAGE;
  draw();
});
$("fold").open = WIDE.matches;
WIDE.addEventListener("change", () => ($("fold").open = WIDE.matches));
addEventListener("hashchange", show);
setInterval(() => state.following && document.visibilityState === "visible" && soon(), PERIOD);
soon().then(show);
