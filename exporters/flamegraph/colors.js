// SPDX-License-Identifier: Apache-2.0
// Colours: states by hues that stay apart for colour-blind eyes too, shaded by the function so that neighbours stay apart.
const STATES = [
	{id: "gil", label: "Holds the GIL", hue: [30, 92, 70], dark: [26, 68, 42]},
	{id: "cpu", label: "On CPU without GIL", hue: [160, 48, 66], dark: [165, 52, 29]},
	{id: "wait", label: "Waits for the GIL", hue: [338, 72, 76], dark: [338, 46, 43]},
	{id: "idle", label: "Idle", hue: [213, 46, 82], dark: [215, 24, 33]},
	{id: "unknown", label: "Unknown", hue: [220, 6, 82], dark: [220, 5, 34]},
];
const CATEGORIES = [
	{id: "application", label: "Application", hue: [30, 90, 70], dark: [26, 66, 42]},
	{id: "packages", label: "Packages", hue: [265, 62, 80], dark: [262, 36, 47]},
	{id: "library", label: "Standard library", hue: [200, 62, 74], dark: [204, 52, 35]},
	{id: "frozen", label: "Import system, frozen", hue: [150, 36, 72], dark: [156, 36, 29]},
	{id: "special", label: "Garbage collector, other", hue: [350, 58, 78], dark: [350, 36, 42]},
];
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

// How a node's time splits into states, in the order of STATES. A holder of the GIL is that, runnable or not.
function statesOf(values, base) {
	return [values[base + GIL], values[base + CPU_ALONE], values[base + GIL_WAIT], values[base + IDLE], values[base + UNKNOWN]];
}

function dominantState(values, base) {
	let best = 4, most = values[base + UNKNOWN];
	const look = (state, amount) => {
		if (amount >= most && amount > 0)
			[best, most] = [state, amount];
	};
	look(3, values[base + IDLE]);
	look(2, values[base + GIL_WAIT]);
	look(1, values[base + CPU_ALONE]);
	look(0, values[base + GIL]);
	return best;
}

const categoryCache = new Int8Array(symbolCount).fill(-1);
function categoryOf(symbol) {
	if (categoryCache[symbol] >= 0)
		return categoryCache[symbol];
	const file = fileOf(symbol);
	const category = !file ? 4 : /^<frozen/.test(file) ? 3 : /\/(site|dist)-packages\//.test(file) ? 1 :
		/\/lib(64)?\/python\d(\.\d+)?\//.test(file) ? 2 : 0;
	return categoryCache[symbol] = category;
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
	let color = THREAD_COLOR, shade = (SHADES - 1) / 2;
	if (key >= 0) {
		const symbol = tree.byLine ? symbolOf(key) : key;
		if (shadeOfSymbol[symbol] < 0)
			shadeOfSymbol[symbol] = hashText(nameOf(symbol)) % SHADES;
		shade = shadeOfSymbol[symbol];
		color = mode === "status" ? STATES[dominantState(tree.total, node * VALUES)] :
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
