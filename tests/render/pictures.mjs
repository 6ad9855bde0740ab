// Makes the pictures of pages that the README and the docs show: node pictures.mjs PAGE.html DIRECTORY
// PAGE.html is what `kforensics explain fixtures/unclean-election --format html` writes; docs/development.md has the commands.
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

// Modules are those of the directory it is started from.
const require = createRequire(join(process.cwd(), "pictures.mjs"));
const puppeteer = require("puppeteer-core");
const [page_file, directory] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  userDataDir: mkdtempSync(join(tmpdir(), "pictures-")),
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage();
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
await page.setViewport({ width: 1080, height: 720 });
await page.goto("file://" + resolve(page_file));
// When the page was made is another time each time.
await page.evaluate(() => document.querySelector(".identity > div:last-child").remove());
await page.screenshot({ path: join(directory, "incident.png") });
const partition = await page.$("#partition-orders-0");
await partition.screenshot({ path: join(directory, "partition.png") });
await browser.close();
