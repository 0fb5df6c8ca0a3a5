// SPDX-License-Identifier: Apache-2.0
// Drawing: the part of the tree that is in view, onto a canvas the size of the window; boxes[] remembers what was drawn where.
const ROW = 21, LEAST_PX = 1, LABEL_PX = 26, OTHER = -2;
const canvas = document.getElementById("canvas"), context = canvas.getContext("2d", {alpha: false});
const scroller = document.getElementById("scroll"), spacer = document.getElementById("spacer");

const view = {
	tree: null, weight: MAIN, color: comparison ? "change" : hasStates ? "status" : "category", flame: false, inverted: false, byLine: false, threads: comparison ? "separate" : "merged", rootName: "all",
	from: 0, to: 1,                        // the visible part of the root's width, in the unit of the weight
	zoomed: 0, selected: -1, hovered: null, // nodes; hovered is a box
	matches: null,                         // by key: 1 matches the search
	boxes: [], rows: new Map(), merged: 0, mergedWidth: 0,
};

const labelFont = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const widths = new Map();
function textWidth(text) {
	let width = widths.get(text);
	if (width === undefined) {
		if (widths.size > 50000)
			widths.clear();
		widths.set(text, width = context.measureText(text).width);
	}
	return width;
}

// Characters that would reorder or break the label are shown as what they are: not text.
const cleanText = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, "\ufffd");

// Text cut to a width; "" when not even three characters fit.
function fitText(text, room) {
	if (text.length > 400)
		text = text.slice(0, 400) + "\u2026";
	const width = textWidth(text);
	if (width <= room)
		return text;
	let keep = Math.floor(text.length * room / width);
	while (keep > 2) {
		const cut = text.slice(0, keep).trimEnd() + "\u2026";
		if (context.measureText(cut).width <= room)
			return cut;
		keep--;
	}
	return "";
}

function labelOf(tree, node) {
	const key = tree.key[node];
	if (key === ALL)
		return view.rootName;
	if (key < 0)
		return threads.find((thread) => thread.index === -2 - key).label;
	return nameOf(tree.byLine ? symbolOf(key) : key);
}

function placeOf(tree, node, whole) {
	const key = tree.key[node];
	if (key < 0)
		return "";
	const symbol = tree.byLine ? symbolOf(key) : key, file = fileOf(symbol), module = moduleOf(symbol);
	if (!file)
		return whole ? module : "";
	const line = tree.byLine ? lineOf(key) : firstLineOf(symbol);
	return `${whole ? file : baseName(file)}${line ? `:${line}` : ""}${whole && module ? ` in ${module}` : ""}`;
}

const valueOf = (tree, node, value = view.weight) => tree.total[node * VALUES + value];
const contentRows = () => view.tree.depth[view.zoomed] + view.tree.height[view.zoomed] + 1;

// The y of a row's top in the canvas: a function of the row, to be asked for anew when something scrolled.
function rowPlacer() {
	const up = view.flame, from = scroller.scrollTop;
	const first = up ? Math.max(contentRows() * ROW + 8, scroller.clientHeight) - ROW - 4 : 4;
	return (row) => (up ? first - row * ROW : first + row * ROW) - from;
}

// Makes the starts of a node and of what lies above it valid for the present weight.
function placeNode(tree, node) {
	const path = [];
	for (let at = node; at > 0; at = tree.parent[at])
		path.push(tree.parent[at]);
	while (path.length > 0)
		tree.children(path.pop(), view.weight);
}

let hatch = null;
function otherFill() {
	if (!hatch || hatch.dark !== dark) {
		const tile = document.createElement("canvas");
		tile.width = tile.height = 6;
		const pen = tile.getContext("2d");
		pen.fillStyle = dark ? "#2a313b" : "#eceff3";
		pen.fillRect(0, 0, 6, 6);
		pen.strokeStyle = dark ? "#556170" : "#aeb8c4";
		pen.lineWidth = 1.2;
		pen.beginPath();
		for (const shift of [-6, 0, 6]) {
			pen.moveTo(shift - 1, 7);
			pen.lineTo(shift + 7, -1);
		}
		pen.stroke();
		hatch = {dark, fill: context.createPattern(tile, "repeat")};
	}
	return hatch.fill;
}

// Collects the boxes in view into view.boxes: no canvas is touched, so that a test can ask for them as well.
function layout(width, height) {
	const {tree, weight, from, to} = view, scale = width / (to - from);
	const boxes = view.boxes = [], stack = [0], rowTop = rowPlacer();
	view.merged = view.mergedWidth = 0;
	tree.start[0] = 0;
	while (stack.length > 0) {
		const node = stack.pop(), row = tree.depth[node], y = rowTop(row);
		const x = (tree.start[node] - from) * scale, w = valueOf(tree, node) * scale;
		if (y > -ROW && y < height)
			boxes.push({node, x: Math.max(x, 0), end: Math.min(x + w, width), y, row});
		if (view.flame ? y <= 0 : y + ROW >= height)
			continue; // what lies further out is out of sight
		const list = tree.children(node, weight), below = rowTop(row + 1);
		for (let i = 0; i < list.length; i++) {
			const child = list[i], start = tree.start[child], wide = valueOf(tree, child);
			if (start >= to || wide <= 0)
				break;
			if (wide * scale < LEAST_PX) { // they come widest first: so are all that follow
				addOther(node, list, i, below, row + 1, scale, width, height);
				break;
			}
			if (start + wide > from)
				stack.push(child);
		}
	}
}

function addOther(parent, list, first, y, row, scale, width, height) {
	const {tree, from} = view, start = tree.start[list[first]];
	let value = 0, count = 0;
	for (let i = first; i < list.length && valueOf(tree, list[i]) > 0; i++, count++)
		value += valueOf(tree, list[i]);
	const x = (start - from) * scale, end = (start + value - from) * scale;
	if (end < 0 || x > width || y <= -ROW || y >= height)
		return;
	view.merged += count;
	view.mergedWidth += value;
	view.boxes.push({node: OTHER, parent, value, count, x: Math.max(x, 0), end: Math.min(Math.max(end, x + 1), width), y, row});
}

function drawMix(box, x, width) {
	const parts = statesOf(view.tree.total, box.node * VALUES), sum = parts.reduce((a, b) => a + b, 0);
	if (sum <= 0 || Math.max(...parts) / sum > 0.985)
		return;
	let at = x;
	for (let i = 0; i < parts.length; i++) {
		const wide = parts[i] / sum * width;
		if (wide < 0.5)
			continue;
		const [h, s, l] = dark ? STATES[i].dark : STATES[i].hue;
		context.fillStyle = `hsl(${h} ${s}% ${dark ? l + 16 : l - 17}%)`;
		context.fillRect(at, box.y + ROW - 4, wide, 3);
		at += wide;
	}
}

const isMatch = (node) => view.matches !== null && node >= 0 && view.tree.key[node] >= 0 && view.matches[view.tree.key[node]] === 1;

function drawBox(box, slivers) {
	const {tree} = view, x = box.x, gap = box.end - x > 3 ? 1 : 0.25;
	const width = Math.max(box.end - x - gap, 0.6), height = ROW - 1, matched = isMatch(box.node);
	const above = box.node >= 0 && tree.depth[box.node] < tree.depth[view.zoomed];
	const alpha = view.matches && !matched ? 0.34 : above ? 0.55 : 1;
	const fill = box.node === OTHER ? otherFill() : matched ? (dark ? "#8f6bff" : "#6d45e0") : fillOf(tree, box.node, view.color);
	if (width <= 8) {
		const key = alpha === 1 ? fill : `${fill}/${alpha}`;
		let sliver = slivers.get(key);
		if (!sliver)
			slivers.set(key, sliver = {fill, alpha, path: new Path2D()});
		sliver.path.rect(x, box.y, width, height);
		return;
	}
	context.globalAlpha = alpha;
	context.fillStyle = fill;
	context.beginPath();
	context.roundRect(x, box.y, width, height, 2.5);
	context.fill();
	if (view.color === "status" && !matched && box.node >= 0 && tree.key[box.node] !== ALL && width > 40)
		drawMix(box, x + 2, width - 4);
	if (width > LABEL_PX)
		drawLabel(box, x + 6, width - 11, matched);
	context.globalAlpha = 1;
}

function drawLabel(box, x, room, matched) {
	const {tree} = view, y = box.y + ROW / 2 - 0.5;
	const ink = matched ? "#ffffff" : dark ? "#f1f4f8" : "#17202b";
	if (box.node === OTHER) {
		const text = fitText("(other)", room);
		context.fillStyle = dark ? "#c6cfda" : "#4a5563";
		context.fillText(text, x, y);
		return;
	}
	const name = cleanText(labelOf(tree, box.node)), text = fitText(name, room), place = cleanText(placeOf(tree, box.node, false));
	context.fillStyle = ink;
	context.fillText(text, x, y);
	const used = textWidth(text) + 10;
	if (text !== name || !place || room - used < 30)
		return;
	const rest = fitText(place, room - used);
	if (rest === place) {
		context.globalAlpha *= 0.62;
		context.fillText(rest, x + used, y);
	}
}

function outline(box, color, line) {
	context.strokeStyle = color;
	context.lineWidth = line;
	context.strokeRect(box.x + line / 2, box.y + line / 2, Math.max(box.end - box.x - 1 - line, 1), ROW - 1 - line);
}

// Gives the scrolled area the height of what could be seen.
function stretch() {
	spacer.style.height = `${Math.max(contentRows() * ROW + 8, scroller.clientHeight)}px`;
}

function draw() {
	stretch();
	const width = scroller.clientWidth, height = scroller.clientHeight, ratio = window.devicePixelRatio || 1;
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.height = `${height}px`;
	}
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = labelFont;
	context.textBaseline = "middle";
	context.fillStyle = dark ? "#12161d" : "#ffffff";
	context.fillRect(0, 0, width, height);
	if (valueOf(view.tree, 0) <= 0) {
		view.boxes = [];
		view.rows = new Map();
		return;
	}
	layout(width, height);
	view.rows = new Map();
	const slivers = new Map(); // narrow boxes by colour: one path each instead of thousands of changes of colour
	for (const box of view.boxes) {
		drawBox(box, slivers);
		if (!view.rows.has(box.row))
			view.rows.set(box.row, []);
		view.rows.get(box.row).push(box);
	}
	for (const {fill, alpha, path} of slivers.values()) {
		context.globalAlpha = alpha;
		context.fillStyle = fill;
		context.fill(path);
	}
	context.globalAlpha = 1;
	for (const box of view.boxes)
		if (box.node === view.selected)
			outline(box, dark ? "#ffffff" : "#1b2430", 2);
	if (view.hovered) {
		const {node, parent} = view.hovered, box = view.boxes.find((b) => b.node === node && b.parent === parent);
		if (box)
			outline(box, dark ? "#c9d3df" : "#3c4a5b", 1.2);
	}
}

// The box at a point of the canvas, or null.
function boxAt(x, y) {
	for (const row of view.rows.values())
		if (y >= row[0].y && y < row[0].y + ROW) {
			// Of boxes that touch, a sliver of (other) is drawn over its neighbour.
			const hits = row.filter((box) => x >= box.x && x < box.end);
			return hits[hits.length - 1] || null;
		}
	return null;
}
