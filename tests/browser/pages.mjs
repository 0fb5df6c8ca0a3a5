// SPDX-License-Identifier: Apache-2.0
// What the tests in a real browser share: the pages that make_profile writes, which `make browser` builds, and a browser in which whatever a
// page asks the network for, throws or violates of its policy is noted.
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {after, before} from "node:test";
import {fileURLToPath} from "node:url";
import {chromium} from "playwright-core";

const top = join(dirname(fileURLToPath(import.meta.url)), "../..");
const build = resolve(top, process.env.BUILD || "build");
const program = ["chromium", "chromium-browser", "google-chrome"].map((name) => join("/usr/bin", name)).find(existsSync);
const folder = realpathSync(mkdtempSync(join(tmpdir(), "sampled-browser-")));
let browser;

// The file of a profile of this kind, by its suffix in a format.
export const file = (kind, suffix) => join(folder, kind + suffix);
export const source = file("source", ".py");

export let page, asked, problems; // of the page that was opened last

before(async () => {
	execFileSync("make", ["-s", "browser"], {cwd: top, stdio: ["ignore", "ignore", "inherit"], env: {...process.env, MAKEFLAGS: ""}});
	writeFileSync(source, "import time\n\ndef has_source():\n    time.sleep(1 < 2)  # here\n    return '</script>'\n");
	browser = await chromium.launch({executablePath: program, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync"]});
});

after(async () => {
	await browser?.close();
	rmSync(folder, {recursive: true, force: true});
});

// Has the files written before the tests; one frame of "hostile" is of `source`, where it is given.
export function make(kinds, suffix, ...sources) {
	before(() => {
		for (const kind of kinds)
			execFileSync(join(build, "tests/browser/make_profile"), [kind, file(kind, suffix), ...sources]);
	});
}

// An empty page, anew. harmless: a message with this in it is no problem.
export async function fresh(options = {}, harmless = null) {
	await page?.context().close();
	page = await (await browser.newContext({viewport: {width: 1280, height: 760}, ...options})).newPage();
	[asked, problems] = [[], []];
	page.on("request", (request) => asked.push(request.url()));
	page.on("pageerror", (error) => problems.push(String(error)));
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && !(harmless && message.text().includes(harmless)) &&
		problems.push(message.text()));
}

// A file in a fresh page.
export async function show(kind, suffix, options = {}, harmless = null) {
	await fresh(options, harmless);
	await page.goto(`file://${file(kind, suffix)}`);
}

// A key, and what it leads to: another address is told to the page later (hashchange).
export async function press(key) {
	await page.keyboard.press(key);
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

// The text of an element, as soon as it matches: another address is told to the page later (hashchange).
export async function reads(selector, pattern) {
	const matches = ([at, source]) => new RegExp(source).test(document.querySelector(at)?.innerText ?? "");
	await page.waitForFunction(matches, [selector, pattern.source]).catch(async () =>
		assert.match(await page.locator(selector).innerText(), pattern));
}

export function clean() {
	assert.deepEqual(problems, []);
	assert.equal(asked.length, 1, `only the page itself is asked for: ${asked}`);
}
