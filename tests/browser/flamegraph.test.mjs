// SPDX-License-Identifier: Apache-2.0
// Clicks through the flame graph in a real browser, from file://: node --test flamegraph.test.mjs. Pages come from make_profile, which
// `make browser` builds; what is in them is known.
import assert from "node:assert/strict";
import {statSync} from "node:fs";
import {test} from "node:test";
import {clean, file, make, page, problems, show, source} from "./pages.mjs";

const ROW = 21;

make(["hostile", "timed", "large", "deep", "empty", "imported", "ascend"], ".html", source);

const bare = (kind, options = {}) => show(kind, ".html", {reducedMotion: "reduce", ...options});

// The page with each thread by itself, in its main measure, by states.
async function open(kind, options = {}) {
	await bare(kind, options);
	for (const [id, value] of [["threads", "separate"], ["weight", "1"], ["color", "status"]])
		if (await page.locator(`#${id} option[value="${value}"]`).count() > 0)
			await page.locator(`#${id}`).selectOption(value);
	await page.locator("#scroll").focus();
	await settle();
}

const frames = () => page.evaluate(() => window.sampled.frames());
const named = async (name) => (await frames()).find((frame) => frame.name.startsWith(name));
const settle = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function point(frame, click) {
	const box = await page.locator("#canvas").boundingBox(), x = box.x + frame.x + frame.width / 2, y = box.y + frame.y + ROW / 2;
	await (click ? page.mouse.click(x, y) : page.mouse.move(x, y));
	await settle();
}

async function key(...names) {
	for (const name of names)
		await page.keyboard.press(name);
	await settle();
}

test("draws every level, and children lie within their parents", async () => {
	await open("hostile");
	const all = await frames(), root = all.find((frame) => frame.row === 0);
	assert.equal(root.name, "all");
	assert.ok(Math.abs(root.width - 1280) < 2);
	for (const frame of all.filter((each) => each.row > 0))
		assert.ok(all.some((above) => above.row === frame.row - 1 && above.x <= frame.x + 1 && above.x + above.width >= frame.x + frame.width - 1), frame.name);
	for (const name of ["MainThread", "serve", "Handler.handle", "dumps", "fib", "pause"])
		assert.ok(all.some((frame) => frame.name.startsWith(name)), name);
	const sum = all.filter((frame) => frame.row === 1).reduce((total, frame) => total + frame.value, 0);
	assert.ok(Math.abs(sum - root.value) < 1, "threads add up to all");
	clean();
});

test("hostile names are shown as text and run nowhere", async () => {
	await open("hostile");
	for (const frame of (await frames()).filter((each) => each.row > 0 && each.width > 5)) {
		await point(frame);
		assert.equal(await page.locator("#tip script, #tip img, #now script, #tip b").count(), 0);
	}
	await point(await named("</script>"));
	assert.equal(await page.locator("#tip h3").textContent(), "</script><script>window.hacked=1</script>");
	assert.match(await page.locator("#now").textContent(), /<\/script>/);
	assert.match(await page.title(), /<\/title><b>bold/);
	await page.locator("#search").fill("</script>");
	await page.locator("#facts-button").click();
	assert.equal(await page.evaluate(() => window.hacked), undefined);
	assert.equal(await page.locator("script").count(), 2);
	clean();
});

test("the policy stops script that is not the page's own", async () => {
	await open("hostile");
	await page.evaluate(() => {
		const script = document.createElement("script");
		script.textContent = "window.hacked = 2";
		document.body.append(script);
		document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked = 3'>");
	});
	await settle();
	assert.equal(await page.evaluate(() => window.hacked), undefined);
	assert.ok(problems.some((text) => /Content Security Policy/.test(text)));
});

test("tooltip tells self, total, states and source", async () => {
	await open("hostile");
	await point(await named("Pattern.match"));
	const tip = await page.locator("#tip").textContent();
	assert.match(tip, /core\.py:77/);
	assert.match(tip, /Total1\.01 s.*1,010 samples/);
	assert.match(tip, /Self1\.01 s/);
	assert.match(tip, /GIL held 69\.3 %.*Runnable without GIL 30\.7 %/);
	await page.locator("#threads").selectOption("thread:2");
	await settle();
	await point(await named("has_source"));
	const lines = await page.locator("#tip pre div").allTextContents();
	assert.equal(lines.length, 4);
	assert.match(await page.locator("#tip pre .here").textContent(), /^4 {4}time\.sleep\(1 < 2\) {2}# here$/);
	assert.match(lines[3], /'<\/script>'/);
	clean();
});

test("a click zooms in, the keyboard zooms out", async () => {
	await open("hostile");
	await point(await named("Handler.handle"), true);
	const zoomed = await named("Handler.handle");
	assert.ok(zoomed.width > 1270 && zoomed.x < 1);
	assert.ok((await named("MainThread")).width > 1270, "callers stay, as wide as the window");
	assert.equal(await named("pause"), undefined, "what lies beside is out of view");
	await page.locator("#reset").click();
	await settle();
	assert.ok(await named("pause"));
	assert.equal(await page.locator("#reset").isVisible(), false);
	await point(await named("dumps"), true);
	await key("Backspace");
	assert.ok((await named("Handler.handle")).width > 1270);
	await key("0");
	assert.ok(await named("pause"));
	clean();
});

test("arrows walk the tree, Enter zooms, Escape returns", async () => {
	await open("hostile");
	const selected = () => page.locator("#now b").textContent();
	await key("ArrowDown");
	assert.equal(await selected(), "all");
	await key("ArrowDown");
	assert.match(await selected(), /^MainThread/);
	await key("ArrowRight");
	assert.match(await selected(), /^worker/);
	await key("ArrowLeft", "ArrowDown", "ArrowDown");
	assert.equal(await selected(), "Handler.handle");
	await key("Enter");
	assert.ok((await named("Handler.handle")).width > 1270);
	await key("ArrowUp");
	assert.equal(await selected(), "serve");
	await key("Escape");
	assert.ok(await named("pause"));
	clean();
});

test("search marks what matches and tells its share", async () => {
	await open("hostile");
	await key("/");
	await page.keyboard.type("fib");
	const total = (await frames())[0].value, fib = (await frames()).find((frame) => frame.name === "fib").value;
	assert.equal(await page.locator("#matched").textContent(), `1 \u00b7 ${(100 * fib / total).toFixed(1)} %`, "recursion counts once");
	await key("Enter");
	assert.equal(await page.locator("#now b").textContent(), "fib");
	await key("i");
	assert.equal(await page.locator("#matched").textContent(), `1 \u00b7 ${(100 * fib / total).toFixed(1)} %`, "the share is the same inverted");
	await page.locator("#search").fill("/^(fib|pause)$/");
	assert.match(await page.locator("#matched").textContent(), /^2 \u00b7 [1-9]/, "two functions");
	await page.locator("#search").fill("/(/");
	assert.equal(await page.locator("#search").evaluate((input) => input.classList.contains("bad")), true);
	assert.equal(await page.locator("#matched").textContent(), "bad pattern");
	assert.match(await page.locator("#search").getAttribute("title"), /Unterminated group/);
	await page.locator("#search").focus();
	await key("Escape");
	assert.equal(await page.locator("#search").inputValue(), "");
	await page.locator("#search").fill("no such function");
	assert.equal(await page.locator("#matched").textContent(), "0 \u00b7 0.00 %");
	clean();
});

test("what a search finds is a list: keys and clicks zoom to it", async () => {
	await open("hostile");
	const items = page.locator("#hit-list li"), texts = () => items.allTextContents();
	const all = (await frames())[0].value;
	await key("/");
	await page.keyboard.type("dumps");
	await page.locator("#search").fill("/^(fib|pause|dumps)$/");
	await page.locator("#search").focus();
	const found = await texts();
	assert.equal(found.length, 3);
	const shares = found.map((text) => Number(/([\d.]+) %$/.exec(text)[1]));
	assert.deepEqual(shares, shares.toSorted((a, b) => b - a), "the most first");
	const fib = found.find((text) => text.startsWith("fib "));
	assert.ok(fib.endsWith(`${(100 * (await named("fib")).value / all).toFixed(1)} %`), `recursion counts once: ${fib}`);
	await key("ArrowUp");
	assert.equal(await page.locator("#search").getAttribute("aria-activedescendant"), "hit-2", "the last one comes before the first");
	await key("ArrowDown", "ArrowDown");
	assert.equal(await page.locator("#search").getAttribute("aria-activedescendant"), "hit-1");
	assert.equal(await page.locator("#hit-list [aria-selected=true]").textContent(), found[1]);
	await key("Enter");
	assert.equal(await page.locator("#hits").isVisible(), false);
	assert.equal(await page.locator("#now b").textContent(), found[1].split(" ")[0]);
	assert.ok((await named(found[1].split(" ")[0])).width > 1270);
	await page.locator("#search").focus();
	await items.filter({hasText: /^pause/}).click();
	await settle();
	assert.ok((await named("pause")).width > 1270);
	assert.equal(await page.locator("#hits").isVisible(), false);
	await key("Escape", "0", "i");
	await page.locator("#search").fill("Handler.handle");
	await key("ArrowDown", "Enter");
	assert.equal((await named("Handler.handle")).row, 1, "inverted, where stacks end in it");
	assert.ok((await named("Handler.handle")).width > 1270);
	await page.locator("#search").fill("/^serve$/");
	await key("ArrowDown", "Enter");
	assert.equal(await page.locator("#inverted").getAttribute("aria-pressed"), "false", "no stack ends in it: shown upright");
	assert.ok((await named("serve")).width > 1270);
	await page.locator("#search").fill("no such function");
	assert.equal(await page.locator("#hits").isVisible(), false);
	clean();
});

test("a search that finds much lists a hundred", async () => {
	await open("large");
	await page.locator("#search").fill("/./");
	assert.equal(await page.locator("#hit-list li").count(), 100);
	assert.match(await page.locator("#hits-left").textContent(), /^and [1-9][\d,]* more$/);
	clean();
});

test("inverted: leaves first, and the same sum", async () => {
	await open("hostile");
	const total = (await frames())[0].value;
	await page.locator("#inverted").click();
	const first = (await frames()).filter((frame) => frame.row === 1);
	const iterencode = first.find((frame) => frame.name === "JSONEncoder.iterencode");
	assert.equal(iterencode.value, 1160e6);
	assert.equal((await frames()).find((frame) => frame.row === 2 && frame.x === iterencode.x).name, "dumps");
	const below = first.reduce((sum, frame) => sum + frame.value, 0);
	assert.ok(Math.abs(below - (total - 200e6)) < 1, "all but the samples without a Python frame");
	await page.locator("#callers").click();
	assert.equal((await frames())[0].value, total);
	clean();
});

test("by line splits what by function joins", async () => {
	await open("hostile");
	const dumps = async () => (await frames()).filter((frame) => frame.name === "dumps");
	assert.equal((await dumps()).length, 1);
	await key("l");
	assert.deepEqual((await dumps()).map((frame) => frame.place.split(":").pop()).sort(), ["231", "238"]);
	assert.equal(await page.locator("#by-line").getAttribute("aria-pressed"), "true");
	await page.locator("#by-function").click();
	assert.equal((await dumps()).length, 1);
	clean();
});

test("icicle and flame", async () => {
	await open("hostile");
	const above = async () => (await named("serve")).y < (await named("dumps")).y;
	assert.equal(await above(), true);
	await key("f");
	assert.equal(await above(), false);
	await point(await named("dumps"));
	assert.equal(await page.locator("#tip h3").textContent(), "dumps");
	await page.locator("#icicle").click();
	assert.equal(await above(), true);
	clean();
});

test("threads one by one, merged, and measures", async () => {
	await open("hostile");
	const options = await page.locator("#threads option").allTextContents();
	assert.equal(options.length, 5);
	assert.ok(options.includes("worker </option><script>window.hacked=1</script> (4712)"));
	assert.ok(options.includes("interpreter 2 / thread 4713"));
	const total = (await frames())[0].value;
	await page.locator("#threads").selectOption("merged");
	assert.equal((await frames())[0].value, total);
	assert.equal((await frames()).filter((frame) => frame.row === 1 && frame.name === "serve").length, 1, "one serve of two threads");
	await page.locator("#threads").selectOption("thread:0");
	assert.match((await frames())[0].name, /^MainThread/);
	assert.equal(await named("fib"), undefined);
	const shares = {1: 4020e6, 0: 4020, 3: 1860e6, 4: 260e6, 5: 1500e6, 7: 120e6};
	for (const [weight, value] of Object.entries(shares)) {
		await page.locator("#weight").selectOption(weight);
		assert.equal((await frames())[0].value, value);
	}
	clean();
});

test("CPU time, where the kernel told it", async () => {
	const choices = () => page.locator("#weight option").allTextContents();
	await open("hostile");
	assert.ok(!(await choices()).includes("CPU time"));
	await open("timed");
	assert.ok((await choices()).includes("CPU time") && (await choices()).includes("Waiting for a CPU"));
	await page.locator("#threads").selectOption("thread:0");
	for (const [weight, value] of Object.entries({1: 4020e6, 9: 2170e6 * 0.7, 10: 217e6})) {
		await page.locator("#weight").selectOption(weight);
		assert.equal(Math.round((await frames())[0].value), Math.round(value));
	}
	clean();
});

test("opens with all threads as one, by CPU time where that is known, by category where one state says little", async () => {
	const shown = async () => Promise.all(["threads", "weight", "color"].map((id) => page.locator(`#${id}`).inputValue()));
	await bare("timed");
	assert.deepEqual(await shown(), ["merged", "9", "category"]);
	assert.ok(!(await named("MainThread")), "no level of threads");
	assert.ok(!(await named("pause")), "what sleeps has no CPU time");
	await bare("hostile");
	assert.deepEqual(await shown(), ["merged", "1", "status"]);
	clean();
});

test("what the Ascend profiler tells apart has colours of its own, which only its pages explain", async () => {
	const legend = () => page.locator("#legend > span").allTextContents(), own = ["CANN", "Python framework", "Python", "Unknown"];
	await open("hostile");
	await page.locator("#color").selectOption("category");
	assert.ok(!(await legend()).some((label) => own.includes(label)), "elsewhere there are none");
	await open("ascend");
	assert.equal(await page.locator("#color").inputValue(), "category");
	for (const label of own)
		assert.ok((await legend()).includes(label), label);
	const colors = await page.evaluate(() => {
		const canvas = document.getElementById("canvas"), scale = canvas.width / canvas.clientWidth;
		const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
		return window.sampled.frames().filter((frame) => frame.row > 0).map((frame) => {
			const at = 4 * (Math.round((frame.y + 4) * scale) * canvas.width + Math.round((frame.x + frame.width - 4) * scale));
			return data.slice(at, at + 3).join();
		});
	});
	assert.deepEqual([colors.length, new Set(colors).size], [4, 4], colors.join(" "));
	clean();
});

test("on a phone: all controls can be reached, and a touch tells what a second one zooms to", async () => {
	await bare("timed", {viewport: {width: 390, height: 844}, hasTouch: true, isMobile: true});
	for (const id of ["search", "theme", "help-button", "facts-button"]) {
		const {x, width, y, height} = await page.locator(`#${id}`).boundingBox();
		assert.ok(x >= 0 && x + width <= 390 && y >= 0 && y + height <= 844, id);
	}
	assert.ok((await page.locator("#scroll").boundingBox()).y < 844 * 0.22, "the graph has the room");
	for (const id of ["by-line", "legend"]) {
		await page.locator(`#${id}`).evaluate((node) => node.scrollIntoView());
		assert.ok((await page.locator(`#${id}`).boundingBox()).x < 390, id);
	}
	const frame = await named("Handler.handle"), box = await page.locator("#canvas").boundingBox();
	const touch = async () => {
		await page.touchscreen.tap(box.x + frame.x + 10, box.y + frame.y + ROW / 2);
		await settle();
	};
	await touch();
	assert.match(await page.locator("#tip").textContent(), /Handler\.handle/);
	assert.equal(await page.evaluate(() => window.sampled.view.zoomed), 0);
	await touch();
	assert.notEqual(await page.evaluate(() => window.sampled.view.zoomed), 0);
	clean();
});

test("colours and legend", async () => {
	await open("hostile");
	const legend = () => page.locator("#legend").textContent();
	assert.match(await legend(), /GIL held.*GIL awaited.*Idle/);
	const shares = (await legend()).match(/[\d.]+(?= %)/g).map(Number);
	assert.ok(Math.abs(shares.reduce((x, y) => x + y, 0) - 100) < 0.3, `states add up to the whole: ${shares}`);
	const picture = () => page.locator("#canvas").evaluate((canvas) => canvas.toDataURL());
	const seen = new Set([await picture()]);
	await key("c");
	assert.match(await legend(), /Application.*Packages.*Standard library/);
	seen.add(await picture());
	await page.locator("#color").selectOption("file");
	seen.add(await picture());
	await key("d");
	seen.add(await picture());
	assert.equal(seen.size, 4, "each looks different");
	assert.equal(await page.locator("html").evaluate((html) => html.hasAttribute("data-dark")), true);
	clean();
});

test("follows the system's dark mode", async () => {
	await open("hostile", {colorScheme: "dark"});
	assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(18, 22, 29)");
	await page.emulateMedia({colorScheme: "light"});
	await settle();
	assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
});

test("narrow frames are merged in sight, and a click leads to them", async () => {
	await open("hostile");
	assert.equal(await page.locator("#other-note").textContent(), "3,000 narrow frames merged into (other)");
	const other = await named("(other)");
	assert.equal(Math.round(other.value), 3000 * 20000);
	await point(other);
	assert.match(await page.locator("#tip").textContent(), /3,000 frames too narrow/);
	for (let i = 0; i < 4 && !await named("tiny_"); i++)
		await point((await frames()).filter((frame) => frame.name === "(other)").pop(), true);
	assert.ok(await named("tiny_"));
	clean();
});

test("sampling facts and losses", async () => {
	await open("hostile");
	assert.match(await page.locator("#facts-button").textContent(), /11,499 samples · 5\.00 s · 7 lost/);
	await key("s");
	const facts = await page.locator("#facts table").first().textContent();
	for (const text of ["rate asked1000 Hz", "rate reached1000 Hz", "lost: torn7", "ticks late12", "thread time not sampled0 s", "samples in this profile11,499"])
		assert.ok(facts.includes(text), `${text} in ${facts}`);
	assert.equal(await page.locator("#facts tr.loss").count(), 2);
	await key("Escape");
	await key("?");
	assert.equal(await page.locator("#help tr").count(), 19);
	clean();
});

test("facts by thread, and what kind of sampling it was", async () => {
	await open("hostile");
	await key("s");
	const lead = await page.locator("#facts-lead").textContent();
	assert.match(lead, /^Mode wall; interval 1\.0 ms; rate asked 1000 Hz, reached 1000 Hz; errors 0\.061 %, ticks missed 0\.00 %\. Free-threaded: no\./);
	const rows = await page.locator("#thread-facts tr").evaluateAll((all) => all.map((row) => Array.from(row.cells, (cell) => cell.textContent)));
	assert.deepEqual(rows[0], ["thread", "samples", "GIL held", "GIL awaited", "runnable without GIL", "idle", "unknown", "GC", "exception"]);
	// MainThread: 4,020 samples, of which 1,860 hold the GIL, 260 await it, 310 run without it, 1,500 idle, 90 unknown, 120 in the collector.
	assert.deepEqual(rows[1].slice(1), ["4,020", "46.3 %", "6.47 %", "7.71 %", "37.3 %", "2.24 %", "2.99 %", "0.00 %"]);
	assert.equal(rows.length, 4);
	clean();
});

test("an imported profile: values of its own names and units, no states, no sampling", async () => {
	await open("imported");
	assert.deepEqual(await page.locator("#weight option").allTextContents(), ["Alloc</script><b>", "Samples", "Objects"]);
	assert.deepEqual(await page.locator("#color option").allTextContents(), ["Category", "File"]);
	assert.equal((await named("grow")).place, "/srv/data.py", "no line is known");
	await point(await named("grow"));
	assert.match(await page.locator("#tip").textContent(), /Total3\.00 KiB75\.0 %6 samples/);
	assert.equal(await page.locator("#tip .mix").count(), 0);
	await page.locator("#weight").selectOption("2");
	await settle();
	assert.match(await page.locator("#now").textContent(), /12 widgets<i>/);
	assert.equal(await page.locator("#facts-button").textContent(), "8 samples");
	await key("s");
	assert.match(await page.locator("#facts-lead").textContent(), /^Imported: .* Free-threaded: unknown\.$/);
	assert.match(await page.locator("#facts table").first().textContent(), /records skipped <img src=x onerror=window\.hacked=1>3/);
	assert.match(await page.locator("#title").textContent(), /^imported profile$/);
	await key("Escape", "i", "l", "c", "f");
	assert.equal(await page.evaluate(() => window.hacked), undefined);
	clean();
});

test("no samples: says so", async () => {
	await open("empty");
	assert.equal(await page.locator("#empty").textContent(), "No samples were taken.");
	await key("i", "f", "l", "c", "w", "]", "ArrowDown", "Enter", "0", "n", "/");
	await page.keyboard.type("x");
	clean();
});

test("16,384 deep: scrolls, inverts, selects", async () => {
	await open("deep");
	assert.ok((await frames()).length < 60, "only what is in view");
	await page.evaluate(() => document.getElementById("scroll").scrollTo(0, 1e9));
	await settle();
	const last = (await frames()).reduce((a, b) => b.row > a.row ? b : a);
	assert.ok(last.row > 16300, `row ${last.row}`);
	assert.equal(last.name, "(other)", "the last frames hold too few samples to be a pixel wide, and are not dropped");
	await key("i", "f", "i", "Enter");
	clean();
});

test("100,000 nodes: under 5 MiB, and only what is in view is drawn", async () => {
	assert.ok(statSync(file("large", ".html")).size < 5 << 20);
	await open("large");
	const times = {withReading: await page.evaluate(() => window.sampled.loadMs)};
	for (const name of ["open", "l", "i", "w", "]"]) {
		if (name !== "open")
			await key(name);
		times[name] = await page.evaluate(() => window.sampled.lastDrawMs);
		const drawn = (await frames()).length;
		assert.ok(drawn > 1 && drawn < 20000, `${name}: ${drawn} frames are drawn`);
	}
	console.log(`# ms to build and draw: ${JSON.stringify(times)}`); // no bound: the machine may be busy with other things
	clean();
});
