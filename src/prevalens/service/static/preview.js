// The first rows of a file, and which of its columns is what.

import { make } from "./dom.js";
import { cell, plural } from "./format.js";

export function previewTable(file) {
  const numeric = file.columns.map((column) => column.kind === "number" || column.kind === "binary");
  const head = file.columns.map((column, i) =>
    make("th", { scope: "col", className: numeric[i] ? "number" : "" }, column.name, make("small", {}, column.kind)));
  const rows = file.rows.map((row) => make("tr", {}, row.map((value, i) =>
    make("td", { className: numeric[i] ? "number" : "cut" }, cell(value)))));
  const said = `${file.name}: the first ${plural(file.rows.length, "row")}`;
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": `First rows of ${file.name}` },
    make("table", {}, make("caption", {}, said), make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
}

export const names = (file, ...kinds) =>
  file.columns.filter((column) => !kinds.length || kinds.includes(column.kind)).map((column) => column.name);

export const pairs = (list) => list.map((name) => [name, name]);

// The column that most likely is meant: the same name, else the first of a kind.
export function likely(file, wanted, ...kinds) {
  const all = names(file);
  if (all.includes(wanted)) return wanted;
  return names(file, ...kinds)[0] ?? all[0];
}

export function ticks(fieldset, list, chosen) {
  const legend = fieldset.querySelector("legend");
  fieldset.replaceChildren(legend, ...list.map((name) =>
    make("label", {}, make("input", { type: "checkbox", value: name, checked: chosen.includes(name) }), name)));
}

export const ticked = (fieldset) => [...fieldset.querySelectorAll("input:checked")].map((box) => box.value);

// A file can be chosen with a click, with the keyboard, or dropped.
export function droppable(zone, input, take) {
  const over = (inside) => (event) => {
    event.preventDefault();
    zone.classList.toggle("over", inside);
  };
  zone.addEventListener("dragover", over(true));
  zone.addEventListener("dragleave", over(false));
  zone.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files.length) take([...event.dataTransfer.files]);
  });
  input.addEventListener("change", () => {
    if (input.files.length) take([...input.files]);
    input.value = "";
  });
}
