// SPDX-License-Identifier: Apache-2.0
// Words and numbers around the graph: tooltip, legend, sampling facts, help. Texts go in as text nodes only.
const element = (id) => document.getElementById(id);

function make(tag, className, text) {
	const made = document.createElement(tag);
	if (className)
		made.className = className;
	if (text !== undefined)
		made.textContent = text;
	return made;
}

const WEIGHTS = [
	{value: WALL, label: "Wall time"}, {value: SAMPLES, label: "Samples"}, {value: ON_CPU, label: "On CPU"}, {value: GIL, label: "GIL held"},
	{value: GIL_WAIT, label: "GIL wait"}, {value: IDLE, label: "Idle"}, {value: GC, label: "Garbage collection"},
	{value: EXCEPTION, label: "Handling exceptions"}, {value: UNKNOWN, label: "State unknown"},
];

function timeText(ns) {
	if (ns >= 100e9)
		return `${Math.floor(ns / 60e9)} m ${String(Math.floor(ns / 1e9) % 60).padStart(2, "0")} s`;
	return ns >= 1e9 ? `${(ns / 1e9).toFixed(2)} s` : ns >= 1e6 ? `${(ns / 1e6).toFixed(1)} ms` : ns > 0 ? `${(ns / 1e3).toFixed(1)} \u00b5s` : "0";
}
const amountText = (value, weight = view.weight) => weight === SAMPLES ? `${value.toLocaleString("en")}` : timeText(value);
const percentText = (part, whole) => {
	const percent = whole > 0 ? 100 * part / whole : 0;
	return percent > 0 && percent < 0.1 ? `${percent.toPrecision(2)} %` : `${percent.toFixed(percent < 10 ? 2 : 1)} %`;
};

function swatch(color) {
	const box = make("span", "swatch");
	box.style.background = color;
	return box;
}

function statusShares(tree, node) {
	const shares = make("div", "shares"), mix = make("div", "mix"), base = node * VALUES, wall = tree.total[base + WALL];
	const parts = statesOf(tree.total, base), sum = Math.max(parts.reduce((a, b) => a + b, 0), wall);
	STATES.forEach((state, i) => {
		if (parts[i] <= 0 || sum <= 0)
			return;
		const part = make("span");
		part.style.width = `${100 * parts[i] / sum}%`;
		part.style.background = shaded(state, 3);
		mix.append(part);
	});
	const named = [["GIL", GIL, 0], ["on CPU", ON_CPU, 1], ["GIL wait", GIL_WAIT, 2], ["idle", IDLE, 3], ["unknown", UNKNOWN, 4], ["GC", GC], ["exception", EXCEPTION]];
	for (const [label, value, state] of named) {
		if (tree.total[base + value] <= 0)
			continue;
		const share = make("span");
		if (state !== undefined)
			share.append(swatch(shaded(STATES[state], 3)));
		share.append(`${label} ${percentText(tree.total[base + value], wall)}`);
		shares.append(share);
	}
	return [mix, shares];
}

function sourceOf(tree, node) {
	const frame = tree.frame[node];
	if (frame <= 0 || tree.key[node] < 0)
		return null;
	const lines = sourceAround(processOf(symbolOf(frame)), fileOf(symbolOf(frame)), lineOf(frame));
	if (lines.length === 0)
		return null;
	const block = make("pre");
	for (const [number, text] of lines) {
		const row = make("div", number === lineOf(frame) ? "here" : "");
		row.append(make("i", "", number), cleanText(text.replaceAll("\t", "    ")));
		block.append(row);
	}
	return block;
}

function valueRow(label, value, whole, samples) {
	const row = make("tr");
	row.append(make("td", "", label), make("td", "", amountText(value)), make("td", "", percentText(value, whole)));
	row.append(make("td", "", samples === null ? "" : `${samples.toLocaleString("en")} samples`));
	return row;
}

function tipFor(box) {
	const {tree, weight} = view, whole = valueOf(tree, 0), parts = [];
	const table = make("table");
	if (box.node === OTHER) {
		parts.push(make("h3", "", "(other)"));
		parts.push(make("div", "place", `${box.count.toLocaleString("en")} ${box.count === 1 ? "frame" : "frames"} too narrow to draw; zoom in to see them`));
		table.append(valueRow("Total", box.value, whole, null));
		parts.push(table);
		return parts;
	}
	const base = box.node * VALUES;
	parts.push(make("h3", "", cleanText(labelOf(tree, box.node))));
	const place = cleanText(placeOf(tree, box.node, true));
	if (place)
		parts.push(make("div", "place", place));
	table.append(valueRow("Total", tree.total[base + weight], whole, weight === SAMPLES ? null : tree.total[base + SAMPLES]));
	table.append(valueRow("Self", tree.self[base + weight], whole, weight === SAMPLES ? null : tree.self[base + SAMPLES]));
	parts.push(table, ...statusShares(tree, box.node));
	const source = sourceOf(tree, box.node);
	if (source)
		parts.push(source);
	return parts;
}

function showTip(box, x, y) {
	const tip = element("tip");
	if (!box) {
		tip.hidden = true;
		return;
	}
	tip.replaceChildren(...tipFor(box));
	tip.hidden = false;
	const {width, height} = tip.getBoundingClientRect();
	tip.style.left = `${Math.max(6, x + 16 + width > innerWidth ? x - width - 12 : x + 16)}px`;
	tip.style.top = `${Math.max(6, y + 20 + height > innerHeight ? y - height - 12 : y + 20)}px`;
}

function showLegend() {
	const parts = [], total = view.tree.total, states = statesOf(total, 0), wall = Math.max(total[WALL], 0);
	if (view.color === "status")
		STATES.forEach((state, i) => {
			if (states[i] > 0)
				parts.push([shaded(state, 3), `${state.label} ${percentText(states[i], wall)}`]);
		});
	else if (view.color === "category")
		for (const category of CATEGORIES)
			parts.push([shaded(category, 3), category.label]);
	else
		parts.push([null, "One hue a file"]);
	element("legend").replaceChildren(...parts.map(([color, text]) => {
		const item = make("span");
		if (color)
			item.append(swatch(color));
		item.append(text);
		return item;
	}));
}

// One line on what is selected or under the pointer, and one on what is not drawn.
function showNow() {
	const {tree} = view, whole = valueOf(tree, 0), now = element("now");
	const box = view.hovered || view.boxes.find((b) => b.node === (view.selected >= 0 ? view.selected : view.zoomed));
	if (!box) {
		now.replaceChildren();
	} else {
		const value = box.node === OTHER ? box.value : valueOf(tree, box.node);
		const name = box.node === OTHER ? `(other), ${box.count} frames` : cleanText(labelOf(tree, box.node));
		const place = box.node === OTHER ? "" : cleanText(placeOf(tree, box.node, true));
		now.replaceChildren(make("b", "", name), `  ${place ? place + "  \u00b7  " : ""}${amountText(value)}  \u00b7  ${percentText(value, whole)}`);
	}
	element("reset").hidden = view.to - view.from >= whole;
	element("other-note").textContent = view.merged === 0 ? "" :
		`${view.merged.toLocaleString("en")} narrow ${view.merged === 1 ? "frame" : "frames"} merged into (other)`;
}

const factText = (key) => (data.facts.find((fact) => fact[0] === key) || [])[3] || "?";

function fillFacts() {
	const lost = data.facts.filter((fact) => fact[4] === 2), button = element("facts-button");
	const dropped = data.facts.filter((fact) => fact[0].startsWith("lost_")).reduce((sum, fact) => sum + fact[2], 0);
	button.textContent = `${factText("in_profile")} samples \u00b7 ${factText("duration_ns")} \u00b7 ` +
		(dropped > 0 ? `${dropped.toLocaleString("en")} lost` : lost.length > 0 ? `none lost, ${lost.length} to note` : "none lost");
	button.classList.toggle("loss", lost.length > 0);
	element("facts-lead").textContent = `Mode ${data.mode}; rate asked ${factText("asked_hz")}, reached ${factText("reached_hz")}.` +
		(data.sequence ? ` Snapshot ${data.sequence}.` : "") + (data.startedMs ? ` Begun ${new Date(data.startedMs).toISOString().replace("T", " ").slice(0, 19)} UTC.` : "") +
		(data.sourcesLeftOut ? ` Source lines of ${data.sourcesLeftOut} files left out: too many.` : "");
	for (const [, label, , text, weight] of data.facts) {
		const row = make("tr", ["", "good", "loss"][weight]);
		row.append(make("td", "", label), make("td", "", text));
		element("facts").querySelector("table").append(row);
	}
	for (const [pid, name, version, ended] of data.processes) {
		const line = make("div");
		line.append(make("b", "", pid), ` Python ${version}${ended ? ", ended" : ""}: ${cleanText(name)}`);
		element("processes").append(line);
	}
}

const KEYS = [
	["\u2190 \u2191 \u2192 \u2193", "move to a neighbour, parent or child"], ["Enter", "zoom to the selected bar"], ["Backspace", "zoom out one level"],
	["0 or Home", "zoom out all the way"], ["Esc", "close, clear the search, then zoom out"], ["/", "search; /text/ is a regular expression"],
	["n  N", "next, previous match in view"], ["i", "inverted: from callees to callers"], ["f", "icicle or flame"], ["l", "by function or by line"],
	["c", "colour by status, category, file"], ["w", "next measure for the width"], ["[  ]", "previous, next thread"],
	["d", "light or dark"], ["s", "sampling facts and losses"], ["?", "this help"], ["Ctrl + wheel", "zoom at the pointer"], ["drag", "move sideways when zoomed"],
];

function fillHelp() {
	for (const [keys, text] of KEYS) {
		const row = make("tr"), cell = make("td");
		cell.append(make("kbd", "", keys));
		row.append(cell, make("td", "", text));
		element("help").querySelector("table").append(row);
	}
}

function fillTitle() {
	const first = data.processes[0], title = element("title");
	const name = data.title || (first ? cleanText(first[1]) || `process ${first[0]}` : "empty profile");
	title.append(make("b", "", name), first ? `  ${severalProcesses ? `${data.processes.length} processes` : `PID ${first[0]} \u00b7 Python ${first[2]}`}` : "");
	title.title = name;
	document.title = `${name} \u2013 sampled`;
}
