// SPDX-License-Identifier: Apache-2.0
// The profile's data, decoded: exporters/flamegraph.c tells the layout. Everything in it is untrusted text.
"use strict";
const SAMPLES = 0, WALL = 1, RUNNABLE = 2, GIL = 3, GIL_WAIT = 4, IDLE = 5, UNKNOWN = 6, GC = 7, EXCEPTION = 8, CPU = 9, RUN_WAIT = 10;
// Worked out here: runnable, and neither holding nor awaiting the GIL. With GIL, GIL_WAIT, IDLE and UNKNOWN it is all of the time.
const RUNNABLE_ALONE = 11, VALUES = 12;
const loadStart = performance.now();
const data = JSON.parse(document.getElementById("data").textContent);
// Two profiles joined (sampled diff): [before, after] of each; or null.
const comparison = data.comparison || null;
// A profile from elsewhere has values of other names in these places: only what is called as ours is ours.
const OWN_NAMES = ["samples", "wall", "runnable", "gil", "gil_wait", "idle", "unknown", "gc", "exception", "cpu", "run_wait"];
const isOwn = OWN_NAMES.map((name, i) => data.values[i] === name && data.units[i] === (i === SAMPLES ? "count" : "nanoseconds"));
const OTHER_STATES = [GIL, GIL_WAIT, IDLE, UNKNOWN].filter((value) => isOwn[value]);
const hasStates = isOwn[RUNNABLE] || isOwn[GIL] || isOwn[GIL_WAIT] || isOwn[IDLE];
// What widths and shares are of, unless asked otherwise.
const MAIN = data.values[WALL] === null ? SAMPLES : WALL;

// Of symbol s: its name, its file, and so on.
const SYMBOL_FIELDS = 6;
const nameOf = (s) => data.strings[data.symbols[s * SYMBOL_FIELDS]];
const fileOf = (s) => data.strings[data.symbols[s * SYMBOL_FIELDS + 1]];
const firstLineOf = (s) => data.symbols[s * SYMBOL_FIELDS + 2];
const processOf = (s) => data.symbols[s * SYMBOL_FIELDS + 4];
const NATIVE = 1;
const kindOf = (s) => data.symbols[s * SYMBOL_FIELDS + 3];
// Of native code: the file it is mapped from, else "".
const moduleOf = (s) => data.strings[data.symbols[s * SYMBOL_FIELDS + 5]];
const symbolCount = data.symbols.length / SYMBOL_FIELDS;
// Of frame f: its symbol and its line; frame 0 is none.
const symbolOf = (f) => data.frames[2 * f];
const lineOf = (f) => data.frames[2 * f + 1];
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

// A thread's nodes in pre-order: a parent comes before its children. Numbers of one byte, which most are, are read in place: with
// 100,000 nodes this loop is what opening the page takes.
function decodeThread(count, text) {
	const bytes = atob(text);
	const parent = new Int32Array(count), frame = new Int32Array(count), self = new Float64Array(count * VALUES);
	const main = new Float64Array(count), own = new Uint8Array(count);
	let at = 0;
	const rest = (byte) => {
		let value = byte & 127;
		for (let scale = 128; byte > 127; scale *= 128) {
			byte = bytes.charCodeAt(at++);
			value += (byte & 127) * scale;
		}
		return value;
	};
	for (let node = 0; node < count; node++) {
		const base = node * VALUES;
		let byte = bytes.charCodeAt(at++);
		const head = byte < 128 ? byte : rest(byte);
		byte = bytes.charCodeAt(at++);
		let above = node - 1;
		for (let up = byte < 128 ? byte : rest(byte); up > 0; up--)
			above = parent[above];
		parent[node] = above;
		frame[node] = head / 2;
		if (head % 2 === 0)
			continue;
		own[node] = 1;
		byte = bytes.charCodeAt(at++);
		self[base + SAMPLES] = byte < 128 ? byte : rest(byte);
		byte = bytes.charCodeAt(at++);
		const time = self[base + WALL] = byte < 128 ? byte : rest(byte);
		byte = bytes.charCodeAt(at++);
		for (let codes = byte < 128 ? byte : rest(byte), value = base + RUNNABLE; codes > 0; codes >>= 2, value++)
			if ((codes & 3) === 1)
				self[value] = time;
			else if ((codes & 3) === 2)
				self[value] = rest(bytes.charCodeAt(at++));
		if (isOwn[RUNNABLE])
			self[base + RUNNABLE_ALONE] = Math.max(0, OTHER_STATES.reduce((rest, value) => rest - self[base + value], time));
		main[node] = self[base + MAIN];
	}
	for (let node = count - 1; node > 0; node--)
		main[parent[node]] += main[node];
	return {count, parent, frame, self, main, own};
}

const severalProcesses = data.processes.length > 1;
const threads = data.threads.map(([process, interpreter, tid, name, isMain, count, text], index) => {
	const thread = {index, process, interpreter, tid, name, isMain, ...decodeThread(count, text)};
	thread.samples = 0;
	for (let node = 0; node < count; node++)
		thread.samples += thread.self[node * VALUES];
	thread.label = (severalProcesses ? `${data.processes[process][0]} / ` : "") +
		(interpreter ? `interpreter ${interpreter} / ` : "") +
		(comparison ? name || "threads without a name" : name ? `${name} (${tid || "?"})` : `thread ${tid || "?"}`);
	return thread;
}).sort((a, b) => b.samples - a.samples || a.index - b.index);

// Source lines by process and file: arrays of {first, lines}.
const sources = new Map();
for (const [process, file, first, lines] of data.sources || []) {
	const key = `${process}:${data.strings[file]}`;
	if (!sources.has(key))
		sources.set(key, []);
	sources.get(key).push({first, lines});
}

// The lines around `line`, as [number, text], or none.
function sourceAround(process, file, line) {
	for (const run of sources.get(`${process}:${file}`) || [])
		if (line >= run.first && line < run.first + run.lines.length) {
			const from = Math.max(run.first, line - 2), to = Math.min(run.first + run.lines.length - 1, line + 2);
			return run.lines.slice(from - run.first, to - run.first + 1).map((text, i) => [from + i, text]);
		}
	return [];
}
