// What the page says, section by section.

function into(id, ...children) {
  byId(id).querySelector(":scope > div").replaceChildren(...children.filter((child) => child !== null));
}

function showAll(data) {
  showAbout(data);
  showAnswer(data);
  showFunnel(data);
  showMap(data);
  into("sizes", el("div", { class: "pair" }, sizes(data.sizes.partitions), sizes(data.sizes.files)));
  showKeys(data);
  showAdvice(data.advice);
  into("explain", scrollingText("What penstock explain prints", data.explain));
  byId("foot").textContent = `Made by Penstock ${data.penstock} at ${data.made.replace("T", " ")}.`;
}

function scrollingText(label, text) {
  return el("pre", { tabindex: "0", role: "region", "aria-label": label }, text);
}

function showAbout({ table }) {
  byId("name").textContent = table.name;
  const facts = [table.kind, many(table.partitions, "partitions"), many(table.files, "files"), bytes(table.bytes)];
  if (table.rows !== null) facts.push(many(table.rows, "rows"));
  if (table.partitioned_by.length) facts.push(`partitioned by ${table.partitioned_by.join(", ")}`);
  if (table.coalesce) facts.push(`partitions share files by ${table.coalesce}`);
  if (table.snapshot) facts.push(`snapshot ${table.snapshot}`);
  byId("about").textContent = facts.join(" · ");
}

// Of all files in the table: of a layout of directories, the plan counts those in directories that it listed.
function headline({ report: { files }, table }) {
  const whole = files.kept_whole ? `, ${count(files.kept_whole)} of them whole` : "";
  return `${count(files.kept)} of ${many(table.files, "files")} ${files.kept === 1 ? "is" : "are"} read${whole}`;
}

function showAnswer(data) {
  const where = data.where ? el("p", {}, "for ", el("code", {}, data.where)) : el("p", { class: "muted" }, "for a query without a predicate");
  byId("answer").replaceChildren(el("p", { class: "headline", id: "headline" }, headline(data)), where);
}

function stage(head, summary, whole, parts, reasons) {
  return el("li", {}, el("div", { class: "stage-head" }, el("strong", {}, head), el("span", {}, summary)), bar(whole, parts),
    reasons.length ? el("ul", { class: "reasons muted" }, ...reasons.map((text) => el("li", {}, text))) : null);
}

function showFunnel({ stages, report, table, notes }) {
  const items = stages.map((each) => stage(each.kind, `${count(each.kept)} of ${count(each.total)} kept ${share(each.kept, each.total)}`,
    each.total, [[each.kept_whole, "sure"], [each.kept - each.kept_whole, ""]],
    Object.entries(each.skipped_by_reason).sort((a, b) => b[1] - a[1]).map(([why, number]) => `${many(number, each.kind)} skipped by ${why}`)));
  const { rows, rows_kept: rowsKept, bytes_kept: kept } = report.files;
  if (rows !== null && rowsKept !== null) items.push(stage("rows", `${count(rowsKept)} of ${count(rows)} in files that are read ${share(rowsKept, rows)}`, rows, [[rowsKept, ""]], []));
  if (kept !== null) items.push(stage("bytes", `${bytes(kept)} of ${bytes(table.bytes)} ${share(kept, table.bytes)}`, table.bytes, [[kept, ""]], []));
  const facts = [`Planned in ${duration(report.planning_seconds)}.`];
  if (report.list_calls) facts.push(`${many(report.list_calls, "List calls")}.`);
  const unused = report.unused.map(({ predicate, why }) => el("li", {}, `${predicate}: ${why}; it never skips a file`));
  into("funnel", el("ol", { class: "stages" }, ...items), el("p", { id: "planned" }, facts.join(" ")),
    unused.length + notes.length ? el("ul", {}, ...unused, ...notes.map((note) => el("li", {}, note))) : null);
}

function legend(totals) {
  const items = Object.entries(KINDS).map(([kind, { name }]) => {
    const of = totals[kind];
    const number = kind === "along" ? many(of.pieces, "partitions") : many(of.files, "files");
    const sample = draw("svg", { viewBox: "0 0 24 16", "aria-hidden": "true" },
      draw("rect", { class: "cell", width: "24", height: "16", fill: `url(#of-${kind})` }));
    return kind === "along" && !of.pieces ? null : el("li", {}, sample, `${name}: ${number}, ${bytes(of.bytes)}`);
  });
  return el("ul", { class: "legend" }, ...items);
}

let tree = null;
let resized = null;
let onlyRead = false;

function showMap({ map, report }) {
  tree = new TreeMap(map, "manifests" in report ? "manifest" : "directory");
  tree.onlyRead = onlyRead;
  const nothing = el("p", { id: "nothing", class: "muted" });
  const again = () => {
    tree.render();
    nothing.textContent = tree.cells.length ? "" : onlyRead ? "Nothing is read." : "The table has no files.";
  };
  const choice = (text, value) => {
    const input = el("input", { type: "radio", name: "shown", ...(value === onlyRead ? { checked: "" } : {}) });
    input.addEventListener("change", () => { onlyRead = tree.onlyRead = value; again(); });
    return el("label", {}, input, text);
  };
  const place = el("div", {});
  const button = el("button", { type: "button", class: "quiet", "aria-expanded": "false" }, "Show as table");
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Hide the table" : "Show as table";
    place.replaceChildren(...(open ? [mapTable(tree)] : []));
  });
  into("map", el("p", { class: "muted" }, "An area is bytes; a frame is a partition, and what is in it are its files. A dashed edge marks a file that several partitions share."),
    legend(map.totals), el("div", { class: "tools" },
      el("fieldset", {}, el("legend", {}, "Show"), choice("all files", false), choice("only what is read", true)), button),
    tree.svg, nothing, summedUp(map), place);
  again();
  resized?.disconnect();
  let width = tree.svg.clientWidth;
  resized = new ResizeObserver(() => { if (tree.svg.clientWidth !== width) { width = tree.svg.clientWidth; again(); } });
  resized.observe(tree.svg.parentElement);
}

function summedUp(map) {
  const inside = map.groups.reduce((sum, group) => sum + group.cells.filter((cell) => cell.file === undefined).reduce((n, cell) => n + cell.files, 0), 0);
  const sentences = [];
  if (map.others.length) sentences.push(`the ${count(map.groups.length)} of ${many(map.partitions, "partitions")} that are read or largest are shown one by one, the others summed up`);
  if (inside) sentences.push(`${many(inside, "files")} of large partitions are summed up by verdict`);
  return sentences.length ? el("p", { id: "summed", class: "muted" }, `To keep the page small, ${sentences.join("; ")}.`) : null;
}

function mapTable(shown) {
  const heads = ["partition", "file", "bytes", "rows", "verdict", "reason", "left to check"];
  const rows = shown.cells.map(({ cell, facts }) => {
    const of = Object.fromEntries(facts);
    return [of.partition, of.file ?? `${many(cell.files, "files")}, summed up`, count(cell.bytes), cell.rows === null || cell.rows === undefined ? "" : count(cell.rows),
      of.verdict, [of.reason, of.stage].filter(Boolean).join("; "), of["left to check"] ?? ""];
  });
  return scrolling("The map as a table", table("Files by partition", heads, rows, ["wide", "wide", "number", "number", "", "wide", "wide"]));
}

function sizes(of) {
  const most = Math.max(1, ...of.bands.map((band) => band.count));
  const rows = of.bands.map((band) => el("tr", {}, el("th", { scope: "row", class: "number" }, band.from ? `${bytes(band.from)} –` : "empty"),
    el("td", { class: "track" }, bar(most, [[band.read, "read"], [band.count - band.read, ""]])),
    el("td", { class: "number" }, `${count(band.count)}${band.read ? `, ${count(band.read)} read` : ""}`)));
  const caption = `${of.noun} by size, in steps of a factor of four`;
  const shown = el("table", { class: "bands" }, el("caption", { class: "unseen" }, caption),
    el("thead", { class: "unseen" }, el("tr", {}, el("th", { scope: "col" }, "from"), el("td", {}), el("th", { scope: "col" }, of.noun))), el("tbody", {}, ...rows));
  return el("div", {}, el("h3", {}, of.noun[0].toUpperCase() + of.noun.slice(1)), el("p", { class: "muted" }, of.said), of.bands.length ? shown : null);
}

function served(key) {
  const parts = [[key.sidecar, "from its sidecar alone"], [key.both, "from its sidecar and the map"], [key.map, "from the map"]];
  return parts.filter(([number]) => number).map(([number, how]) => `${how} in ${many(number, "files")}`).join(", ") || "in no file that is read";
}

function showKeys({ keys, report }) {
  if (keys.error) return into("keys", el("p", {}, keys.error));
  const lookups = report.keys.map((key) => el("li", {}, el("code", {}, key.key), ` ${served(key)}`));
  const rows = keys.hot.map((key) => [key.column, key.key, key.mode === "mirror" ? "copied beside the map" : "moved out of the map",
    key.sidecar === undefined ? "as the first file says" : served(key), key.current === false ? "not written any more" : ""]);
  into("keys", lookups.length ? el("p", {}, "Asked for by this query:") : null, lookups.length ? el("ul", {}, ...lookups) : null,
    rows.length ? scrolling("Hot keys", table("Hot keys of maps", ["map", "key", "values are", "in all files", "note"], rows, ["", "", "", "wide", ""]))
      : el("p", { class: "muted" }, "No key of a map has a column of its own."));
}

function showAdvice(advice) {
  into("advice", el("p", {}, advice.error ?? advice.said), advice.text ? scrollingText("Advice in full", advice.text) : null);
}
