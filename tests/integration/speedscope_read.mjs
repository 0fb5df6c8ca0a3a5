// SPDX-License-Identifier: Apache-2.0
// Opens profiles in speedscope's own page, in a headless browser, and tells as JSON what it imported: node speedscope_read.mjs MODULES CHROMIUM FILE…
// MODULES is a node_modules folder that holds speedscope and playwright-core. The page is the package's, and loads the file as its command does: by a
// script that hands it over. What it imported hangs on the page's component tree.
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {basename, join, resolve} from "node:path";

const [modules, program, ...files] = process.argv.slice(2);
const {chromium} = createRequire(join(resolve(modules), "x.js"))("playwright-core");
const index = join(resolve(modules), "speedscope/dist/release/index.html");
const folder = mkdtempSync(join(tmpdir(), "sampled-speedscope-"));
const TIMEOUT_MS = 40000;

// Runs before the page's own script: keeps the root of its component tree, which it hangs on an element that it then removes.
function keepRoot() {
	Object.defineProperty(Element.prototype, "__k", {set(root) { window.keptRoot = root; }, get() { return window.keptRoot; }});
}

// In the page: the profile group as soon as it is there; null before.
function found() {
	const seen = new Set(), waiting = [window.keptRoot];
	while (waiting.length > 0) {
		const node = waiting.pop();
		if (!node || typeof node !== "object" || seen.has(node))
			continue;
		seen.add(node);
		const group = node.props?.profileGroup;
		if (group?.profiles?.length > 0)
			return group;
		waiting.push(...(Array.isArray(node) ? node : Array.isArray(node.__k) ? node.__k : []));
	}
	return null;
}

// In the page: sums of the profiles, by frame too.
function told(group) {
	return {
		name: group.name,
		profiles: group.profiles.map(({profile}) => {
			const frames = [];
			profile.forEachFrame((frame) => frames.push([frame.name, frame.file ?? "", frame.line ?? 0, frame.getSelfWeight(), frame.getTotalWeight()]));
			let depth = 0, deepest = 0;
			profile.forEachCall(() => { deepest = Math.max(deepest, ++depth); }, () => { depth--; });
			return {name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames, deepest};
		}),
	};
}

const browser = await chromium.launch({executablePath: program, args: ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]});
const results = {};
for (const [number, file] of files.entries()) {
	const page = await browser.newPage(), problems = [], script = join(folder, `${number}.js`);
	page.on("pageerror", (error) => problems.push(String(error)));
	page.on("dialog", (dialog) => { problems.push(dialog.message()); dialog.dismiss(); });
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && !message.text().includes("WebGL") && problems.length < 20 && problems.push(message.text()));
	await page.addInitScript(keepRoot);
	writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(basename(file))}, "${readFileSync(file).toString("base64")}")`);
	await page.goto(`file://${index}#localProfilePath=${script}`);
	let told_of = null;
	try {
		await page.waitForFunction(found, null, {timeout: TIMEOUT_MS, polling: 200});
		told_of = await page.evaluate(`(${told})((${found})())`);
	} catch (error) {
		problems.push(String(error));
	}
	results[file] = {...told_of, problems};
	await page.close();
}
console.log(JSON.stringify(results));
await browser.close();
rmSync(folder, {recursive: true, force: true});
