// SPDX-License-Identifier: Apache-2.0
// The address (#, #FILE, #FILE:LINE), keys and controls.

const filter = document.getElementById("filter"), root = document.documentElement;
const dialogs = {facts: document.getElementById("facts"), help: document.getElementById("help")};

function go() {
	const [file, number] = location.hash.slice(1).split(":");
	const before = state.file;
	state.file = file === "" ? null : files[Number(file)] || null;
	state.line = state.file && number !== undefined ? state.file.lines.find((line) => line.number === Number(number)) || null : null;
	if (state.file !== before || !state.line) {
		view.scrollTop = 0;
		show();
	} else {
		showDetail(state.line);
		mark(view.querySelector(`tr[data-line="${state.line.number}"]`));
	}
}

const rows = () => [...view.querySelectorAll(state.file ? "tr[data-line]" : "tr[data-file]")];

function step(by) {
	const all = rows(), now = all.findIndex((row) => row.classList.contains("now"));
	mark(all[now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, now + by))]);
}

// To the next line by heat, hottest first.
function stepHottest(by) {
	if (!state.file)
		return;
	const hottest = state.file.lines.filter((line) => value(line, state.heat) > 0).sort((a, b) => value(b, state.heat) - value(a, state.heat) || a.id - b.id);
	const now = hottest.findIndex((line) => String(line.number) === view.querySelector("tr.now")?.dataset.line);
	const next = hottest[now < 0 ? 0 : Math.max(0, Math.min(hottest.length - 1, now + by))];
	if (next)
		mark(view.querySelector(`tr[data-line="${next.number}"]`));
}

function open(row) {
	if (row?.dataset.file)
		location.hash = row.dataset.file;
	else if (row?.dataset.line)
		location.hash = `${state.file.id}:${row.dataset.line}`;
}

function setDark(dark) {
	root.toggleAttribute("data-dark", dark);
}

function setHeatKind(kind) {
	state.heat = document.getElementById("heat").value = kind;
	show();
}

const keys = {
	"/": () => { filter.focus(); filter.select(); },
	j: () => step(1),
	k: () => step(-1),
	n: () => stepHottest(1),
	p: () => stepHottest(-1),
	Enter: () => open(view.querySelector("tr.now")),
	u: () => { location.hash = ""; },
	t: () => setHeatKind(state.heat === "self" ? "total" : "self"),
	d: () => setDark(!root.hasAttribute("data-dark")),
	s: () => dialogs.facts.showModal(),
	"?": () => dialogs.help.showModal(),
};

document.addEventListener("keydown", (event) => {
	if (event.target === filter) {
		if (event.key === "Escape" || event.key === "Enter")
			filter.blur();
		return;
	}
	if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("dialog, select, button, a[href]") && event.key === "Enter")
		return;
	if (Object.hasOwn(keys, event.key) && !document.querySelector("dialog[open]")) {
		event.preventDefault();
		keys[event.key]();
	}
});

view.addEventListener("click", (event) => {
	const row = event.target.closest("tr[data-line]");
	if (row && !event.target.closest("a"))
		open(row);
});
filter.addEventListener("input", () => {
	state.filter = filter.value;
	if (state.file)
		location.hash = "";
	else
		show();
});
document.getElementById("measure").addEventListener("change", (event) => { state.measure = event.target.value; show(); });
document.getElementById("heat").addEventListener("change", (event) => setHeatKind(event.target.value));
document.getElementById("theme").addEventListener("click", keys.d);
document.getElementById("facts-button").addEventListener("click", keys.s);
document.getElementById("help-button").addEventListener("click", keys["?"]);
addEventListener("hashchange", go);

for (const measure of measures)
	document.getElementById("measure").append(Object.assign(element("option", "", measure === "wall" ? "wall time" : measure), {value: measure}));
document.getElementById("title").textContent = data.title;
setDark(matchMedia("(prefers-color-scheme: dark)").matches);
{
	const losses = data.facts.filter((fact) => fact[2] === 2), button = document.getElementById("facts-button");
	button.textContent = losses.length ? `${losses.length} ${losses.length === 1 ? "loss" : "losses"}` : "no losses";
	button.classList.toggle("loss", losses.length > 0);
	for (const [label, text, weight] of data.facts)
		dialogs.facts.querySelector("table").append(element("tr", weight === 2 ? "loss" : "", element("td", "", label), element("td", "", text)));
}
go();
