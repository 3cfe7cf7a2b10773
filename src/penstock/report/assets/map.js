// The map: squarified rectangles (Bruls, Huizing, van Wijk 2000), partitions outside, their files inside.

const KINDS = {
  skip: { name: "not read", mark: () => draw("path", { class: "on-skip", d: "M-2 10 10 -2 M4 16 16 4", "stroke-width": "1" }) },
  keep: { name: "read, rows are checked", mark: () => draw("circle", { class: "on-keep", cx: "4", cy: "4", r: "1.4" }) },
  whole: { name: "read, every row matches", mark: () => null },
  along: { name: "read along, only others in its file match",
    mark: () => draw("path", { class: "on-along", d: "M0 0 8 8 M8 0 0 8", "stroke-width": "1.2" }) },
};
const LABEL = 15;

// One definition for the map and its legend; it must be drawn somewhere, or nothing is filled with it.
function patterns() {
  return draw("svg", { class: "unseen", "aria-hidden": "true" }, draw("defs", {}, ...Object.entries(KINDS).map(([kind, { mark }]) => draw("pattern",
    { id: `of-${kind}`, width: "8", height: "8", patternUnits: "userSpaceOnUse" },
    draw("rect", { class: `of-${kind}`, width: "8", height: "8" }), mark()))));
}

// Rectangles for items with a `weight`, the largest first, in a box.
function squarify(items, box) {
  const total = items.reduce((sum, item) => sum + item.weight, 0);
  const scale = total ? (box.w * box.h) / total : 0;
  let { x, y, w, h } = box;
  const placed = [];
  for (let i = 0; i < items.length; ) {
    const side = Math.max(1e-6, Math.min(w, h));
    let sum = 0, worst = Infinity, end = i;
    const largest = items[i].weight * scale;
    for (; end < items.length; end++) {
      const area = items[end].weight * scale;
      const grown = sum + area;
      const ratio = Math.max((side * side * largest) / (grown * grown), (grown * grown) / (side * side * area));
      if (end > i && ratio > worst) break;
      sum = grown;
      worst = ratio;
    }
    const thick = sum / side;
    let along = 0;
    for (; i < end; i++) {
      const long = sum ? (side * items[i].weight * scale) / sum : 0;
      placed.push(w >= h ? { item: items[i], x, y: y + along, w: thick, h: long }
        : { item: items[i], x: x + along, y, w: long, h: thick });
      along += long;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
  }
  return placed;
}

// A frame with its name, where there is room for one, and the box that is left in it.
function frame({ x, y, w, h }, name, kind) {
  const named = w > 40 && h > 2.2 * LABEL;
  const top = named ? LABEL : Math.min(1, h / 4), edge = Math.min(1.5, w / 8, h / 8);
  const parts = [draw("rect", { class: named ? kind : "frame thin", x, y, width: Math.max(.1, w), height: Math.max(.1, h), "aria-hidden": "true" })];
  if (named) {  // an svg of its own cuts the text off
    parts.push(draw("svg", { x: x + 3, y, width: Math.max(1, w - 6), height: LABEL, "aria-hidden": "true" },
      draw("text", { class: "name", x: "0", y: "11" }, name)));
  }
  return { parts, box: { x: x + edge, y: y + top, w: Math.max(0, w - 2 * edge), h: Math.max(0, h - top - edge) } };
}

class TreeMap {
  constructor(map, level) {
    this.map = map;
    this.level = level;
    this.onlyRead = false;
    this.at = 0;
    this.svg = draw("svg", { id: "tree", role: "listbox", "aria-label":
      "Files by partition. Left and right go from file to file, up and down from partition to partition." });
    this.svg.addEventListener("keydown", (event) => this.onKey(event));
    this.svg.addEventListener("focusin", (event) => this.onFocus(event.target));
    this.svg.addEventListener("focusout", () => this.leave());
    this.svg.addEventListener("pointerover", (event) => this.onPointer(event));
    this.svg.addEventListener("pointerleave", (event) => this.onLeave(event));
    byId("tip").onpointerleave = () => hideTip();
  }

  groups() {
    const wanted = (cell) => !this.onlyRead || cell.verdict === "keep" || cell.verdict === "whole";
    return [...this.map.groups, ...this.map.others]
      .map((group) => ({ ...group, cells: group.cells.filter(wanted) }))
      .filter((group) => group.cells.length)
      .map((group) => ({ group, weight: group.cells.reduce((sum, cell) => sum + Math.max(1, cell.bytes), 0) }))
      .sort((a, b) => b.weight - a.weight);
  }

  // Partitions of several fields lie together by the first one, where that makes few blocks of many.
  blocks(groups) {
    const byFirst = new Map();
    for (const item of groups) {
      const [first, ...rest] = item.group.values ?? [];
      const name = rest.length ? first : item.group.label;
      item.short = rest.join(" · ");
      byFirst.set(name, [...(byFirst.get(name) ?? []), item]);
    }
    if (byFirst.size < 2 || (!this.map.others.length && byFirst.size > groups.length / 2)) return null;
    const sum = (items) => items.reduce((weight, item) => weight + item.weight, 0);
    return [...byFirst].map(([name, items]) => ({ name, items, weight: sum(items) })).sort((a, b) => b.weight - a.weight);
  }

  render() {
    const w = Math.max(200, this.svg.clientWidth || 320), h = Math.round(Math.min(560, Math.max(320, w * 0.55)));
    this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    this.cells = [];
    this.ring = draw("rect", { id: "ring", visibility: "hidden" });
    this.drawn = 0;
    const groups = this.groups(), blocks = this.blocks(groups), box = { x: 0, y: 0, w, h };
    const drawn = blocks ? squarify(blocks, box).map((place) => this.drawBlock(place))
      : squarify(groups, box).map((place) => this.drawGroup(place, (group) => (group.values ?? [group.label]).join(" · ")));
    this.svg.replaceChildren(...drawn, this.ring);
    this.at = Math.min(this.at, Math.max(0, this.cells.length - 1));
    this.cells[this.at]?.node.setAttribute("tabindex", "0");
    this.svg.style.display = this.cells.length ? "block" : "none";
  }

  drawBlock(place) {
    const { name, items } = place.item;
    const { box, parts } = frame(place, name, "frame block");
    const own = new Map(items.map((item) => [item.group, item.short]));
    return draw("g", {}, ...parts, ...squarify(items, box).map((inner) => this.drawGroup(inner, (group) => own.get(group))));
  }

  drawGroup(place, nameOf) {
    const { group } = place.item;
    const number = this.drawn++;
    const { box, parts } = frame(place, nameOf(group) || group.label, "frame");
    const items = group.cells.map((cell) => ({ cell, weight: Math.max(1, cell.bytes) })).sort((a, b) => b.weight - a.weight);
    const cells = squarify(items, box).map((rect) => this.drawCell(rect, group, number));
    return draw("g", { role: "group", "aria-label": group.label }, ...parts, ...cells);
  }

  drawCell({ x, y, w, h, item: { cell } }, group, number) {
    const file = cell.file === undefined ? null : this.map.files[cell.file];
    const facts = this.facts(cell, group, file);
    const node = draw("rect", {
      class: file && file.partitions > 1 ? "cell shared" : "cell", role: "option", "aria-selected": "false", tabindex: "-1",
      x, y, width: Math.max(.4, w), height: Math.max(.4, h), fill: `url(#of-${cell.verdict})`,
      "aria-label": facts.map(([head, text]) => `${head}: ${text}`).join("; "), "data-verdict": cell.verdict,
      "data-at": this.cells.length,
    });
    this.cells.push({ node, cell, facts, group: number });
    return node;
  }

  facts(cell, group, file) {
    const rows = cell.rows === null || cell.rows === undefined ? "" : `, ${many(cell.rows, "rows")}`;
    const lines = [["partition", group.label]];
    if (!file) return [...lines, ["files", `${count(cell.files)}, summed up`], ["size", bytes(cell.bytes)], ["verdict", KINDS[cell.verdict].name]];
    lines.push(["file", file.path], ["size", `${bytes(cell.bytes)}${rows}`]);
    if (file.partitions > 1) lines.push(["shared", `with ${many(file.partitions - 1, "partitions")} more, ${bytes(file.bytes)} in all`]);
    lines.push(["verdict", KINDS[cell.verdict].name], ["reason", this.map.reasons[file.reason]]);
    if (!file.looked) lines.push(["stage", this.level === "manifest" ? "its manifest was not opened" : "its directory was not listed"]);
    if (file.residual !== undefined) lines.push(["left to check", this.map.residuals[file.residual]]);
    if (file.deletes) lines.push(["deletes", `${many(file.deletes, "delete files")} apply`]);
    return lines;
  }

  find(node) {
    return node instanceof Element && node.hasAttribute("data-at") ? this.cells[Number(node.getAttribute("data-at"))] : null;
  }

  onFocus(node) {
    const entry = this.find(node);
    if (!entry) return;
    this.cells[this.at]?.node.setAttribute("tabindex", "-1");
    this.at = this.cells.indexOf(entry);
    node.setAttribute("tabindex", "0");
    node.setAttribute("aria-selected", "true");
    for (const name of ["x", "y", "width", "height"]) this.ring.setAttribute(name, node.getAttribute(name));
    this.ring.setAttribute("visibility", "visible");
    const box = node.getBoundingClientRect();
    this.show(entry, box.left + box.width / 2, box.bottom);
  }

  onPointer(event) {
    const entry = this.find(event.target);
    if (entry) this.show(entry, event.clientX, event.clientY);
  }

  onLeave(event) {
    if (event.relatedTarget === byId("tip") || byId("tip").contains(event.relatedTarget)) return;
    this.mark(null);
    hideTip();
  }

  leave() {
    this.cells[this.at]?.node.setAttribute("aria-selected", "false");
    this.ring.setAttribute("visibility", "hidden");
    this.mark(null);
    hideTip();
  }

  show(entry, x, y) {
    this.mark(entry.cell.file);
    showTip(entry.facts, x, y);
  }

  // All pieces of one file are marked together: partitions that share it lie in several places.
  mark(file) {
    for (const { node, cell } of this.cells) node.classList.toggle("same", file !== null && file !== undefined && cell.file === file);
  }

  onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const leap = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    let to = null;
    if (step) to = this.at + step;
    else if (leap) to = this.leap(leap);
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = this.cells.length - 1;
    else if (event.key === "Escape") hideTip();
    if (to === null || to < 0 || to >= this.cells.length) return;
    event.preventDefault();
    this.cells[to].node.focus({ preventScroll: false });
  }

  leap(by) {
    const group = this.cells[this.at].group + by;
    const first = this.cells.findIndex((cell) => cell.group === group);
    return first < 0 ? null : first;
  }
}

function showTip(facts, x, y) {
  const tip = byId("tip");
  tip.replaceChildren(el("dl", {}, ...facts.flatMap(([head, text]) => [el("dt", {}, head), el("dd", {}, text)])));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const below = y + 14 + height <= innerHeight;
  tip.style.left = `${Math.max(8, Math.min(x + 10, innerWidth - width - 8))}px`;
  tip.style.top = `${below ? y + 14 : Math.max(8, y - height - 14)}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
addEventListener("scroll", () => {
  if (tree?.svg.contains(document.activeElement)) tree.onFocus(document.activeElement);
  else hideTip();
}, { passive: true });
