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

const OWN_LABELS = ["Samples", "Wall time", "Runnable", "GIL held", "GIL awaited", "Idle", "State unknown", "Garbage collection", "Handling exceptions", "CPU time", "Waiting for a CPU"];
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const weightLabel = (value) => comparison && value === SAMPLES ? "Samples after" : isOwn[value] ? OWN_LABELS[value] :
	capital(cleanText(data.values[value]).slice(0, 60));
const WEIGHTS = [WALL, SAMPLES, CPU, RUN_WAIT, RUNNABLE, GIL, GIL_WAIT, IDLE, GC, EXCEPTION, UNKNOWN].filter((value) => data.values[value] !== null)
	.map((value) => ({value, label: weightLabel(value)}));

function timeText(ns) {
	if (ns >= 100e9)
		return `${Math.floor(ns / 60e9)} m ${String(Math.floor(ns / 1e9) % 60).padStart(2, "0")} s`;
	return ns >= 1e9 ? `${(ns / 1e9).toFixed(2)} s` : ns >= 1e6 ? `${(ns / 1e6).toFixed(1)} ms` : ns > 0 ? `${(ns / 1e3).toFixed(1)} \u00b5s` : "0";
}
function bytesText(bytes) {
	const step = bytes >= 1 << 30 ? 3 : bytes >= 1 << 20 ? 2 : bytes >= 1024 ? 1 : 0;
	return `${(bytes / 1024 ** step).toFixed(step === 0 ? 0 : 2)} ${["B", "KiB", "MiB", "GiB"][step]}`;
}

const IN_NS = new Map([["nanoseconds", 1], ["microseconds", 1e3], ["milliseconds", 1e6], ["seconds", 1e9]]);
function amountText(value, weight = view.weight) {
	const unit = data.units[weight];
	if (IN_NS.has(unit))
		return timeText(value * IN_NS.get(unit));
	if (unit === "bytes")
		return bytesText(value);
	return value.toLocaleString("en") + (unit === "count" || unit === "" ? "" : ` ${cleanText(unit).slice(0, 40)}`);
}
const percentText = (part, whole) => {
	const percent = whole > 0 ? 100 * part / whole : 0;
	return percent > 0 && percent < 0.1 ? `${percent.toPrecision(2)} %` : `${percent.toFixed(percent < 10 ? 2 : 1)} %`;
};

function swatch(color) {
	const box = make("span", "swatch");
	box.style.background = color;
	return box;
}

// Of a joined profile: both shares and the difference, total and self.
function changeRows(tree, node) {
	const table = make("table"), head = make("tr");
	head.append(...["", "Before", "After", "Change", ""].map((text) => make("td", "", text)));
	table.append(head);
	const row = (label, before, after, note) => {
		const made = make("tr"), points = after - before;
		made.append(make("td", "", label), make("td", "", `${before.toFixed(2)} %`), make("td", "", `${after.toFixed(2)} %`),
			make("td", "", `${points > 0 ? "+" : ""}${points.toFixed(2)}`), make("td", "", note));
		table.append(made);
	};
	const change = changeOf(tree, node), [before, after] = comparison.weight, base = node * VALUES;
	const percent = (value) => tree.total[value] > 0 ? 100 * tree.self[base + value] / tree.total[value] : 0;
	row("Total", change.before, change.after, `\u00b1 ${change.within.toFixed(2)}${change.certain ? "" : ", within the noise"}`);
	row("Self", percent(before), percent(after), "");
	const amounts = make("tr");
	amounts.append(make("td", "", "Total"), ...comparison.weight.map((value) => make("td", "", amountText(tree.total[base + value], value))));
	table.append(amounts);
	return table;
}

// The kernel counted in time that was not sampled, too: what its counts are shares of.
function wholeOf(value, values, base) {
	const wall = values[base + WALL], counted = values[base + CPU] + (isOwn[RUN_WAIT] ? values[base + RUN_WAIT] : 0);
	const unsampled = (factOf("unsampled_ns") || [])[2] || 0, all = wallOfAll();
	return (value === CPU || value === RUN_WAIT) && all > 0 ? Math.max(wall * (all + unsampled) / all, counted) : wall;
}
let allWall = -1;
function wallOfAll() {
	if (allWall < 0)
		allWall = threads.reduce((sum, thread) => sum + thread.self.reduce((own, amount, i) => i % VALUES === WALL ? own + amount : own, 0), 0);
	return allWall;
}

function statusShares(tree, node) {
	const shares = make("div", "shares"), mix = make("div", "mix"), base = node * VALUES, wall = tree.total[base + WALL];
	const parts = statesOf(tree.total, base), sum = parts.reduce((a, b) => a + b, 0);
	STATES.forEach((state, i) => {
		if (parts[i] <= 0 || sum <= 0)
			return;
		const part = make("span");
		part.style.width = `${100 * parts[i] / sum}%`;
		part.style.background = shaded(state, 3);
		mix.append(part);
	});
	STATES.forEach((state, i) => {
		if (parts[i] <= 0)
			return;
		const share = make("span");
		share.append(swatch(shaded(state, 3)), `${state.label} ${percentText(parts[i], sum)}`);
		shares.append(share);
	});
	const others = make("div", "shares");
	for (const value of [CPU, RUN_WAIT, GC, EXCEPTION])
		if (isOwn[value] && tree.total[base + value] > 0)
			others.append(make("span", "", `${OWN_LABELS[value]} ${percentText(tree.total[base + value], wholeOf(value, tree.total, base))}`));
	return [mix, shares, others];
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
	if (comparison) {
		parts.push(changeRows(tree, box.node));
		return parts;
	}
	table.append(valueRow("Total", tree.total[base + weight], whole, weight === SAMPLES ? null : tree.total[base + SAMPLES]));
	table.append(valueRow("Self", tree.self[base + weight], whole, weight === SAMPLES ? null : tree.self[base + SAMPLES]));
	parts.push(table, ...(hasStates ? statusShares(tree, box.node) : []));
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
	const parts = [], total = view.tree.total, states = statesOf(total, 0), whole = states.reduce((a, b) => a + b, 0);
	if (view.color === "change")
		parts.push([shaded(CHANGES.grew[3], 3), "Grew"], [shaded(CHANGES.shrank[3], 3), "Shrank"], [shaded(NO_CHANGE, 3), "Within the noise"]);
	else if (view.color === "status")
		STATES.forEach((state, i) => {
			if (states[i] > 0)
				parts.push([shaded(state, 3), `${i === 1 && !isOwn[GIL] ? "Runnable" : state.label} ${percentText(states[i], whole)}`]);
		});
	else if (view.color === "category")
		for (const category of legendCategories())
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

const factOf = (key, facts = data.facts) => facts.find((fact) => fact[0] === key);
const factText = (key, facts = data.facts) => (factOf(key, facts) || [])[3] || "?";

// What was lost in sampling, all facts together, in a few words.
function lossText(facts) {
	const lost = facts.filter((fact) => fact[4] === 2);
	const dropped = facts.filter((fact) => fact[0].startsWith("lost_")).reduce((sum, fact) => sum + fact[2], 0);
	return dropped > 0 ? `${dropped.toLocaleString("en")} lost` : lost.length > 0 ? `none lost, ${lost.length} to note` : "none lost";
}

function leadText() {
	if (comparison)
		return `Before: ${cleanText(comparison.titles[0])}. After: ${cleanText(comparison.titles[1])}. Shares are of ${comparison.of} on each side.`;
	const parts = [];
	if (factOf("attempts")) {
		const number = (key) => (factOf(key) || [])[2] || 0, ticks = number("ticks") + number("ticks_missed");
		const lost = data.facts.filter((fact) => fact[0].startsWith("lost_")).reduce((sum, fact) => sum + fact[2], 0);
		parts.push(`Mode ${data.mode || "wall"}; interval ${data.intervalNs ? timeText(data.intervalNs) : "none"}; rate asked ${factText("asked_hz")}, ` +
			`reached ${factText("reached_hz")}; errors ${percentText(lost, number("attempts"))}, ticks missed ${percentText(number("ticks_missed"), ticks)}.`);
	} else {
		parts.push("Imported: what is known of its sampling is what the file said.");
	}
	parts.push(data.freeThreaded === null ? "Free-threaded: unknown." : `Free-threaded: ${data.freeThreaded ? "yes" : "no"}.`);
	if (data.sequence)
		parts.push(`Snapshot ${data.sequence}.`);
	if (data.startedMs)
		parts.push(`Begun ${new Date(data.startedMs).toISOString().replace("T", " ").slice(0, 19)} UTC.`);
	if (data.sourcesLeftOut)
		parts.push(`Source lines of ${data.sourcesLeftOut} files left out: too many.`);
	return parts.join(" ");
}

function addFacts(facts, prefix) {
	for (const [, label, , text, weight] of facts) {
		const row = make("tr", ["", "good", "loss"][weight]);
		row.append(make("td", "", prefix + cleanText(label)), make("td", "", text));
		element("facts").querySelector("table").append(row);
	}
}

// What each thread was doing, in shares of its own time.
function fillThreadFacts() {
	const columns = comparison ? [["before", comparison.weight[0]], ["after", comparison.weight[1]]] :
		[["CPU time", CPU], ["waiting for a CPU", RUN_WAIT], ["GIL held", GIL], ["GIL awaited", GIL_WAIT], ["runnable without GIL", RUNNABLE_ALONE],
			["idle", IDLE], ["unknown", UNKNOWN], ["GC", GC], ["exception", EXCEPTION]].filter(([, value]) => isOwn[value === RUNNABLE_ALONE ? RUNNABLE : value]);
	const table = element("thread-facts"), head = make("tr"), wholes = new Float64Array(VALUES);
	const sums = threads.slice(0, 200).map((thread) => {
		const sum = new Float64Array(VALUES);
		for (let i = 0; i < thread.self.length; i++)
			sum[i % VALUES] += thread.self[i];
		for (let value = 0; value < VALUES; value++)
			wholes[value] += sum[value];
		return sum;
	});
	head.append(make("td", "", "thread"), make("td", "", "samples"), ...columns.map(([label]) => make("td", "", label)));
	table.append(head);
	sums.forEach((sum, i) => {
		const row = make("tr");
		row.append(make("td", "", cleanText(threads[i].label).slice(0, 80)), make("td", "", sum[SAMPLES].toLocaleString("en")));
		for (const [, value] of columns)
			row.append(make("td", "", percentText(sum[value], comparison ? wholes[value] : wholeOf(value, sum, 0))));
		table.append(row);
	});
	if (threads.length > 200)
		table.append(make("tr", "", `and ${threads.length - 200} more threads`));
}

function fillFacts() {
	const button = element("facts-button"), duration = factOf("duration_ns");
	const all = comparison ? comparison.facts.flat() : data.facts;
	const samples = comparison ? comparison.facts.map((facts) => factText("in_profile", facts)).join(" \u2192 ") : factText("in_profile");
	button.textContent = [`${samples} samples`, ...(duration ? [duration[3]] : []), ...(factOf("attempts", all) ? [lossText(all)] : [])].join(" \u00b7 ");
	button.classList.toggle("loss", all.some((fact) => fact[4] === 2));
	element("facts-lead").textContent = leadText();
	if (comparison)
		comparison.facts.forEach((facts, side) => addFacts(facts, side === 0 ? "before: " : "after: "));
	else
		addFacts(data.facts, "");
	fillThreadFacts();
	for (const [pid, name, version, ended] of data.processes) {
		const line = make("div");
		line.append(make("b", "", pid || ""), `${version === "?" ? "" : ` Python ${version}`}${ended ? ", ended" : ""}${name ? `: ${cleanText(name)}` : ""}`);
		element("processes").append(line);
	}
	if (comparison)
		element("threads-head").textContent = "Threads, shares of all";
	element("processes-head").hidden = comparison !== null;
}

// The functions that changed most, and all that are new or gone: in one width a function that is only in the other has none.
function fillChanges() {
	element("changes-button").hidden = comparison === null;
	if (!comparison)
		return;
	const {changes} = comparison, kinds = new Map();
	for (const [, , , kind] of changes)
		kinds.set(kind, (kinds.get(kind) || 0) + 1);
	element("changes-button").textContent = ["new", "gone", "grew", "shrank"].filter((kind) => kinds.has(kind)).map((kind) => `${kinds.get(kind)} ${kind}`).join(" \u00b7 ") || "No change";
	element("changes-lead").textContent = `Shares of ${comparison.of} on each side, change in points of percent with half of its 95 % interval, if samples are independent; ` +
		"\u201c~\u201d: within the noise." + (comparison.changesLeftOut ? ` ${comparison.changesLeftOut} smaller changes left out.` : "");
	const table = element("changes").querySelector("table"), head = make("tr");
	head.append(...["", "function", "self before", "after", "change", "total before", "after", "change"].map((text) => make("td", "", text)));
	table.append(head);
	for (const [name, file, line, kind, selfCertain, totalCertain, ...numbers] of changes) {
		const row = make("tr", kind), place = make("td", "", cleanText(name).slice(0, 200));
		row.append(make("td", "", kind), place);
		if (file)
			place.append(make("span", "place", ` ${cleanText(baseName(file))}${line ? `:${line}` : ""}`));
		[[0, selfCertain], [3, totalCertain]].forEach(([at, certain]) => {
			const [before, after, within] = numbers.slice(at, at + 3), points = after - before;
			row.append(make("td", "", before.toFixed(2)), make("td", "", after.toFixed(2)),
				make("td", "", `${points > 0 ? "+" : ""}${points.toFixed(2)} \u00b1 ${within.toFixed(2)}${certain ? "" : " ~"}`));
		});
		table.append(row);
	}
}

const KEYS = [
	["\u2190 \u2191 \u2192 \u2193", "move to a neighbour, parent or child"], ["Enter", "zoom to the selected bar"], ["Backspace", "zoom out one level"],
	["0 or Home", "zoom out all the way"], ["Esc", "close, clear the search, then zoom out"], ["/", "search; /text/ is a regular expression"], ["/ \u2193 \u2191 Enter", "choose among what was found, and zoom to it"],
	["n  N", "next, previous match in view"], ["i", "inverted: from callees to callers"], ["f", "icicle or flame"], ["l", "by function or by line"],
	["c", "next colouring"], ["w", "next measure for the width"], ["[  ]", "previous, next thread"],
	["d", "light or dark"], ["s", "sampling facts and losses"], ["?", "this help"], ["Ctrl + wheel", "zoom at the pointer"], ["drag", "move sideways when zoomed"],
];

function fillHelp() {
	for (const [keys, text] of comparison ? [...KEYS, ["x", "what changed"]] : KEYS) {
		const row = make("tr"), cell = make("td");
		cell.append(make("kbd", "", keys));
		row.append(cell, make("td", "", text));
		element("help").querySelector("table").append(row);
	}
}

function fillTitle() {
	const first = data.processes[0], title = element("title"), about = [];
	let name = data.title || (first && cleanText(first[1])) || (first && first[0] ? `process ${first[0]}` : first ? "imported profile" : "empty profile");
	if (comparison) {
		name = `${cleanText(comparison.titles[0])} \u2192 ${cleanText(comparison.titles[1])}`;
	} else if (severalProcesses) {
		about.push(`${data.processes.length} processes`);
	} else if (first) {
		if (first[0])
			about.push(`PID ${first[0]}`);
		if (first[2] !== "?")
			about.push(`Python ${first[2]}`);
	}
	title.append(make("b", "", name), about.length > 0 ? `  ${about.join(" \u00b7 ")}` : "");
	title.title = name;
	document.title = `${name} \u2013 sampled`;
}
