// SPDX-License-Identifier: Apache-2.0
// The data that exporters/heatmap.c describes, unpacked: files and lines with [samples, weight, CPU time, GIL held] as self and total, and who calls whom.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
// CPU time first, where it is known: sleeping lines are not hot.
const measures = [...(data.sums[2] > 0 ? ["CPU time"] : []), ...(data.weight === "samples" ? [] : [data.weight]), ...(data.sums[3] > 0 ? ["GIL held"] : []), "samples"];

// Place in self and total of a measure's name.
const MEASURES = 4;
const place = (measure) => ({"samples": 0, "CPU time": 2, "GIL held": 3}[measure] ?? 1);

const files = data.fileNames.map((name, id) => {
	const [isSource, ...sums] = data.files.slice((1 + 2 * MEASURES) * id, (1 + 2 * MEASURES) * (id + 1));
	return {id, name, isSource: isSource === 1, self: sums.slice(0, MEASURES), total: sums.slice(MEASURES), lines: [], source: null};
});
const lines = [];
for (let at = 0; at < data.lines.length; at += 3 + 2 * MEASURES) {
	const [file, number, name, ...sums] = data.lines.slice(at, at + 3 + 2 * MEASURES);
	const line = {id: lines.length, file: files[file], number, name: data.names[name], self: sums.slice(0, MEASURES), total: sums.slice(MEASURES), opcodes: []};
	lines.push(line);
	line.file.lines.push(line);
}
// What samples that end in a line spent at which instruction: [name, by measure].
for (let at = 0; at < data.opcodes.length; at += 2 + MEASURES) {
	const [line, name, ...sums] = data.opcodes.slice(at, at + 2 + MEASURES);
	lines[line].opcodes.push([data.names[name], sums]);
}
for (const file of files)
	file.lines.sort((a, b) => a.number - b.number);
for (const [file, text] of data.sources)
	files[file].source = text;

// Edges of each line, found when they are first asked for: [line, by measure].
let edgesOf = null;
function edges(line) {
	if (!edgesOf) {
		edgesOf = {callers: new Map(), callees: new Map()};
		const add = (map, key, other, sums) => map.has(key) ? map.get(key).push([lines[other], sums]) : map.set(key, [[lines[other], sums]]);
		for (let at = 0; at < data.edges.length; at += 2 + MEASURES) {
			const [caller, callee, ...sums] = data.edges.slice(at, at + 2 + MEASURES);
			add(edgesOf.callers, callee, caller, sums);
			add(edgesOf.callees, caller, callee, sums);
		}
	}
	return {callers: edgesOf.callers.get(line.id) || [], callees: edgesOf.callees.get(line.id) || []};
}

function percent(part, whole) {
	const share = whole ? 100 * part / whole : 0;
	return share === 0 ? "" : share < 0.01 ? "<0.01 %" : share < 10 ? `${share.toFixed(2)} %` : `${share.toFixed(1)} %`;
}

// 12,345 samples; 1.234 s.
function amount(value, measure) {
	if (!value)
		return "";
	if (place(measure) >= 2 || measure !== "samples" && data.unit === "nanoseconds")
		return value >= 1e9 ? `${(value / 1e9).toFixed(3)} s` : value >= 1e6 ? `${(value / 1e6).toFixed(2)} ms` : `${(value / 1e3).toFixed(1)} µs`;
	return value.toLocaleString("en");
}
