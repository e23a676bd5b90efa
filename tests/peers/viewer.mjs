// Opens the page of traces in headless Chromium and uses it with the keyboard. Screenshots are written to FOLDER.
// node viewer.mjs URL FOLDER SEARCH [MCP_URL] -> one JSON object on standard output. SEARCH finds the call that is opened. With MCP_URL
// a call is made to that server meanwhile, with $TOKEN.
import { chromium } from "playwright-core";

const [url, folder, search, mcp] = process.argv.slice(2);
const here = new URL(url);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const faults = [];
const requests = [];
const open = async (colorScheme, width, height) => {
  const context = await browser.newContext({ colorScheme, viewport: { width, height }, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(url);
  await page.locator(".row").first().waitFor();
  return page;
};
const statuses = (page) => page.locator(".row .status").allInnerTexts();
const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const picture = (page, name) => page.screenshot({ path: `${folder}/${name}.png` });
const markup = (page) => page.evaluate(() => document.querySelectorAll("#panes img, #panes iframe, #panes script, #panes b, #panes [onclick]").length);

const page = await open("light", 1400, 1000);
const address = page.url();
const all = await statuses(page);
const said = await page.locator("#count").innerText();
const tiles = Object.fromEntries(await page.locator(".tiles div").evaluateAll((all) => all.map((one) => [...one.children].map((child) => child.textContent))));
const plots = await page.locator("#stats figure h3").allInnerTexts();
await picture(page, "list");
const filtered = {};
for (const status of ["ok", "error", "open"]) {
  await page.locator("#status").selectOption(status);
  filtered[status] = await statuses(page);
}
await page.locator("#status").selectOption("");
await page.keyboard.press("Escape");
await page.keyboard.press("/");
await page.keyboard.type("no such call anywhere");
const none = { rows: await statuses(page), said: await page.locator("#nothing").innerText() };
await page.keyboard.press("Escape");
await page.keyboard.press("/");
await page.keyboard.type(search);
const found = await statuses(page);
await page.keyboard.press("Enter");
await page.keyboard.press("Enter");
const one = async (page) => {
  await page.locator("#detail h2").waitFor();
  return page.evaluate(() => {
    const texts = (selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent);
    const block = (name) => document.querySelector(`#detail pre[aria-label="${name}"]`)?.textContent;
    const bars = [...document.querySelectorAll("#timeline .bar")].map((bar) => {
      const { left, right, top } = bar.querySelector("rect").getBoundingClientRect();
      return { label: bar.getAttribute("aria-label"), left, right, top };
    });
    const classes = new Set([...document.querySelectorAll("#detail pre span")].map((span) => span.className));
    return {
      title: document.querySelector("#detail h2").textContent, sections: texts("#detail h3"), program: block("Program"), failing: texts("#detail mark"),
      prints: block("Prints"), result: block("Result"), helps: block("What helps"), context: block("Context"), bars, colours: [...classes].sort(),
      calls: [...document.querySelectorAll("#detail tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
      blocks: Object.fromEntries([...document.querySelectorAll("#detail pre")].map((block) => [block.getAttribute("aria-label"), block.textContent])),
      folded: [...document.querySelectorAll("#detail details")].map((part) => part.open),
      text: document.querySelector("#detail").innerText,
    };
  });
};
const call = await one(page);
await picture(page, "call");
const wide = await fits(page);
const marked = await markup(page);
const focused = await page.evaluate(() => document.activeElement.id);
await page.keyboard.press("Escape");
await page.locator("#stats").waitFor();
const back = await page.evaluate(() => document.activeElement.classList.contains("row"));
await page.keyboard.press("/");
await page.keyboard.press("Escape");
await page.keyboard.press("?");
const help = await page.locator("#help").isVisible();
await page.keyboard.press("Escape");

let followed;
if (mcp) {
  const headers = { "content-type": "application/json", accept: "application/json", authorization: `Bearer ${process.env.TOKEN}` };
  const send = (body, more = {}) => fetch(mcp, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: "2.0", ...body }) });
  const client = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "0" } };
  const first = await send({ id: 1, method: "initialize", params: client });
  const session = { "mcp-session-id": first.headers.get("mcp-session-id") };
  await send({ id: 2, method: "tools/call", params: { name: "lisp_eval", arguments: { program: "(str :meanwhile)" } } }, session);
  await page.locator(".row", { hasText: ":meanwhile" }).waitFor();
  followed = await page.locator("#count").innerText();
}

const dark = await open("dark", 1400, 1000);
await picture(dark, "list-dark");
const phone = await open("dark", 390, 800);
const narrow = [await fits(phone)];
await picture(phone, "phone-list");
await phone.keyboard.press("/");
await phone.keyboard.type(search);
await phone.locator(".row").first().click();
const small = await one(phone);
narrow.push(await fits(phone), await phone.locator("#browse").isHidden());
await picture(phone, "phone-call");
await phone.evaluate(() => document.querySelector("#detail").scrollIntoView());
await phone.screenshot({ path: `${folder}/phone-whole.png`, fullPage: true });
await phone.locator(".back").click();
// The address changes immediately, but the page a moment later. If the list does not return, the wait ends with an error.
await phone.locator("#browse").waitFor();
narrow.push(await fits(phone));
console.log(
  JSON.stringify({
    address, all, said, tiles, plots, filtered, none, found, call, wide, markup: marked, focused, back, help, followed, narrow, faults,
    same: small.program === call.program,
    light: await background(page),
    dark: await background(dark),
    elsewhere: requests.filter((request) => new URL(request).origin !== here.origin && !request.startsWith("data:")),
  }),
);
await browser.close();
