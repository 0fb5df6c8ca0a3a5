// SPDX-License-Identifier: Apache-2.0
// Trees as they are drawn: threads merged, by function or by line, upright or inverted. Both kinds offer count, parent, depth,
// key, frame, total, self, start, and children(node, weight). A key is a frame's number by line, a symbol's by function, below 0 a
// thread's, and ALL at the root.
const ALL = -1, INVERTED_DEPTH_MAX = 1024;

class UprightTree {
	// separate: a level of threads below the root.
	constructor(parts, byLine, separate) {
		let room = 1 + parts.length;
		for (const part of parts)
			room += part.count;
		this.byLine = byLine;
		this.parent = new Int32Array(room);
		this.key = new Int32Array(room);
		this.frame = new Int32Array(room); // the heaviest of those that were merged: says which line to show
		this.depth = new Int32Array(room);
		this.self = new Float64Array(room * VALUES);
		this.own = new Uint8Array(room);   // has self values
		this.heaviest = new Float64Array(room);
		this.slots = new Int32Array(1 << Math.ceil(Math.log2(room * 2 + 2)));
		this.count = 1;
		this.key[0] = ALL;
		for (const part of parts)
			this.merge(part, separate ? this.find(0, -2 - part.index) : 0);
		this.finish();
	}

	// The child of `parent` with this key, made when there is none.
	find(parent, key) {
		const mask = this.slots.length - 1;
		let at = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(key + 7, 0x85ebca6b));
		at = (at ^ at >>> 15) & mask;
		for (let node; (node = this.slots[at]) !== 0; at = (at + 1) & mask)
			if (this.parent[node] === parent && this.key[node] === key)
				return node;
		const node = this.slots[at] = this.count++;
		this.parent[node] = parent;
		this.key[node] = key;
		this.depth[node] = this.depth[parent] + 1;
		return node;
	}

	merge(part, top) {
		const to = new Int32Array(part.count), {self} = this;
		to[0] = top;
		for (let i = 0; i < part.count; i++) {
			const frame = part.frame[i];
			if (i > 0)
				to[i] = this.find(to[part.parent[i]], this.byLine ? frame : symbolOf(frame));
			const node = to[i], base = node * VALUES, from = i * VALUES;
			if (part.own[i] !== 0) {
				this.own[node] = 1;
				for (let value = 0; value < VALUES; value++)
					self[base + value] += part.self[from + value];
			}
			if (i > 0 && part.main[i] >= this.heaviest[node]) {
				this.heaviest[node] = part.main[i];
				this.frame[node] = frame;
			}
		}
	}

	finish() {
		const {count, parent} = this;
		this.slots = this.heaviest = null;
		const total = this.total = this.self.slice(0, count * VALUES);
		this.height = new Int32Array(count);
		this.offset = new Int32Array(count + 2);
		this.list = new Int32Array(count);
		this.start = new Float64Array(count);
		this.sortedBy = new Int8Array(count).fill(-1);
		for (let node = count - 1; node > 0; node--) {
			const above = parent[node], to = above * VALUES, from = node * VALUES;
			for (let value = 0; value < VALUES; value++)
				total[to + value] += total[from + value];
			this.height[above] = Math.max(this.height[above], this.height[node] + 1);
			this.offset[above + 2]++;
		}
		for (let node = 0; node < count; node++)
			this.offset[node + 2] += this.offset[node + 1];
		for (let node = 1; node < count; node++)
			this.list[this.offset[parent[node] + 1]++] = node;
	}

	// Children, widest first; their places are set on the way. A view into an array: not to be kept.
	children(node, weight) {
		const list = this.list.subarray(this.offset[node], this.offset[node + 1]);
		if (this.sortedBy[node] !== weight) {
			const {total, key} = this;
			if (list.length > 1)
				list.sort((a, b) => total[b * VALUES + weight] - total[a * VALUES + weight] || key[a] - key[b]);
			this.sortedBy[node] = weight;
		}
		let at = this.start[node];
		for (const child of list) {
			this.start[child] = at;
			at += this.total[child * VALUES + weight];
		}
		return list;
	}

	// The share of the stacks that hold a matching key anywhere: invert or not, it is the same.
	matched(matches, weight) {
		const below = new Uint8Array(this.count);
		let sum = 0;
		for (let node = 0; node < this.count; node++) { // parents first
			if (node > 0 && below[this.parent[node]])
				below[node] = 1;
			else if (this.key[node] >= 0 && matches[this.key[node]]) {
				below[node] = 1;
				sum += this.total[node * VALUES + weight];
			}
		}
		return sum;
	}
}

// From callees to callers. Nodes are made when they are asked for, since all of them can be many times as many as upright ones.
class InvertedTree {
	constructor(upright) {
		this.upright = upright;
		this.byLine = upright.byLine;
		this.parent = [0];
		this.key = [ALL];
		this.frame = [0];
		this.depth = [0];
		this.height = [0];
		this.total = Array.from(upright.total.subarray(0, VALUES));
		this.self = new Array(VALUES).fill(0);
		this.start = [0];
		this.lists = [null];
		this.sortedBy = [-1];
		this.count = 1;
		// A node stands for the self values of origins[i], each seen at its ancestor ats[i].
		const origins = [];
		for (let node = 1; node < upright.count; node++)
			if (upright.own[node] !== 0) {
				origins.push(node);
				this.height[0] = Math.max(this.height[0], upright.depth[node]);
			}
		this.height[0] = Math.min(this.height[0], INVERTED_DEPTH_MAX);
		this.origins = [origins];
		this.ats = [origins];
	}

	expand(node) {
		const {upright} = this, groups = new Map(), list = [];
		const origins = this.origins[node], ats = this.ats[node];
		this.lists[node] = list;
		this.origins[node] = this.ats[node] = null; // each list is used once
		if (this.depth[node] >= INVERTED_DEPTH_MAX)
			return;
		for (let i = 0; i < origins.length; i++) {
			const at = node === 0 ? ats[i] : upright.parent[ats[i]];
			if (at === 0)
				continue;
			let child = groups.get(upright.key[at]);
			if (child === undefined) {
				child = this.count++;
				groups.set(upright.key[at], child);
				list.push(child);
				this.parent[child] = node;
				this.key[child] = upright.key[at];
				this.frame[child] = upright.frame[at];
				this.depth[child] = this.depth[node] + 1;
				this.height[child] = 0;
				this.start[child] = 0;
				this.lists[child] = null;
				this.sortedBy[child] = -1;
				this.origins[child] = [];
				this.ats[child] = [];
				for (let value = 0; value < VALUES; value++) {
					this.total.push(0);
					this.self.push(0);
				}
			}
			for (let value = 0; value < VALUES; value++) {
				const amount = upright.self[origins[i] * VALUES + value];
				this.total[child * VALUES + value] += amount;
				if (node === 0)
					this.self[child * VALUES + value] += amount;
			}
			this.height[child] = Math.min(Math.max(this.height[child], upright.depth[at] - 1), INVERTED_DEPTH_MAX - this.depth[child]);
			this.origins[child].push(origins[i]);
			this.ats[child].push(at);
		}
	}

	children(node, weight) {
		if (!this.lists[node])
			this.expand(node);
		const list = this.lists[node];
		if (this.sortedBy[node] !== weight) {
			list.sort((a, b) => this.total[b * VALUES + weight] - this.total[a * VALUES + weight] || this.key[a] - this.key[b]);
			this.sortedBy[node] = weight;
		}
		let at = this.start[node];
		for (const child of list) {
			this.start[child] = at;
			at += this.total[child * VALUES + weight];
		}
		return list;
	}
}
