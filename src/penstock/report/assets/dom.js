// Elements are made here and nowhere else. Texts go in as text nodes: nothing in the data can become markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const numbers = new Intl.NumberFormat("en");

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

function count(number) {
  return numbers.format(number);
}

function many(number, noun) {
  const one = { directories: "directory" }[noun] ?? noun.replace(/s$/, "");
  return `${count(number)} ${number === 1 ? one : noun}`;
}

function bytes(number) {
  let size = number;
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (size < 1024 || unit === "TiB") return unit === "B" ? `${size} B` : `${size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
}

function share(part, whole) {
  if (!whole) return "";
  const percent = (100 * part) / whole;
  return percent >= 10 || part === 0 ? `(${percent.toFixed(0)} %)` : `(${Number(percent.toPrecision(2))} %)`;
}

function duration(seconds) {
  return seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1000).toFixed(1)} ms`;
}

// A bar of parts of a whole: [[part, class], …]. Widths are set by script, because the policy forbids style attributes.
function bar(whole, parts) {
  const track = el("div", { class: "bar", "aria-hidden": "true" });
  for (const [part, kind] of parts.filter(([size]) => size)) {
    const piece = el("span", { class: kind });
    piece.style.width = `max(${(100 * part) / whole}%, 2px)`;
    track.append(piece);
  }
  return track;
}

function table(caption, heads, rows, kinds) {
  const head = el("tr", {}, ...heads.map((text, i) => el("th", { scope: "col", class: kinds[i] ?? "" }, text)));
  const body = rows.map((row) => el("tr", {}, ...row.map((text, i) => el("td", { class: kinds[i] ?? "" }, text))));
  return el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, head), el("tbody", {}, ...body));
}

function scrolling(label, ...children) {
  return el("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, ...children);
}
