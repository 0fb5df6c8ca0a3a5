// SPDX-License-Identifier: Apache-2.0
// The flame graph SVG as a browser draws it: opened by itself, and as an image in a page, where no script and nothing from elsewhere would work.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";
import {asked, file, fresh, make, page, problems, show} from "./pages.mjs";

const shapes = ["hostile", "large", "deep", "one", "empty", "imported", "compared"];

make(shapes, ".svg");

const VIEW = {viewport: {width: 1220, height: 760}};
const open = (shape, options = {}) => show(shape, ".svg", {...VIEW, ...options});

// Draws a file onto a canvas, and says how many colours there are in all and how many pixels of a rectangle are dark.
async function drawn(shape, {x, y, width, height}) {
	await fresh(VIEW);
	const source = `data:image/svg+xml;base64,${readFileSync(file(shape, ".svg")).toString("base64")}`;
	return page.evaluate(async ({source, x, y, width, height}) => {
		const image = new Image();
		image.src = source;
		await image.decode();
		const canvas = document.createElement("canvas"), context = canvas.getContext("2d", {willReadFrequently: true});
		[canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
		context.drawImage(image, 0, 0);
		const colors = new Set(new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer));
		const box = context.getImageData(x, y, width, height).data;
		let ink = 0;
		for (let i = 0; i < box.length; i += 4)
			ink += box[i] + box[i + 1] + box[i + 2] < 240;
		return {colors: colors.size, ink, width: canvas.width, height: canvas.height};
	}, {source, x, y, width, height});
}

test("every shape is drawn, with text that can be seen", async () => {
	for (const shape of shapes) {
		const seen = await drawn(shape, {x: 10, y: 8, width: 300, height: 18});
		assert.equal(seen.width, 1200, shape);
		assert.ok(seen.height > 60 && seen.height < 9000, `${shape}: ${seen.height} px high`);
		assert.ok(seen.colors > 8, `${shape}: ${seen.colors} colours`);
		assert.ok(seen.ink > 60, `${shape}: ${seen.ink} pixels of ink in the title`);
	}
});

test("frames have their labels, and stand in one another", async () => {
	await open("hostile");
	const frames = await page.evaluate(() => Array.from(document.querySelectorAll("g"), (g) => {
		const box = g.querySelector("rect").getBoundingClientRect(), text = g.querySelector("text"), label = text?.getBoundingClientRect();
		return {title: g.querySelector("title").textContent, x: box.x, y: box.y, width: box.width, label: text?.textContent,
			fits: !label || label.x >= box.x && label.right <= box.right + 1 && label.y >= box.y - 2 && label.bottom <= box.bottom + 3,
			fill: getComputedStyle(g.querySelector("rect")).fill};
	}));
	assert.ok(frames.length > 30);
	for (const frame of frames)
		assert.ok(frame.fits, `the label of ${frame.title}`);
	for (const name of ["all", "serve", "Handler.handle", "dumps", "fib", "pause", "(other)"])
		assert.ok(frames.some((frame) => frame.title.startsWith(name)), name);
	assert.ok(frames.some((frame) => frame.title.startsWith("</script><script>window.hacked=1</script>")));
	const fills = new Set(frames.filter((frame) => frame.title.startsWith("fib (")).map((frame) => frame.fill));
	assert.equal(fills.size, 1, "one file, one colour");
	assert.equal(await page.evaluate(() => window.hacked), undefined);
	assert.deepEqual([problems, asked.length], [[], 1]);
});

test("light and dark", async () => {
	for (const [colorScheme, background] of [["light", "rgb(255, 255, 255)"], ["dark", "rgb(18, 22, 29)"]]) {
		await open("hostile", {colorScheme});
		assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".bg")).fill), background);
	}
});

test("two profiles: one picture by each width", async () => {
	await open("compared");
	const names = (id) => page.locator(`#${id} g title`).allTextContents().then((all) => all.map((title) => title.split(" ")[0]));
	assert.deepEqual(await names("after"), ["MainThread\nbefore,", "main", "parse", "steady", "</script>new"]);
	assert.deepEqual(await names("before"), ["MainThread\nbefore,", "main", "parse", "steady", "vanished"]);
	const fill = (id, name) => page.evaluate(([id, name]) => {
		const group = Array.from(document.querySelectorAll(`#${id} g`)).find((g) => g.querySelector("title").textContent.startsWith(name));
		return getComputedStyle(group.querySelector("rect")).fill.match(/\d+/g).map(Number);
	}, [id, name]);
	const [red, , notBlue] = await fill("after", "</script>new"), [notRed, , blue] = await fill("before", "vanished");
	assert.ok(red > notBlue + 60 && blue > notRed + 60);
	assert.deepEqual(problems, []);
});
