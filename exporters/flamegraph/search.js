// SPDX-License-Identifier: Apache-2.0
// The search: what matches, how much of all that is, and the list of it below the field.
const HITS_SHOWN = 100;
let hits = [], chosen = -1; // functions, or lines, that match, those with most first: key, share of all, widest node; the one that the keys are at

// Text between slashes is a regular expression; a bad one matches nothing: why, is returned instead.
function matcher(text) {
	if (text.length > 2 && text.startsWith("/") && text.endsWith("/"))
		try {
			const pattern = new RegExp(text.slice(1, -1), "i");
			return (s) => pattern.test(s);
		} catch (error) {
			return String(error.message);
		}
	const wanted = text.toLowerCase();
	return (s) => s.toLowerCase().includes(wanted);
}

function search(repaint = true) {
	const text = element("search").value, matches = text ? matcher(text) : null, output = element("matched");
	const bad = typeof matches === "string";
	element("search").classList.toggle("bad", bad);
	element("search").title = "";
	view.matches = null;
	hits = [];
	output.textContent = output.title = "";
	if (bad) {
		output.textContent = "bad pattern";
		output.title = element("search").title = cleanText(matches);
	} else if (matches) {
		const found = data.strings.map((string) => matches(string) ? 1 : 0);
		const bySymbol = Uint8Array.from({length: symbolCount}, (_, s) => found[data.symbols[s * SYMBOL_FIELDS]] | found[data.symbols[s * SYMBOL_FIELDS + 1]]);
		view.matches = view.byLine ? Uint8Array.from({length: data.frames.length / 2}, (_, f) => f === 0 ? 0 : bySymbol[symbolOf(f)]) : bySymbol;
		listHits();
		const count = hits.length, measure = WEIGHTS.find(({value}) => value === view.weight);
		output.textContent = `${count.toLocaleString("en")} \u00b7 ${percentText(view.upright.matched(view.matches, view.weight), valueOf(view.upright, 0))}`;
		element("search").title = `${count.toLocaleString("en")} ${view.byLine ? "lines" : "functions"} match; stacks that hold one have this share of ${measure ? measure.label : "all"}`;
	}
	showHits();
	if (repaint)
		paintNow();
}

// Those that are in the tree with something of the measure. A stack counts once, however often a function is in it.
function listHits() {
	const {upright: tree, matches} = view, open = new Map(), found = new Map(), path = [0], next = [0];
	while (path.length > 0) {
		const node = path[path.length - 1], key = tree.key[node], matching = key >= 0 && matches[key];
		if (next[next.length - 1] === 0 && matching) {
			const hit = found.get(key) || {key, value: 0, node}, depth = open.get(key) || 0;
			if (depth === 0)
				hit.value += valueOf(tree, node);
			if (valueOf(tree, node) > valueOf(tree, hit.node))
				hit.node = node;
			found.set(key, hit);
			open.set(key, depth + 1);
		}
		const child = tree.offset[node] + next[next.length - 1]++;
		if (child < tree.offset[node + 1]) {
			path.push(tree.list[child]);
			next.push(0);
		} else {
			if (matching)
				open.set(key, open.get(key) - 1);
			path.pop();
			next.pop();
		}
	}
	hits = Array.from(found.values()).filter((hit) => hit.value > 0).sort((a, b) => b.value - a.value || a.key - b.key);
}

function showHits() {
	const field = element("search"), there = hits.length > 0 && document.activeElement === field;
	chosen = -1;
	element("hits").hidden = !there;
	field.setAttribute("aria-expanded", String(there));
	field.removeAttribute("aria-activedescendant");
	if (!there)
		return element("hit-list").replaceChildren();
	element("hit-list").replaceChildren(...hits.slice(0, HITS_SHOWN).map(({node, value}, i) => {
		const item = make("li"), text = make("span", "hit");
		item.id = `hit-${i}`;
		item.setAttribute("role", "option");
		item.setAttribute("aria-selected", "false");
		text.append(make("b", "", cleanText(labelOf(view.upright, node)).slice(0, 200)), ` ${cleanText(placeOf(view.upright, node, true)).slice(-200)}`);
		item.append(text, " ", make("span", "share", percentText(value, valueOf(view.upright, 0))));
		return item;
	}));
	element("hits-left").textContent = hits.length > HITS_SHOWN ? `and ${(hits.length - HITS_SHOWN).toLocaleString("en")} more` : "";
}

function chooseHit(step) {
	const items = element("hit-list").children, count = items.length;
	if (count === 0)
		return;
	items[chosen]?.setAttribute("aria-selected", "false");
	chosen = chosen < 0 ? (step > 0 ? 0 : count - 1) : (chosen + step + count) % count;
	items[chosen].setAttribute("aria-selected", "true");
	items[chosen].scrollIntoView({block: "nearest"});
	element("search").setAttribute("aria-activedescendant", items[chosen].id);
}

function leaveSearch(then) {
	scroller.focus();
	then();
}

// To the widest bar of it. Inverted, a function that was never innermost begins no stack: it is shown upright.
function zoomHit(index) {
	const {key} = hits[index], wanted = () => hits.find((hit) => hit.key === key).node;
	let node = view.inverted ? Array.from(view.tree.children(0, view.weight)).find((child) => view.tree.key[child] === key) : wanted();
	leaveSearch(() => {
		if (node === undefined) {
			toggle("inverted", false);
			node = wanted();
		}
		view.selected = node;
		zoom(node);
	});
}

function onHit(event) {
	const item = event.target.closest("li");
	if (item)
		zoomHit(Number(item.id.slice(4)));
}
