"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const body = document.querySelector("#runs tbody");
const filter = document.getElementById("filter");
const verdicts = document.getElementById("verdict");
let sorted = { column: null, up: true };

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function plain(value) {
  return typeof value === "number" ? String(+value.toPrecision(6)) : String(value ?? "");
}

function error(value) {
  return typeof value === "number" && value ? value.toExponential(1) : plain(value);
}

function seconds(value) {
  return typeof value === "number" ? value.toFixed(1) : "";
}

function word(run) { return run.verdict || run.state; }

const look = { train_seconds: seconds, iterations: plain };
const columns = [
  ...data.settings.map((label, i) => ({ label, of: (run) => run.settings[i], shown: plain })),
  { label: "verdict", of: word, shown: plain },
  ...Object.entries(data.found).map(([name, label]) => (
    { label, of: (run) => run.found[name], shown: look[name] || error })),
];

function small(rows, names) {
  const table = element("table");
  const head = table.createTHead().insertRow();
  names.forEach((name) => head.append(element("th", name)));
  const inner = table.createTBody();
  rows.forEach((row) => {
    const line = inner.insertRow();
    row.forEach((value) => line.append(element("td", error(value))));
  });
  return table;
}

function details(run) {
  const box = element("div");
  if (run.error) box.append(element("pre", run.error));
  const report = run.report;
  if (report) {
    box.append(element("p", report.reason));
    if (report.suggestion) box.append(element("p", "try: " + report.suggestion));
    const fields = Object.entries(report.fields);
    if (fields.length) box.append(small(
      fields.map(([name, f]) => [name, f.rel_l2, f.maximum, f.against]),
      ["field", "relative L2 error", "largest error", "against"]));
    box.append(small(
      Object.entries(report.equations).map(([name, e]) => [name, e.heldout, e.equation]),
      ["equation", "residual", ""]));
    box.append(small(
      report.conditions.map((c) => [c.name, c.violation, c.enforced, c.on]),
      ["condition", "violation", "enforced", "on"]));
    box.append(element("p", report.strategy, "gray"));
    report.warnings.forEach((w) => box.append(element("p", "warning: " + w, "unverified")));
  }
  if (run.picture) {
    const picture = element("img");
    picture.src = run.picture;
    picture.alt = "the solution of run " + run.id;
    box.append(picture);
  }
  const cell = element("td");
  cell.colSpan = columns.length;
  cell.append(box);
  const row = element("tr", undefined, "details");
  row.append(cell);
  return row;
}

function toggle(line, run) {
  const next = line.nextElementSibling;
  const open = next && next.classList.contains("details");
  if (open) next.remove(); else line.after(details(run));
  line.setAttribute("aria-expanded", String(!open));
}

function line(run) {
  const row = element("tr", undefined, "run");
  row.tabIndex = 0;
  row.setAttribute("aria-expanded", "false");
  columns.forEach((column) => {
    const value = column.of(run);
    const color = column.of === word ? word(run).split(" ")[0] : "";
    const kind = typeof value === "number" ? "number" : color;
    row.append(element("td", column.shown(value), kind));
  });
  row.addEventListener("click", () => toggle(row, run));
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter") toggle(row, run);
  });
  return row;
}

function compare(a, b) {
  const empty = (v) => v === null || v === undefined || v === "";
  if (empty(a) || empty(b)) return empty(a) - empty(b);
  const order = typeof a === "number" && typeof b === "number"
    ? a - b : String(a).localeCompare(String(b));
  return sorted.up ? order : -order;
}

function draw() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let runs = data.runs.filter((run) => {
    const cells = columns.map((column) => column.shown(column.of(run)));
    const text = [run.id, run.error, ...cells].join(" ").toLowerCase();
    const wanted = !verdicts.value || word(run).split(" ")[0] === verdicts.value;
    return wanted && words.every((w) => text.includes(w));
  });
  if (sorted.column !== null) {
    const { of } = sorted.column;
    runs = [...runs].sort((a, b) => compare(of(a), of(b)));
  }
  body.replaceChildren(...runs.map(line));
  document.getElementById("count").textContent = runs.length + " of " + data.runs.length;
}

columns.forEach((column) => {
  const numbers = data.runs.some((run) => typeof column.of(run) === "number");
  const head = element("th", undefined, numbers ? "number" : "");
  const button = element("button", column.label);
  button.type = "button";
  button.addEventListener("click", () => {
    sorted = { column, up: sorted.column === column ? !sorted.up : true };
    document.querySelectorAll("#runs th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
    draw();
  });
  head.append(button);
  document.querySelector("#runs thead tr").append(head);
});
[...new Set(data.runs.map((run) => word(run).split(" ")[0]))].sort().forEach((name) => {
  verdicts.append(element("option", name));
});
filter.addEventListener("input", draw);
verdicts.addEventListener("change", draw);
draw();
