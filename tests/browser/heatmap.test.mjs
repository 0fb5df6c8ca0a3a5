// SPDX-License-Identifier: Apache-2.0
// Clicks through the heat map in a real browser, from file://: node --test heatmap.test.mjs. Pages come from make_profile, which
// `make browser` builds; what is in them is known.
import assert from "node:assert/strict";
import {test} from "node:test";
import {clean, make, page, press, reads, show, source} from "./pages.mjs";

make(["hostile", "timed", "huge", "deep", "empty", "one"], ".heatmap.html", source);

const open = (kind, options = {}) => show(kind, ".heatmap.html", options);

// The cells of each row: [self, self %, total, total %, text].
const cells = (rows = "tbody tr") => page.$$eval(`#view ${rows}`, (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
async function openFile(name) {
	await page.locator("#view a", {hasText: name}).first().click();
	await page.waitForSelector("tr[data-line]");
}

test("files: self and total, sorted, and they add up", async () => {
	await open("hostile");
	const rows = await cells();
	assert.deepEqual(rows[0].slice(4), ["/srv/app/server.py"]);
	const sums = await page.evaluate(() => {
		const add = (spots, which) => spots.reduce((sum, spot) => sum.map((amount, i) => amount + spot[which][i]), [0, 0, 0, 0]);
		return {files: add(files, "self"), lines: add(lines, "self"), sums: data.sums, most: Math.max(...lines.map((line) => line.total[0]))};
	});
	assert.deepEqual(sums.files, sums.sums);
	assert.deepEqual(sums.lines, sums.sums);
	assert.ok(sums.most <= sums.sums[0]);
	assert.ok(rows.some((row) => row[4] === "(no frame)" && row[0] === "200.00 ms"), "samples without a frame");
	// By self: the file whose own lines have most.
	await page.locator("th button", {hasText: "Self"}).click();
	const own = (await cells()).map((row) => row[4]);
	assert.equal(own[0], "/srv/app/server.py", "140 + 1,500 samples of its own");
	assert.equal(own[1], "/srv/app/work.py", "fib: 14 × 40 + 9 × 91 = 1,379 samples");
	await page.locator("th button", {hasText: "File"}).click();
	const names = (await cells()).map((row) => row[4]);
	assert.deepEqual(names, [...names].sort((a, b) => (a < b ? -1 : 1)));
	clean();
});

test("recursion counts once a sample", async () => {
	await open("hostile");
	const fib = await page.evaluate(() => lines.find((line) => line.name === "fib"));
	assert.deepEqual(fib.total, [1379, 1379000000, 0, 909000000]);
	assert.deepEqual(fib.self, fib.total);
	await open("deep");
	const [line] = await page.evaluate(() => lines);
	assert.deepEqual([line.self, line.total], [[4096, 4096000000, 0, 4096000000], [4096, 4096000000, 0, 4096000000]], "16,384 frames deep, a sample in each fourth");
	clean();
});

test("by CPU time, where the kernel told it, and on a phone", async () => {
	await open("timed", {viewport: {width: 390, height: 844}, hasTouch: true, isMobile: true});
	assert.deepEqual(await page.locator("#measure option").allTextContents(), ["CPU time", "wall time", "GIL held", "samples"]);
	assert.equal(await page.evaluate(() => Math.abs(lines.reduce((sum, line) => sum + line.self[2], 0) - data.sums[2])), 0);
	await page.locator("th button", {hasText: "Total"}).evaluate((button) => button.click());
	for (const id of ["filter", "theme", "help-button", "facts-button", "measure", "heat"]) {
		const {x, width} = await page.locator(`#${id}`).boundingBox();
		assert.ok(x >= 0 && x + width <= 390, id);
	}
	await openFile("server.py");
	const {width} = await page.locator("#view tbody tr").first().locator("td").last().boundingBox();
	assert.ok(width > 200, `the source has the room: ${width}`);
	assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
	clean();
});

test("source lines with heat; callers and callees lead on", async () => {
	await open("hostile");
	await openFile("source.py");
	const rows = await cells();
	assert.equal(rows.length, 5, "its five lines");
	assert.deepEqual(rows[3].slice(4), ["4", "    time.sleep(1 < 2)  # here"]);
	assert.equal(rows[3][0], "800.00 ms");
	assert.equal(rows[4][5], "    return '</script>'");
	const colors = await page.$$eval("#view tbody tr", (all) => all.map((row) => getComputedStyle(row.cells[5]).backgroundColor));
	assert.notEqual(colors[3], colors[2]);
	await press("u");
	await page.waitForSelector("tr[data-file]");
	await openFile("server.py");
	await page.locator('tr[data-line="48"]').click();
	await reads("#detail", /Handler\.handle\s+\/srv\/app\/server\.py:48/);
	await reads("#detail", /Called from \(1\)[^]*serve\s+\/srv\/app\/server\.py:21/);
	await reads("#detail", /Calls \(5\)[^]*dumps/);
	await page.locator("#detail a", {hasText: "core.py:80"}).click();
	await reads("h1", /regex\/core\.py/);
	assert.equal(await page.locator("tr.now").getAttribute("data-line"), "80");
	await page.goBack();
	await reads("h1", /server\.py/);
	assert.equal(await page.locator("tr.now").getAttribute("data-line"), "48");
	clean();
});

test("keyboard: filter, files, lines, heat, light and dark, facts, help", async () => {
	await open("hostile");
	await press("/");
	await page.keyboard.type("WORK");
	assert.deepEqual((await cells()).map((row) => row[4]), ["/srv/app/work.py"]);
	await press("Escape");
	for (const key of ["j", "Enter"])
		await press(key);
	await reads("h1", /work\.py/);
	await press("n");
	assert.equal(await page.locator("tr.now").getAttribute("data-line"), "5");
	await press("Enter");
	await reads("#detail", /fib/);
	await press("u");
	await page.locator("#detail").waitFor({state: "hidden"});
	const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	await press("d");
	assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), light);
	await press("t");
	assert.equal(await page.locator("#heat").inputValue(), "total");
	await press("s");
	assert.match(await page.locator("#facts").innerText(), /lost: torn\s+7/);
	await press("Escape");
	await press("?");
	assert.ok(await page.locator("#help").isVisible());
	await press("Escape");
	assert.match(await page.locator("#facts-button").innerText(), /loss/);
	await page.locator("#measure").selectOption("samples");
	assert.equal((await cells())[0][2], "1,379");
	clean();
});

test("nothing in a name runs or reorders the page", async () => {
	await open("hostile", {colorScheme: "dark"});
	assert.ok(await page.evaluate(() => document.documentElement.hasAttribute("data-dark")), "dark where the system is");
	const names = await page.evaluate(() => files.map((file) => file.name));
	for (let i = 0; i < names.length; i++) {
		if (!/[<>&'"`@]|__proto__|constructor|\u2028/.test(names[i]))
			continue;
		await page.evaluate((id) => { location.hash = id; }, i);
		await page.waitForFunction((name) => document.title.startsWith(name.replace(/[\u2028\u2029]/g, "").slice(0, 1)), names[i]);
		for (const key of ["n", "Enter"])
			await press(key);
	}
	assert.equal(await page.evaluate(() => window.hacked), undefined);
	assert.equal(await page.locator("img, #view script, #view b, iframe").count(), 0);
	clean();
});

test("200,000 nodes stay usable", async () => {
	await open("huge");
	await page.waitForSelector("#view tbody tr");
	const sums = await page.evaluate(() => [lines.reduce((sum, line) => sum + line.self[0], 0), data.sums[0]]);
	assert.equal(sums[0], sums[1]);
	await page.locator("#view a").first().click();
	await page.waitForSelector("tr[data-line]");
	await page.locator("tr[data-line]").first().click();
	await page.waitForSelector("#detail a");
	clean();
});

test("empty and one sample", async () => {
	await open("empty");
	assert.deepEqual(await cells(), []);
	clean();
	await open("one");
	assert.deepEqual(await cells(), [["1.00 ms", "100.0 %", "1.00 ms", "100.0 %", "/srv/one.py"]]);
	await openFile("one.py");
	assert.deepEqual((await cells())[0].slice(4), ["2", "only"]);
	clean();
});

test("no script or style but its own may run", async () => {
	await open("hostile");
	const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
	assert.match(policy, /^default-src 'none'; script-src 'sha256-[\w+/]+=*'; style-src 'sha256-[\w+/]+=*'; base-uri 'none'; form-action 'none'$/);
	await page.evaluate(() => {
		const script = document.createElement("script");
		script.textContent = "window.hacked = 1";
		document.body.append(script);
	});
	assert.equal(await page.evaluate(() => window.hacked), undefined);
});
