// SPDX-License-Identifier: Apache-2.0
// What happens when: building, zooming, searching, keys, pointer. window.sampled is there for tests and for the curious.
let pending = 0, animation = 0;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

function paint() {
	cancelAnimationFrame(pending);
	pending = requestAnimationFrame(() => {
		draw();
		showNow();
	});
}

function paintNow() {
	cancelAnimationFrame(pending);
	draw();
	showNow();
}

function pickedThreads() {
	if (view.threads.startsWith("process:"))
		return threads.filter((thread) => thread.process === Number(view.threads.slice(8)));
	if (view.threads.startsWith("thread:"))
		return threads.filter((thread) => thread.index === Number(view.threads.slice(7)));
	return threads;
}

function scrollToRoot() {
	stretch();
	scroller.scrollTop = view.flame ? scroller.scrollHeight : 0;
	paintNow();
}

// Builds the tree anew and draws it, and says how long that took.
function rebuild() {
	const begun = performance.now();
	const several = view.threads === "separate" || view.threads.startsWith("process:");
	const picked = pickedThreads(), upright = new UprightTree(picked, view.byLine, several && !view.inverted);
	view.rootName = view.threads.startsWith("thread:") && picked.length === 1 ? picked[0].label : "all";
	view.upright = upright;
	view.tree = view.inverted ? new InvertedTree(upright) : upright;
	view.zoomed = 0;
	view.selected = -1;
	view.hovered = null;
	view.from = 0;
	view.to = Math.max(valueOf(view.tree, 0), 1e-9);
	search(false);
	showControls();
	showTip(null);
	scrollToRoot();
	window.sampled.lastDrawMs = performance.now() - begun;
}

function showControls() {
	const pressed = {icicle: !view.flame, flame: view.flame, callers: !view.inverted, inverted: view.inverted, "by-function": !view.byLine, "by-line": view.byLine};
	for (const id in pressed)
		element(id).setAttribute("aria-pressed", pressed[id]);
	element("threads").value = view.threads;
	element("weight").value = view.weight;
	element("color").value = view.color;
	const empty = valueOf(view.tree, 0) <= 0;
	element("empty").hidden = !empty;
	element("empty").textContent = threads.every((thread) => thread.samples === 0) ? "No samples were taken." : "Nothing here for this measure.";
	showLegend();
}

function glide(from, to) {
	cancelAnimationFrame(animation);
	const first = {from: view.from, to: view.to}, begun = performance.now(), lasts = stillness.matches ? 0 : 140;
	const step = (now) => {
		const part = lasts === 0 ? 1 : Math.min(1, (now - begun) / lasts), eased = 1 - (1 - part) ** 3;
		view.from = first.from + (from - first.from) * eased;
		view.to = first.to + (to - first.to) * eased;
		if (part >= 1)
			[view.from, view.to] = [from, to];
		paintNow();
		if (part < 1)
			animation = requestAnimationFrame(step);
	};
	step(begun);
}

function zoom(node) {
	const {tree} = view;
	placeNode(tree, node);
	view.zoomed = node;
	view.hovered = null;
	showTip(null);
	glide(tree.start[node], tree.start[node] + valueOf(tree, node));
	reveal(node);
}

// Scrolls so that a node's row is in sight.
function reveal(node) {
	stretch();
	const y = rowPlacer()(view.tree.depth[node]);
	if (y < 0)
		scroller.scrollTop += y - ROW;
	else if (y + ROW > scroller.clientHeight)
		scroller.scrollTop += y + 2 * ROW - scroller.clientHeight;
	paint();
}

function select(node) {
	const {tree} = view;
	view.selected = node;
	view.hovered = null;
	placeNode(tree, node);
	const start = tree.start[node], end = start + valueOf(tree, node);
	if (end <= view.from || start >= view.to)
		zoom(tree.parent[node]);
	reveal(node);
}

function nextMatch(step) {
	const found = view.boxes.filter((box) => isMatch(box.node)).sort((a, b) => a.row - b.row || a.x - b.x);
	if (found.length === 0)
		return;
	const at = found.findIndex((box) => box.node === view.selected);
	select(found[at < 0 ? (step > 0 ? 0 : found.length - 1) : (at + step + found.length) % found.length].node);
}

function move(direction) {
	const {tree, weight} = view, node = view.selected >= 0 ? view.selected : view.zoomed;
	if (view.selected < 0)
		return select(node);
	if (direction === "out" && node > 0)
		return select(tree.parent[node]);
	if (direction === "in") {
		const list = tree.children(node, weight);
		if (list.length > 0 && valueOf(tree, list[0]) > 0)
			select(list[0]);
	} else if (node > 0 && direction !== "out") {
		const list = Array.from(tree.children(tree.parent[node], weight)).filter((child) => valueOf(tree, child) > 0);
		const to = list[list.indexOf(node) + (direction === "right" ? 1 : -1)];
		if (to !== undefined)
			select(to);
	}
}

function setWeight(weight) {
	view.weight = weight;
	rebuild();
}

function setColor(mode) {
	view.color = mode;
	showControls();
	paintNow();
}

function setFlame(on) {
	view.flame = on;
	showControls();
	scrollToRoot();
}

function toggle(name, on) {
	if (view[name] === on)
		return;
	view[name] = on;
	rebuild();
}

function cycle(list, current, step) {
	return list[(list.indexOf(current) + step + list.length) % list.length];
}

function escape() {
	if (element("search").value) {
		element("search").value = "";
		search();
	} else if (view.zoomed !== 0 || view.to - view.from < valueOf(view.tree, 0)) {
		zoom(0);
	} else {
		view.selected = -1;
		paintNow();
	}
	scroller.focus();
}

const keys = {
	ArrowLeft: () => move("left"), ArrowRight: () => move("right"),
	ArrowUp: () => move(view.flame ? "in" : "out"), ArrowDown: () => move(view.flame ? "out" : "in"),
	Enter: () => view.selected >= 0 && zoom(view.selected), Backspace: () => zoom(view.tree.parent[view.zoomed]),
	0: () => zoom(0), Home: () => zoom(0), Escape: escape,
	"/": () => element("search").select(), n: () => nextMatch(1), N: () => nextMatch(-1),
	i: () => toggle("inverted", !view.inverted), f: () => setFlame(!view.flame), l: () => comparison || toggle("byLine", !view.byLine), // two versions have no lines in common
	c: () => setColor(cycle(Array.from(element("color").options, (option) => option.value), view.color, 1)),
	x: () => comparison && show("changes"),
	w: () => setWeight(cycle(Array.from(element("weight").options, (option) => Number(option.value)), view.weight, 1)),
	"[": () => toggle("threads", cycle(Array.from(element("threads").options, (option) => option.value), view.threads, -1)),
	"]": () => toggle("threads", cycle(Array.from(element("threads").options, (option) => option.value), view.threads, 1)),
	d: () => setTheme(!dark), s: () => show("facts"), "?": () => show("help"),
};

// The button at a dialog's end takes the focus: back to its beginning.
function show(id) {
	element(id).showModal();
	element(id).scrollTop = 0;
}

function setTheme(on) {
	setDark(on);
	if (view.tree) {
		showLegend();
		paintNow();
	}
}

function onKey(event) {
	if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const field = event.target.matches("input, select");
	if (event.target.id === "search" && (event.key === "Enter" || event.key === "ArrowDown" || event.key === "ArrowUp")) {
		event.preventDefault();
		if (event.key !== "Enter")
			return chooseHit(event.key === "ArrowDown" ? 1 : -1);
		return chosen >= 0 ? zoomHit(chosen) : leaveSearch(() => nextMatch(1));
	}
	if ((field && event.key !== "Escape") || (event.target.matches("button") && event.key === "Enter") || !Object.hasOwn(keys, event.key))
		return;
	event.preventDefault();
	keys[event.key]();
}

let drag = null;
function onPointer(event) {
	const {left, top} = canvas.getBoundingClientRect();
	if (drag) {
		const all = valueOf(view.tree, 0), span = view.to - view.from, moved = (drag.x - event.clientX) / canvas.clientWidth * span;
		drag.moved = drag.moved || Math.abs(drag.x - event.clientX) > 4;
		if (drag.moved && span < all) {
			view.from = Math.max(0, Math.min(all - span, drag.from + moved));
			view.to = view.from + span;
			showTip(null);
			return paint();
		}
	}
	const box = boxAt(event.clientX - left, event.clientY - top);
	const same = box && view.hovered && box.node === view.hovered.node && box.parent === view.hovered.parent;
	view.hovered = box;
	canvas.classList.toggle("over", Boolean(box));
	showTip(box, event.clientX, event.clientY);
	if (!same)
		paint();
}

function onClick(event) {
	const {left, top} = canvas.getBoundingClientRect(), box = boxAt(event.clientX - left, event.clientY - top);
	const moved = drag && drag.moved;
	drag = null;
	if (!box || moved)
		return;
	if (box.node === OTHER)
		return zoomOther(box);
	if (event.pointerType === "touch" && view.selected !== box.node) { // nothing hovers: the first touch tells, the second zooms
		view.selected = box.node;
		paintNow();
		return showTip(box, event.clientX, event.clientY);
	}
	view.selected = box.node;
	zoom(box.node);
}

// Into the widest of the merged ones: far enough that it can be read, which always leads on.
function zoomOther(box) {
	const {tree} = view, list = tree.children(box.parent, view.weight), first = list[list.length - box.count - zeros(list)];
	const wide = valueOf(tree, first), start = tree.start[first];
	view.zoomed = box.parent;
	view.selected = -1;
	view.hovered = null;
	showTip(null);
	glide(start, start + Math.min(box.value, wide * canvas.clientWidth / 60));
}

// How many at a list's end have nothing of the measure, and so no width.
function zeros(list) {
	let count = 0;
	while (count < list.length && valueOf(view.tree, list[list.length - 1 - count]) <= 0)
		count++;
	return count;
}

function onWheel(event) {
	if (!event.ctrlKey && !event.metaKey)
		return;
	event.preventDefault();
	const all = valueOf(view.tree, 0), span = view.to - view.from, part = (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth;
	const wide = Math.min(all, Math.max(all * 1e-9, span * Math.exp(event.deltaY * 0.004))), at = view.from + part * span;
	view.from = Math.max(0, Math.min(all - wide, at - part * wide));
	view.to = view.from + wide;
	view.zoomed = 0;
	paint();
}

// What a page opens with: CPU time where it is known, else the main measure, so that sleeping threads do not come first; and where one state has nearly
// all of the time, whose colour would say nothing, colours by category.
function chooseView(sums) {
	const states = statesOf(sums, 0), whole = states.reduce((a, b) => a + b, 0);
	view.weight = sums[MAIN] > 0 || comparison ? MAIN : SAMPLES;
	if (comparison)
		return;
	if (isOwn[CPU] && sums[CPU] > 0)
		view.weight = CPU;
	if (view.weight === CPU || Math.max(...states) > 0.6 * whole)
		view.color = "category";
}

function fillPickers() {
	const add = (to, value, text) => to.append(new Option(text, value));
	const picker = element("threads");
	if (threads.length !== 1) {
		add(picker, "merged", `All ${threads.length} threads, merged`);
		add(picker, "separate", "All threads, one by one");
	} else {
		view.threads = `thread:${threads[0].index}`;
	}
	if (severalProcesses)
		data.processes.forEach(([pid, name], i) => add(picker, `process:${i}`, `Process ${pid} ${cleanText(name).slice(0, 60)}`));
	for (const thread of threads)
		add(picker, `thread:${thread.index}`, cleanText(thread.label).slice(0, 80));
	const sums = new Float64Array(VALUES);
	for (const thread of threads)
		for (let i = 0; i < thread.self.length; i++)
			sums[i % VALUES] += thread.self[i];
	for (const {value, label} of WEIGHTS)
		if (sums[value] > 0 || value === MAIN || comparison)
			add(element("weight"), value, label);
	element("by-line").parentElement.hidden = comparison !== null;
	chooseView(sums);
	for (const [value, label, there] of [["change", "Change", comparison], ["status", "Status", hasStates], ["category", "Category", true], ["file", "File", true]])
		if (there)
			add(element("color"), value, label);
}

function listen() {
	const on = (id, type, what) => element(id).addEventListener(type, what);
	on("threads", "change", (event) => toggle("threads", event.target.value));
	on("weight", "change", (event) => setWeight(Number(event.target.value)));
	on("color", "change", (event) => setColor(event.target.value));
	on("icicle", "click", () => setFlame(false));
	on("flame", "click", () => setFlame(true));
	on("callers", "click", () => toggle("inverted", false));
	on("inverted", "click", () => toggle("inverted", true));
	on("by-function", "click", () => toggle("byLine", false));
	on("by-line", "click", () => toggle("byLine", true));
	on("reset", "click", () => zoom(0));
	on("theme", "click", () => setTheme(!dark));
	on("facts-button", "click", () => show("facts"));
	on("help-button", "click", () => show("help"));
	on("changes-button", "click", () => show("changes"));
	for (const id of ["facts", "help", "changes"]) // a click beside a dialog closes it
		on(id, "click", (event) => event.target === element(id) && element(id).close());
	on("search", "input", () => search());
	on("search", "focus", showHits);
	on("search", "blur", showHits);
	on("hits", "pointerdown", (event) => event.preventDefault()); // the field keeps the focus
	on("hits", "click", onHit);
	document.addEventListener("keydown", onKey);
	canvas.addEventListener("pointerdown", (event) => drag = {x: event.clientX, from: view.from, moved: false});
	addEventListener("pointerup", (event) => event.target === canvas || (drag = null));
	canvas.addEventListener("pointermove", onPointer);
	canvas.addEventListener("pointerleave", () => { view.hovered = null; showTip(null); paint(); });
	canvas.addEventListener("click", onClick);
	canvas.addEventListener("wheel", onWheel, {passive: false});
	scroller.addEventListener("scroll", () => { showTip(null); paint(); });
	addEventListener("resize", paint);
	darkQuery.addEventListener("change", () => setTheme(darkQuery.matches));
}

window.sampled = {
	lastDrawMs: 0, // the last time that a tree was built and drawn
	loadMs: 0,     // all the page took, with reading its data
	view, zoom, search,
	// What is drawn, for tests: name, place, rectangle in the canvas.
	frames: () => view.boxes.map((box) => ({
		name: box.node === OTHER ? "(other)" : labelOf(view.tree, box.node), place: box.node === OTHER ? "" : placeOf(view.tree, box.node, true),
		x: box.x, y: box.y, width: box.end - box.x, height: ROW, row: box.row,
		value: box.node === OTHER ? box.value : valueOf(view.tree, box.node), self: box.node === OTHER ? 0 : view.tree.self[box.node * VALUES + view.weight],
	})),
};

setDark(darkQuery.matches);
fillTitle();
fillFacts();
fillChanges();
fillHelp();
fillPickers();
listen();
rebuild();
window.sampled.loadMs = performance.now() - loadStart;
