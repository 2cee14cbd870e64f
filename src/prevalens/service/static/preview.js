// The first rows of a file, how it is read, and which of its columns is what.

import { post, upload } from "./client.js";
import { calm, complain, make, options, show } from "./dom.js";
import { cell, plural } from "./format.js";
import { sending } from "./progress.js";

const ENCODINGS = [
  ["utf-8", "UTF-8"], ["cp1252", "Western European (Windows-1252)"], ["cp1250", "Central European (Windows-1250)"],
  ["cp1251", "Cyrillic (Windows-1251)"], ["cp1253", "Greek (Windows-1253)"], ["cp1254", "Turkish (Windows-1254)"],
  ["iso-8859-15", "Western European (ISO 8859-15)"], ["mac-roman", "Western European (Mac)"], ["utf-16", "UTF-16"],
  ["shift_jis", "Japanese (Shift JIS)"], ["gb18030", "Chinese (GB 18030)"], ["big5", "Chinese (Big5)"], ["euc-kr", "Korean (EUC-KR)"],
];
const DELIMITERS = [[",", "comma"], [";", "semicolon"], ["\t", "tab"], ["|", "vertical bar"], [" ", "space"]];
const BINARY = /\.(parquet|pq|xlsx|xlsm)$/i;
const JSON_FILE = /\.(json|jsonl|ndjson)(\.gz)?$/i;

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

// Choices of which one is taken: the one chosen, else a guess that says so, else none.
export function offer(select, choices, chosen, guess = "") {
  const known = choices.some(([value]) => value === chosen);
  const value = known ? chosen : guess;
  options(select, choices.map(([one, text]) => [one, !known && one && one === value ? `${text} (a guess)` : text]), value);
}

// The only column of a kind, or the only one with a usual name; else nothing is guessed.
export function likely(list, usual) {
  const named = list.filter((name) => usual.test(name));
  return list.length === 1 ? list[0] : named.length === 1 ? named[0] : "";
}

function field(text, id, choices, chosen) {
  const select = make("select", { id });
  options(select, choices, chosen);
  return [make("label", {}, `${text} `, select), select];
}

function readingSelects(id, reading) {
  const guess = ENCODINGS.find(([value]) => reading.guessed && value === reading.encoding);
  const shown = guess ? `${guess[1]} (a guess)` : "as the file shows";
  const [first, encoding] = field("Encoding", `${id}-encoding`, [["", shown], ...ENCODINGS], guess ? "" : reading.encoding ?? "");
  const [second, delimiter] = field("Separator", `${id}-delimiter`, [["", "as the file shows"], ...DELIMITERS], reading.delimiter ?? "");
  const chosen = () => ({ encoding: encoding.value || null, delimiter: delimiter.value || null });
  return { labels: [first, second], selects: [encoding, delimiter], chosen };
}

// How the text of an upload is read; `changed` is called when it is read in another way.
export function readingFields(file, id, changed) {
  if (BINARY.test(file.name)) return [];
  const { labels, selects, chosen } = readingSelects(id, file.reading);
  for (const select of selects) {
    select.addEventListener("change", async () => {
      calm();
      try {
        Object.assign(file, await post(`/v1/uploads/${file.id}/reading`, chosen()));
      } catch (error) {
        complain(error);
      }
      changed();
      document.getElementById(select.id)?.focus({ preventScroll: true });
    });
  }
  return JSON_FILE.test(file.name) ? labels.slice(0, 1) : labels;
}

// Send files; those that cannot be read are sent again as soon as one says how to read them.
export async function send(files, progress, unread, taken, reading = {}) {
  calm();
  show(unread, false);
  try {
    const title = `Sending ${files.length === 1 ? files[0].name : plural(files.length, "file")}`;
    taken(await upload(files, sending(progress, title), reading));
  } catch (error) {
    complain(error);
    if (error.code === "bad_input" && !files.some((file) => BINARY.test(file.name))) askReading(files, progress, unread, taken, reading);
  } finally {
    show(progress, false);
  }
}

function askReading(files, progress, unread, taken, reading) {
  const { labels, selects, chosen } = readingSelects(unread.id, reading);
  for (const select of selects) select.addEventListener("change", () => send(files, progress, unread, taken, chosen()));
  const said = `If ${files.length === 1 ? files[0].name : "one of the files"} is to be read in another way, say how; it is sent again.`;
  unread.replaceChildren(make("p", { className: "hint" }, said), make("div", { className: "fields" }, labels));
  show(unread, true);
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
