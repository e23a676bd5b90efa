"use strict";
// Ids with a colon belong to the page. They cannot collide with upstreams, whose names have no colon.
const input = document.getElementById(":search");
const found = document.getElementById(":found");
const nothing = document.getElementById(":nothing");
const sections = [...document.querySelectorAll("[data-upstream]")].map((section) => ({
  section,
  tools: [...section.querySelectorAll("[data-search]")],
}));
// A tool matches if its texts contain every word.
const search = () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { section, tools } of sections) {
    let shown = 0;
    for (const tool of tools) {
      tool.hidden = !words.every((word) => tool.dataset.search.includes(word));
      if (!tool.hidden) shown += 1;
    }
    section.hidden = shown === 0 && words.length > 0;
    count += shown;
  }
  found.value = count === 1 ? "1 tool" : `${count} tools`;
  nothing.hidden = count > 0 || words.length === 0;
};
const clear = () => {
  input.value = "";
  search();
  input.focus();
};
input.addEventListener("input", search);
input.form.addEventListener("submit", (event) => {
  event.preventDefault();
  // Open the first match, so that it can be read without a mouse.
  const first = document.querySelector("[data-search]:not([hidden])");
  if (first && input.value) {
    first.open = true;
    first.querySelector("summary").focus();
  }
});
document.getElementById(":clear").addEventListener("click", clear);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.select();
    input.focus();
  } else if (event.key === "Escape" && input.value) {
    clear();
  }
});
// A link to a tool opens it.
const open = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.matches("details")) target.open = true;
};
addEventListener("hashchange", open);
open();
