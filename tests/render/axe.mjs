// Checks pages with axe-core in headless Chromium, light, dark and narrow, with all details open: node axe.mjs PAGE.html ...
// Exits 1 with any violation, any request, or a page that is wider than its window, a script that fails or a filter that does not filter.
import { mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

// Modules are those of the directory it is started from.
const require = createRequire(join(process.cwd(), "axe.mjs"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  userDataDir: mkdtempSync(join(tmpdir(), "axe-")),
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
let failures = 0;
for (const file of process.argv.slice(2)) {
  for (const [name, scheme, width] of [["light", "light", 1280], ["dark", "dark", 1280], ["narrow", "light", 390]]) {
    const page = await browser.newPage();
    const requests = [];
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("request", (request) => request.url().startsWith("file:") || requests.push(request.url()));
    await page.setBypassCSP(true); // of axe itself: the page allows its own script alone
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width, height: 900 });
    await page.goto("file://" + resolve(file));
    await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
    // Each choice of the filter hides something, and "all" shows all again.
    const wrong = await page.evaluate(() => {
      const hidden = () => document.querySelectorAll("main .off").length;
      const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("input")); return hidden(); };
      return [...document.querySelectorAll(".tools select")].filter((one) => choose(one, one.options[1].value) === 0 || choose(one, "") > 0).length;
    });
    const overhang = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document));
    console.log(`${file} ${name}: ${violations.length} violations, ${requests.length} requests, ${overhang} pixels too wide`);
    for (const one of violations) console.log(`  ${one.id}: ${one.help} (${one.nodes.length}) ${one.nodes[0].html.slice(0, 160)}`);
    for (const one of errors) console.log(`  the script fails: ${one}`);
    if (wrong) console.log(`  ${wrong} of the filters do not filter`);
    failures += errors.length + wrong + violations.length + requests.length + overhang;
    await page.close();
  }
}
await browser.close();
process.exit(failures ? 1 : 0);
