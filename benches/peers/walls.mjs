// A crawl by a browser, as Browsertrix does it: one context, pages in turn, what fails is tried twice more.
// Run by walls.py beside this file, which says what it is told.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT_CORE);
const told = JSON.parse(process.argv[2]);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({
  proxy: told.proxy,
  ignoreHTTPSErrors: true,
  httpCredentials: { username: told.name, password: told.password },
  clientCertificates: [{ origin: told.origin, certPath: told.certificate, keyPath: told.key }],
});
await context.addCookies([told.cookie]);
const seen = new Set(told.urls);
const queue = told.urls.map((url) => ({ url, tries: 0 }));
while (queue.length) {
  const { url, referer, tries } = queue.shift();
  const page = await context.newPage();
  try {
    const answer = await page.goto(url, { referer, timeout: 20000 });
    if (answer.status() >= 400) throw new Error(`status ${answer.status()}`);
    writeFileSync(`${seen.size}-${tries}.html`, await page.content());
    for (const link of await page.$$eval("a", (links) => links.map((link) => link.href))) {
      if (!seen.has(link)) {
        seen.add(link);
        queue.push({ url: link, referer: url, tries: 0 });
      }
    }
  } catch (error) {
    console.log(url, String(error).split("\n")[0]);
    if (tries < 2) queue.push({ url, referer, tries: tries + 1 });
  }
  await page.close();
}
await browser.close();
