// SPDX-License-Identifier: Apache-2.0
// The two views, all files and one file's lines, and the callers and callees of a line. Whatever the profile holds becomes text nodes, never HTML.

const view = document.getElementById("view"), detail = document.getElementById("detail");
const state = {measure: measures[0], heat: "self", sort: "total", filter: "", file: null, line: null};

function element(tag, className, ...children) {
	const made = document.createElement(tag);
	if (className)
		made.className = className;
	made.append(...children);
	return made;
}

const link = (text, to) => Object.assign(element("a", "", text), {href: to});
const linkOf = (line) => `#${line.file.id}:${line.number}`;
const value = (spot, kind) => spot[kind][place(state.measure)];
const whole = () => data.sums[place(state.measure)];
const most = (spots) => spots.reduce((largest, spot) => Math.max(largest, value(spot, state.heat)), 1);
// What a table shows at most: more rows than this make the page slow, and nobody reads them.
const ROWS_MAX = 20000;

// Heat is told in words, too: the numbers stand beside it. The root, so that what is small can be seen.
function setHeat(row, spot, hottest) {
	const heat = Math.sqrt(value(spot, state.heat) / hottest);
	if (heat > 0) {
		row.dataset.heat = heat.toFixed(2);
		row.style.setProperty("--heat", heat.toFixed(3));
	}
}

function numbers(row, spot) {
	for (const kind of ["self", "total"])
		row.append(element("td", "", amount(value(spot, kind), state.measure)), element("td", "", percent(value(spot, kind), whole())));
}

// The instructions of a line, those with most first.
const opcodes = (line) => [...line.opcodes].sort((a, b) => b[1][place(state.measure)] - a[1][place(state.measure)] || (a[0] < b[0] ? -1 : 1));

function table(className, heads) {
	const body = element("tbody"), made = element("table", `rows ${className}`, element("thead", "", element("tr", "", ...heads)), body);
	return [made, body];
}

function showFiles() {
	const head = (text, kind) => {
		const button = element("button", "", state.sort === kind ? `${text} ▾` : text);
		button.addEventListener("click", () => { state.sort = kind; show(); });
		return element("th", kind === "name" ? "wide" : "", button);
	};
	const plain = (text) => element("th", "", text);
	const [made, body] = table("files", [head("Self", "self"), plain("%"), head("Total", "total"), plain("%"), head("File", "name")]);
	const wanted = state.filter.toLowerCase();
	const shown = files.filter((file) => file.name.toLowerCase().includes(wanted));
	const hottest = most(shown);
	shown.sort((a, b) => state.sort === "name" ? (a.name < b.name ? -1 : 1) : value(b, state.sort) - value(a, state.sort) || a.id - b.id);
	for (const file of shown.slice(0, ROWS_MAX)) {
		const row = element("tr");
		row.dataset.file = file.id;
		numbers(row, file);
		row.append(element("td", "wide", link(file.name, `#${file.id}`)));
		setHeat(row, file, hottest);
		body.append(row);
	}
	const left = data.sourcesLeftOut ? ` The source of ${data.sourcesLeftOut} files was left out: too large, or too many.` : "";
	view.replaceChildren(element("h1", "", "Files"), element("p", "lead",
		`${shown.length} of ${files.length} files, ${amount(whole(), state.measure) || 0} ${state.measure === "samples" ? "samples" : state.measure} in all.${left}${shown.length > ROWS_MAX ? ` The first ${ROWS_MAX} are shown.` : ""}`), made);
}

function showFile(file) {
	const plain = (text, className) => element("th", className || "", text);
	const [made, body] = table("code", [plain("Self"), plain("%"), plain("Total"), plain("%"), plain("Line"), plain(file.source ? "Source" : "Function", "wide")]);
	const hottest = most(file.lines);
	const at = new Map(file.lines.map((line) => [line.number, line]));
	// Lines that the source does not have (it was changed since) are shown behind it.
	const rows = file.source ? file.source.map((_, i) => i + 1) : [];
	for (const line of file.lines)
		if (!file.source || line.number < 1 || line.number > file.source.length)
			rows.push(line.number);
	for (const number of rows.slice(0, ROWS_MAX)) {
		const line = at.get(number), row = element("tr"), text = file.source && number >= 1 ? file.source[number - 1] : undefined;
		if (line) {
			row.dataset.line = number;
			numbers(row, line);
			setHeat(row, line, hottest);
			if (line.opcodes.length)
				row.title = opcodes(line).slice(0, 12).map(([name, sums]) => `${percent(sums[place(state.measure)], whole()) || "0 %"}  ${name}`).join("\n");
		} else {
			row.append(...Array.from({length: 4}, () => element("td")));
		}
		row.append(element("td", "number", number ? String(number) : "?"));
		row.append(text === undefined ? element("td", "wide function", line.name) : element("td", "wide", text || " "));
		body.append(row);
	}
	view.replaceChildren(element("h1", "", link("Files", "#"), " / ", file.name), element("p", "lead",
		`Self ${percent(value(file, "self"), whole()) || "0 %"}, total ${percent(value(file, "total"), whole()) || "0 %"} of the profile. `
		+ (rows.length > ROWS_MAX ? `The first ${ROWS_MAX} of ${rows.length} lines. ` : "")
		+ (file.source ? "Click a line, or Enter, for its callers and callees." : "Its source could not be read: the lines with samples.")), made);
}

function showDetail(line) {
	detail.hidden = !line;
	if (!line)
		return;
	const list = (title, items) => {
		const made = element("ul");
		items.sort((a, b) => b[1][place(state.measure)] - a[1][place(state.measure)] || a[0].id - b[0].id);
		for (const [other, sums] of items.slice(0, 200))
			made.append(element("li", "", element("span", "", percent(sums[place(state.measure)], whole())),
				link(`${other.name}  ${other.file.name}:${other.number}`, linkOf(other))));
		if (items.length > 200)
			made.append(element("li", "", `and ${items.length - 200} more`));
		return element("section", "", element("h2", "", `${title} (${items.length})`), made);
	};
	const instructions = () => {
		const made = element("ul");
		for (const [name, sums] of opcodes(line))
			made.append(element("li", "", element("span", "", percent(sums[place(state.measure)], whole())),
				`${name}  ${amount(sums[place(state.measure)], state.measure)}`));
		return element("section", "opcodes", element("h2", "", `Instructions (${line.opcodes.length})`), made);
	};
	const {callers, callees} = edges(line);
	detail.replaceChildren(element("div", "head", element("b", "", line.name), `  ${line.file.name}:${line.number}  self `
		+ `${percent(value(line, "self"), whole()) || "0 %"}, total ${percent(value(line, "total"), whole()) || "0 %"}`), list("Called from", callers), list("Calls", callees), ...(line.opcodes.length ? [instructions()] : []));
}

function mark(row) {
	view.querySelector("tr.now")?.classList.remove("now");
	if (row) {
		row.classList.add("now");
		row.scrollIntoView({block: "nearest"});
	}
}

function show() {
	if (state.file)
		showFile(state.file);
	else
		showFiles();
	showDetail(state.line);
	document.title = `${state.file ? state.file.name : data.title || "profile"} – sampled heat map`;
	if (state.line) {
		const row = view.querySelector(`tr[data-line="${state.line.number}"]`);
		mark(row);
		row?.scrollIntoView({block: "center"});
	}
}
