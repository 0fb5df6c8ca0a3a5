// SPDX-License-Identifier: Apache-2.0
// Colours: states by hues that stay apart for colour-blind eyes too, shaded by the function so that neighbours stay apart.
const STATES = [
	{id: "gil", label: "GIL held", hue: [30, 92, 70], dark: [26, 68, 42]},
	{id: "runnable", label: "Runnable without GIL", hue: [160, 48, 66], dark: [165, 52, 29]},
	{id: "wait", label: "GIL awaited", hue: [338, 72, 76], dark: [338, 46, 43]},
	{id: "idle", label: "Idle", hue: [213, 46, 82], dark: [215, 24, 33]},
	{id: "unknown", label: "Unknown", hue: [220, 6, 82], dark: [220, 5, 34]},
];
const CATEGORIES = [
	{id: "application", label: "Application", hue: [30, 90, 70], dark: [26, 66, 42]},
	{id: "packages", label: "Packages", hue: [265, 62, 80], dark: [262, 36, 47]},
	{id: "library", label: "Standard library", hue: [200, 62, 74], dark: [204, 52, 35]},
	{id: "frozen", label: "Import system, frozen", hue: [150, 36, 72], dark: [156, 36, 29]},
	{id: "native", label: "C, C++ and other native code", hue: [96, 44, 72], dark: [100, 36, 32]},
	{id: "special", label: "Garbage collector, other", hue: [350, 58, 78], dark: [350, 36, 42]},
	// Of databases of the Ascend profiler, whose frames have these for files: in the legend only where they are.
	{id: "cann", label: "CANN", file: "<cann>", hue: [320, 50, 76], dark: [318, 34, 40]},
	{id: "framework", label: "Python framework", file: "<python_framework>", hue: [235, 60, 80], dark: [232, 40, 46]},
	{id: "python", label: "Python", file: "<python>", hue: [48, 84, 68], dark: [46, 58, 34]},
	{id: "unnamed", label: "Unknown", file: "<unknown>", hue: [220, 6, 80], dark: [220, 5, 36]},
];
// A share's change: the stronger, the larger a part of the larger share it is.
const CHANGES = {
	grew: [{hue: [6, 74, 88], dark: [6, 30, 27]}, {hue: [6, 80, 80], dark: [6, 42, 33]}, {hue: [6, 84, 71], dark: [6, 55, 39]}, {hue: [6, 86, 62], dark: [6, 66, 45]}],
	shrank: [{hue: [216, 70, 90], dark: [216, 28, 28]}, {hue: [216, 76, 82], dark: [216, 40, 35]}, {hue: [216, 80, 74], dark: [216, 52, 42]}, {hue: [216, 82, 66], dark: [216, 62, 49]}],
};
const NO_CHANGE = {hue: [48, 12, 90], dark: [48, 5, 28]};
const THREAD_COLOR = {hue: [220, 14, 88], dark: [220, 14, 26]};

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
let dark = false;
const SHADES = 7;
const shadeCache = new Map();

// FNV-1a over a text's characters.
function hashText(text) {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return (hash ^ hash >>> 15) >>> 0;
}

function shaded(color, shade) {
	const [h, s, l] = dark ? color.dark : color.hue, offset = (shade - (SHADES - 1) / 2) * (dark ? 1.1 : 1.5);
	return `hsl(${h} ${s}% ${(l + offset).toFixed(1)}%)`;
}

// How a node's time splits into states, in the order of STATES: as values_states() of aggregator/profile.c.
function statesOf(values, base) {
	const of = (value) => isOwn[value] ? values[base + value] : 0;
	return [of(GIL), values[base + RUNNABLE_ALONE], of(GIL_WAIT), of(IDLE), of(UNKNOWN)];
}

function dominantState(values, base) {
	const parts = statesOf(values, base);
	let best = 4, most = parts[4];
	const look = (state, amount) => {
		if (amount >= most && amount > 0)
			[best, most] = [state, amount];
	};
	for (let state = 3; state >= 0; state--)
		look(state, parts[state]);
	return best;
}

// How a node's share of the whole changed: shares before and after in percent, half of the 95 % interval in points, and whether it is
// beyond the noise. The same test as in exporters/difference.c, which says what it assumes.
function changeOf(tree, node) {
	const share = (side, value) => {
		const whole = tree.total[value[side]];
		return whole > 0 ? tree.total[node * VALUES + value[side]] / whole : 0;
	};
	const all = comparison.samples.map((value) => tree.total[value]), hits = comparison.samples.map((value) => tree.total[node * VALUES + value]);
	const before = share(0, comparison.weight), after = share(1, comparison.weight), points = 100 * (after - before);
	const change = {before: 100 * before, after: 100 * after, points, within: 0, certain: false};
	if (all[0] === 0 || all[1] === 0)
		return change;
	const pooled = (hits[0] + hits[1]) / (all[0] + all[1]), error = Math.sqrt(pooled * (1 - pooled) * (1 / all[0] + 1 / all[1]));
	const apart = hits[1] / all[1] - hits[0] / all[0];
	const spread = hits.reduce((sum, hit, side) => {
		const near = (hit + 1) / (all[side] + 2);
		return sum + near * (1 - near) / (all[side] + 2);
	}, 0);
	change.within = 195.9964 * Math.sqrt(spread);
	change.certain = error > 0 && pooled * Math.min(...all) >= 5 && Math.abs(apart / error) >= 1.959964 && (apart > 0) === (points > 0);
	return change;
}

function changeColor(tree, node) {
	const {before, after, certain} = changeOf(tree, node), larger = Math.max(before, after);
	if (!certain || larger <= 0)
		return NO_CHANGE;
	return CHANGES[after > before ? "grew" : "shrank"][Math.min(3, Math.floor(4 * Math.abs(after - before) / larger))];
}

const categoryCache = new Int8Array(symbolCount).fill(-1);
function categoryOf(symbol) {
	if (categoryCache[symbol] >= 0)
		return categoryCache[symbol];
	const file = fileOf(symbol);
	const said = file ? CATEGORIES.findIndex((category) => category.file === file) : -1;
	const category = said >= 0 ? said : kindOf(symbol) === NATIVE ? 4 : !file ? 5 : /^<frozen/.test(file) ? 3 : /\/(site|dist)-packages\//.test(file) ? 1 :
		/\/lib(64)?\/python\d(\.\d+)?\//.test(file) ? 2 : 0;
	return categoryCache[symbol] = category;
}

// What the legend explains: what is in this page, or may be in any.
function legendCategories() {
	const there = new Set(Array.from({length: symbolCount}, (_, symbol) => fileOf(symbol)));
	return CATEGORIES.filter((category) => !category.file || there.has(category.file));
}

const fileHueCache = new Map();
function fileColor(file) {
	let color = fileHueCache.get(file);
	if (!color) {
		const hue = hashText(file) % 360;
		fileHueCache.set(file, color = file ? {hue: [hue, 58, 78], dark: [hue, 34, 38]} : THREAD_COLOR);
	}
	return color;
}

const shadeOfSymbol = new Int8Array(symbolCount).fill(-1);
// The fill of a node under a colouring: a CSS colour, made once for each colour and shade.
function fillOf(tree, node, mode) {
	const key = tree.key[node];
	if (mode === "change" && node > 0 && key < 0)
		return shaded(changeColor(tree, node), (SHADES - 1) / 2);
	let color = THREAD_COLOR, shade = (SHADES - 1) / 2;
	if (key >= 0) {
		const symbol = tree.byLine ? symbolOf(key) : key;
		if (shadeOfSymbol[symbol] < 0)
			shadeOfSymbol[symbol] = hashText(nameOf(symbol)) % SHADES;
		shade = shadeOfSymbol[symbol];
		color = mode === "change" ? changeColor(tree, node) : mode === "status" ? STATES[dominantState(tree.total, node * VALUES)] :
			mode === "category" ? CATEGORIES[categoryOf(symbol)] : fileColor(fileOf(symbol));
	}
	let shades = shadeCache.get(color);
	if (!shades)
		shadeCache.set(color, shades = []);
	return shades[shade] || (shades[shade] = shaded(color, shade));
}

function setDark(on) {
	dark = on;
	shadeCache.clear();
	document.documentElement.toggleAttribute("data-dark", on);
}
