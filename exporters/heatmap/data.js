// SPDX-License-Identifier: Apache-2.0
// The data that exporters/heatmap.c describes, unpacked: files and lines with [samples, weight] as self and total, and who calls whom.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const measures = data.weight === "samples" ? ["samples"] : [data.weight, "samples"];

// Place in self and total of a measure's name.
const place = (measure) => (measure === "samples" ? 0 : 1);

const files = data.fileNames.map((name, id) => {
	const at = 5 * id, numbers = data.files;
	return {id, name, isSource: numbers[at] === 1, self: [numbers[at + 1], numbers[at + 2]], total: [numbers[at + 3], numbers[at + 4]], lines: [], source: null};
});
const lines = [];
for (let at = 0; at < data.lines.length; at += 7) {
	const [file, number, name, ...sums] = data.lines.slice(at, at + 7);
	const line = {id: lines.length, file: files[file], number, name: data.names[name], self: [sums[0], sums[1]], total: [sums[2], sums[3]], opcodes: []};
	lines.push(line);
	line.file.lines.push(line);
}
// What samples that end in a line spent at which instruction: [name, [samples, weight]].
for (let at = 0; at < data.opcodes.length; at += 4) {
	const [line, name, samples, weight] = data.opcodes.slice(at, at + 4);
	lines[line].opcodes.push([data.names[name], [samples, weight]]);
}
for (const file of files)
	file.lines.sort((a, b) => a.number - b.number);
for (const [file, text] of data.sources)
	files[file].source = text;

// Edges of each line, found when they are first asked for: [line, [samples, weight]].
let edgesOf = null;
function edges(line) {
	if (!edgesOf) {
		edgesOf = {callers: new Map(), callees: new Map()};
		const add = (map, key, other, sums) => map.has(key) ? map.get(key).push([lines[other], sums]) : map.set(key, [[lines[other], sums]]);
		for (let at = 0; at < data.edges.length; at += 4) {
			const [caller, callee, samples, weight] = data.edges.slice(at, at + 4);
			add(edgesOf.callers, callee, caller, [samples, weight]);
			add(edgesOf.callees, caller, callee, [samples, weight]);
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
	if (measure !== "samples" && data.unit === "nanoseconds")
		return value >= 1e9 ? `${(value / 1e9).toFixed(3)} s` : value >= 1e6 ? `${(value / 1e6).toFixed(2)} ms` : `${(value / 1e3).toFixed(1)} µs`;
	return value.toLocaleString("en");
}
