// Acts as the browser of a person: opens a URL, follows redirects, and submits each form that it meets, with any name and password.
// node browser.mjs URL [CALLBACK] -> prints the last page. Ends when a page has no form that leads further. If a redirect leads to a
// URL that starts with CALLBACK, prints this URL instead, and does not open it.
const callback = process.argv[3];
const cookies = new Map();

async function open(url, form) {
  for (let redirects = 0; redirects < 20; redirects++) {
    const { origin } = new URL(url);
    const kept = cookies.get(origin) ?? new Map();
    cookies.set(origin, kept);
    const answer = await fetch(url, {
      method: form ? "POST" : "GET",
      body: form && new URLSearchParams(form),
      headers: { cookie: [...kept].map(([name, value]) => `${name}=${value}`).join("; "), accept: "text/html" },
      redirect: "manual",
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      kept.set(name, value);
    }
    const next = answer.headers.get("location");
    if (!next) return [url, await answer.text()];
    [url, form] = [new URL(next, url).href, undefined];
    if (callback && url.startsWith(callback)) {
      console.log(url);
      process.exit();
    }
  }
  throw new Error("too many redirects");
}

let [url, page] = await open(process.argv[2]);
for (let forms = 0; forms < 8; forms++) {
  const found = page.match(/<form[^>]*\baction="([^"]*)"[^>]*>([\s\S]*?)<\/form>/);
  if (!found) break;
  const values = {};
  for (const [input] of found[2].matchAll(/<(?:input|button)\b[^>]*>/g)) {
    const name = input.match(/\bname="([^"]*)"/)?.[1];
    if (name && !(name === "abort")) values[name] = input.match(/\bvalue="([^"]*)"/)?.[1] ?? "person";
  }
  [url, page] = await open(new URL(found[1].replaceAll("&amp;", "&"), url).href, values);
}
console.log(page);
