// SPDX-License-Identifier: Apache-2.0
// Two profiles in one page (sampled diff -o), in a real browser. make_profile's "compared": of 1,000 samples before and 2,000 after, parse has 40 %
// and 45 %, steady 30 % in both, vanished 30 % and none, </script>new none and 25 %.
import assert from "node:assert/strict";
import {test} from "node:test";
import {clean, make, page, show} from "./pages.mjs";

const NEW = "</script>new";
const AFTER = "1", BEFORE = "2"; // values of the Width picker

make(["compared"], ".html");

const open = () => show("compared", ".html", {reducedMotion: "reduce"}, "willReadFrequently");

const frames = () => page.evaluate(() => window.sampled.frames());
const named = async (name) => (await frames()).find((frame) => frame.name === name);
const settle = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function hover(name) {
	const frame = await named(name), box = await page.locator("#canvas").boundingBox();
	await page.mouse.move(box.x + frame.x + frame.width / 2, box.y + frame.y + 10);
	await settle();
	return page.locator("#tip").textContent();
}

// The colour of a frame, near its lower right corner where no text is.
async function colorOf(name) {
	const frame = await named(name);
	return page.evaluate(({x, y}) => {
		const ratio = window.devicePixelRatio, pixel = document.getElementById("canvas").getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data;
		return Array.from(pixel.slice(0, 3));
	}, {x: frame.x + frame.width - 8, y: frame.y + 16});
}

test("widths are of after, and of before on request: what vanished is seen there", async () => {
	await open();
	const width = async (name) => Math.round(((await named(name))?.width || 0) / 1280 * 1000) / 10;
	assert.deepEqual([await width("parse"), await width("steady"), await width(NEW), await width("vanished")], [45, 30, 25, 0]);
	await page.locator("#weight").selectOption(BEFORE);
	assert.deepEqual([await width("parse"), await width("steady"), await width(NEW), await width("vanished")], [40, 30, 0, 30]);
	await page.locator("#weight").selectOption(AFTER);
	assert.equal(await width("vanished"), 0);
	assert.equal((await frames()).filter((frame) => frame.name === "main").length, 1, "lines that moved and threads of other numbers are joined");
	assert.deepEqual(await page.locator("#weight option").allTextContents(), ["After", "Samples after", "Before", "Samples before"]);
	clean();
});

test("red grew, blue shrank, grey is within the noise", async () => {
	await open();
	const [red, , blue] = await colorOf(NEW);
	assert.ok(red > blue + 60, `new is red: ${red} ${blue}`);
	const parse = await colorOf("parse"), steady = await colorOf("steady");
	assert.ok(parse[0] > parse[2] + 15, `grew a little: ${parse}`);
	assert.ok(Math.max(...steady) - Math.min(...steady) < 15, `unchanged: ${steady}`);
	await page.locator("#weight").selectOption(BEFORE);
	await settle();
	const gone = await colorOf("vanished");
	assert.ok(gone[2] > gone[0] + 60, `gone is blue: ${gone}`);
	assert.match(await page.locator("#legend").textContent(), /Grew.*Shrank.*Within the noise/);
	assert.deepEqual(await page.locator("#color option").allTextContents(), ["Change", "Category", "File"]);
	clean();
});

test("the tooltip has both shares and the difference", async () => {
	await open();
	const tip = await hover("parse");
	assert.match(tip, /Total40\.00 %45\.00 %\+5\.00± 3\.7\d/);
	assert.match(tip, /Self40\.00 %45\.00 %\+5\.00/);
	assert.doesNotMatch(tip, /noise/);
	assert.match(tip, /400\.0 ms900\.0 ms/);
	assert.match(await hover("steady"), /30\.00 %30\.00 %0\.00.*within the noise/);
	await page.locator("#weight").selectOption(BEFORE);
	await settle();
	assert.match(await hover("vanished"), /30\.00 %0\.00 %-30\.00/);
	clean();
});

test("what is new and gone is listed", async () => {
	await open();
	assert.equal(await page.locator("#changes-button").textContent(), "1 new · 1 gone · 1 grew");
	await page.keyboard.press("x");
	const rows = await page.locator("#changes tr").allTextContents();
	assert.ok(rows.some((row) => row.startsWith("gonevanished job.py:3030.000.00-30.00")), rows.join("\n"));
	assert.ok(rows.some((row) => row.startsWith(`new${NEW} job.py:370.0025.00+25.00`)), rows.join("\n"));
	assert.ok(rows.some((row) => row.startsWith("grewparse job.py:1740.0045.00+5.00")), rows.join("\n"));
	await page.keyboard.press("Escape");
	assert.equal(await page.evaluate(() => window.hacked), undefined);
	clean();
});

test("facts and losses of both sides", async () => {
	await open();
	assert.match(await page.locator("#facts-button").textContent(), /1,000 → 2,000 samples · 9 lost/);
	await page.keyboard.press("s");
	const text = await page.locator("#facts").textContent();
	assert.match(text, /Before: before\.sampled\. After: after\.sampled/);
	assert.match(text, /before: lost: torn0.*after: lost: torn9/);
	await page.keyboard.press("Escape");
	clean();
});

test("on a phone what changed can be reached, too", async () => {
	await show("compared", ".html", {reducedMotion: "reduce", viewport: {width: 390, height: 844}, hasTouch: true, isMobile: true}, "willReadFrequently");
	for (const id of ["changes-button", "search", "theme", "help-button"]) {
		const {x, width} = await page.locator(`#${id}`).boundingBox();
		assert.ok(x >= 0 && x + width <= 390, id);
	}
	await page.locator("#changes-button").tap();
	assert.ok(await page.locator("#changes").isVisible());
	clean();
});

test("search, inverted, keys: all as with one profile", async () => {
	await open();
	await page.keyboard.press("/");
	await page.keyboard.type("parse");
	assert.equal(await page.locator("#matched").textContent(), "1 \u00b7 45.0 %");
	await page.keyboard.press("Enter");
	await page.keyboard.press("i");
	await settle();
	assert.ok(await named("parse"));
	await page.locator("#weight").selectOption(BEFORE);
	await settle();
	assert.ok(await named("vanished"), "inverted, it is a leaf of its own");
	for (const name of ["f", "l", "c", "w", "]", "ArrowDown", "Enter", "0", "d", "?"])
		await page.keyboard.press(name);
	clean();
});
