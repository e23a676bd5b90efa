// Opens a catalog page in headless Chromium and uses it with the keyboard. A screenshot is written to PICTURE if given.
// node page.mjs FILE [PICTURE] -> one JSON object on standard output
import { chromium } from "playwright-core";

const [file, picture] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const faults = [];
const requests = [];
const open = async (colorScheme, hash = "") => {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1000, height: 900 } });
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(`file://${file}${hash}`);
  return page;
};
const shown = (page) => page.locator("details:not([hidden]) > summary > code").allInnerTexts();
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

const page = await open("light");
const all = await shown(page);
await page.keyboard.press("/");
await page.keyboard.type("owner");
const few = await shown(page);
const said = await page.locator("output").innerText();
await page.keyboard.press("Enter");
const opened = await page.locator("details[open] table td:first-child").allInnerTexts();
await page.keyboard.press("/");
await page.keyboard.type("zzz no such thing");
const none = await shown(page);
const nothing = await page.locator("main > p").isVisible();
await page.keyboard.press("Escape");
const again = await shown(page);
if (picture) {
  await page.locator("summary").first().click();
  await page.screenshot({ path: picture });
}
const dark = await open("dark", "#petstore/get-pet");
const linked = await dark.locator("details[open] > summary > code").allInnerTexts();
if (picture) await dark.screenshot({ path: picture.replace(/(\.\w+)$/, "-dark$1") });
const wide = await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
const markup = await page.evaluate(() => document.querySelectorAll("main img, main iframe, main script, main b").length);
console.log(
  JSON.stringify({
    all, few, said, opened, none, nothing, again, linked, faults, wide, markup,
    title: await page.title(),
    text: await page.locator("main").innerText(),
    facts: await page.locator("dd").allTextContents(),
    light: await background(page),
    dark: await background(dark),
    elsewhere: requests.filter((url) => !url.startsWith("file://")),
  }),
);
await browser.close();
