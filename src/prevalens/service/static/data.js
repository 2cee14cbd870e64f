// The second step: what is asked about, and the address of its result.

import { get, post, remove } from "./client.js";
import { calm, complain, find, make, notice, options, recall, remember, say, show } from "./dom.js";
import { bytes } from "./format.js";
import { labelling } from "./labelling.js";
import { choose } from "./models.js";
import { droppable, names, offer, pairs, previewTable, readingFields, send } from "./preview.js";
import { follow } from "./progress.js";
import { showResult } from "./result.js";

const FREQUENCIES = [["D", "days"], ["W", "weeks"], ["M", "months"], ["Q", "quarters"], ["Y", "years"]];
const LEVELS = [["0.8", "80 %"], ["0.9", "90 %"], ["0.95", "95 %"], ["0.99", "99 %"], ["", "none"]];
const RESULT = /^#\/result\/([0-9a-f]{32})(?:\/([0-9a-f]{32}))?$/;
// Columns of a model that get a field each.
const FIELDS = 200;

const state = { files: [], shown: 0, model: null, busy: false, result: null, turn: 0, restored: false };
// What was chosen; files come and go, choices stay.
let choices = { columns: {}, split: null, freq: "M", interval: "0.9" };

export function setUpData() {
  droppable(find("drop"), find("files"), (files) => send(files, find("quantify-progress"), find("unread"), add));
  for (const radio of document.getElementsByName("source")) radio.addEventListener("change", arrange);
  find("paste").addEventListener("input", ready);
  find("estimate").addEventListener("click", () => estimate(request(), state.model.name));
  addEventListener("hashchange", () => openAddress());
  arrange();
}

export function useModel(model) {
  state.model = model;
  arrange();
}

// Files of the demo take the place of others, which can be brought back.
export function useFiles(files) {
  const before = state.files;
  state.files = files;
  source("files");
  arrange();
  if (!before.length) return;
  notice("The files of the demo took the place of yours.", () => {
    state.files = before;
    arrange();
  });
}

function add(files) {
  state.files.push(...files);
  arrange();
}

// The files and choices that this tab had, as far as the server still has the files.
export async function restoreData() {
  const kept = recall("data");
  if (kept) {
    choices = kept.choices;
    find("paste").value = kept.paste;
    source(kept.source);
    state.files = await stillThere(kept.files);
  }
  state.restored = true;
  arrange();
}

async function stillThere(wanted) {
  if (!wanted.length) return [];
  const { uploads } = await get("/v1/uploads");
  const found = wanted.map(({ id }) => uploads.find((upload) => upload.id === id)).filter(Boolean);
  const gone = wanted.filter(({ id }) => !uploads.some((upload) => upload.id === id));
  if (gone.length) complain(new Error(`The server no longer has ${gone.map(({ name }) => name ?? "a file of this result").join(", ")}; add what is missing again.`));
  return found;
}

const pasted = () => find("paste").value.split("\n").map((line) => line.trim()).filter((line) => line);
const fromFiles = () => document.querySelector("[name=source]:checked").value === "files";

function source(value) {
  for (const radio of document.getElementsByName("source")) radio.checked = radio.value === value;
}

function drop(file) {
  state.files = state.files.filter((one) => one !== file);
  remove(`/v1/uploads/${file.id}`).catch(() => {});
  arrange();
  find("files").focus();
}

function arrange() {
  state.shown = Math.max(0, Math.min(state.shown, state.files.length - 1));
  const file = state.files[state.shown];
  show(find("by-files"), fromFiles());
  show(find("by-paste"), !fromFiles());
  find("file-list").replaceChildren(...state.files.map(entry));
  find("preview").replaceChildren(...(file ? [previewTable(file)] : []));
  find("reading").replaceChildren(...(file ? readingFields(file, "data", arrange) : []));
  find("mapping").replaceChildren(...mapping());
  ready();
}

// Files of one name are two batches, and are told apart by a number, as in the result.
function title(file) {
  const same = state.files.filter((one) => one.name === file.name);
  const number = same.indexOf(file) + 1;
  return number > 1 ? `${file.name} (${number})` : file.name;
}

function entry(file, index) {
  const look = make("button", { type: "button", className: "name", id: `file-${index}`, "aria-pressed": String(index === state.shown) }, `${title(file)} (${bytes(file.bytes)})`);
  look.addEventListener("click", () => {
    state.shown = index;
    arrange();
    find(look.id).focus();
  });
  const button = make("button", { type: "button", "aria-label": `Remove ${title(file)}` }, "×");
  button.addEventListener("click", () => drop(file));
  return make("li", {}, look, button);
}

function field(text, id, fill, change) {
  const select = make("select", { id });
  fill(select);
  select.addEventListener("change", () => {
    change(select.value);
    fill(select);
    ready();
  });
  return make("label", {}, `${text} `, select);
}

// Columns of the model beside columns of the file, and how the items fall into batches.
function mapping() {
  if (!state.model) return [];
  const interval = field("Intervals", "interval", (select) => options(select, LEVELS, choices.interval), (level) => {
    choices.interval = level;
  });
  if (!fromFiles() || !state.files.length) return [interval];
  return [...columnFields(), ...batching(), interval];
}

const wanted = () => state.model?.columns ?? [];
const isText = () => state.model.kind === "text";
const plain = (name) => name.toLowerCase().replace(/[\s_.-]+/g, "");

// A column of the file that is probably meant: of nearly the same name, or the only text.
function guess(name) {
  const [file] = state.files;
  const near = names(file).filter((own) => plain(own) === plain(name) && !wanted().includes(own));
  const texts = isText() ? names(file, "text") : [];
  return near.length === 1 ? near[0] : texts.length === 1 ? texts[0] : "";
}

// The column of the files that stands for one of the model; empty if that is open.
function given(name) {
  const list = names(state.files[0]);
  const own = choices.columns[name];
  if (own !== undefined && (own === "" || list.includes(own))) return own;
  return list.includes(name) ? name : guess(name);
}

function columnFields() {
  const list = names(state.files[0]);
  const fill = (name) => (select) => {
    const own = given(name);
    const sure = own === name || own === choices.columns[name];
    offer(select, [["", "choose a column"], ...pairs(list)], sure ? own : null, own);
  };
  const columnField = (name) => field(isText() ? "Text column" : `Column for ${name}`, `column-${wanted().indexOf(name)}`, fill(name), (own) => {
    choices.columns[name] = own;
  });
  const [same, other] = [true, false].map((known) => wanted().filter((name) => (list.includes(name) && !isText()) === known).slice(0, FIELDS));
  if (!same.length) return other.map(columnField);
  const folded = make("details", { className: "wide", open: same.some((name) => given(name) !== name) },
    make("summary", {}, same.length === 1 ? "1 column of the model is in the file" : `${same.length} columns of the model are in the file`),
    make("div", { className: "fields" }, same.map(columnField)));
  return [...other.map(columnField), folded];
}

function batching() {
  const [file] = state.files;
  const times = names(file, "time");
  const ways = [["", "each file is a batch"], ...times.map((name) => [`time:${name}`, `by time: ${name}`]),
    ...names(file).map((name) => [`by:${name}`, `by value: ${name}`])];
  const freq = field("Periods", "freq", (select) => options(select, FREQUENCIES, choices.freq), (own) => {
    choices.freq = own;
  });
  const fill = (select) => {
    offer(select, ways, choices.split, times.length ? `time:${times[0]}` : "");
    show(freq, select.value.startsWith("time:"));
  };
  return [field("Batches", "split", fill, (own) => {
    choices.split = own;
  }), freq];
}

// Why nothing can be estimated yet; empty if it can.
function problem() {
  if (!state.model) return "Choose or train a model first.";
  if (!fromFiles()) {
    if (!isText()) return `The model ${state.model.name} reads the columns ${wanted().slice(0, 5).join(", ")}, not texts; add a file.`;
    return pasted().length ? "" : "Paste at least one text.";
  }
  if (!state.files.length) return "Add at least one file.";
  return columnProblem() || missingProblem();
}

function columnProblem() {
  const of = new Map();
  for (const name of wanted()) {
    const own = given(name);
    if (!own) return `${state.files[0].name} has no column ${name}; choose the column that stands for it.`;
    if (of.has(own)) return `The column ${own} cannot stand for both ${of.get(own)} and ${name}; choose another one.`;
    of.set(own, name);
  }
  return "";
}

// All files are read in the same way, so that each needs the columns of the first.
function missingProblem() {
  const [, ...way] = (find("split")?.value ?? "").split(":");
  const needed = [...wanted().map(given), ...(way.length ? [way.join(":")] : [])];
  for (const file of state.files.slice(1)) {
    const list = names(file);
    const missing = needed.find((name) => !list.includes(name));
    if (missing) return `${title(file)} has no column ${missing}; remove it, or choose a column that every file has.`;
  }
  return "";
}

function ready() {
  const why = problem();
  find("estimate").disabled = why !== "";
  // Not `disabled` while it works, which would take the focus away.
  find("estimate").setAttribute("aria-disabled", String(state.busy));
  say(find("estimate-hint"), why);
  const files = state.files.map(({ id, name }) => ({ id, name }));
  if (state.restored) remember("data", { files, choices, paste: find("paste").value, source: fromFiles() ? "files" : "paste" });
  const empty = fromFiles() ? !state.files.length : !find("paste").value;
  show(find("stale"), Boolean(state.result) && !empty && (why !== "" || inputs(current()) !== inputs(state.result)));
}

function request() {
  const body = { interval: choices.interval ? Number(choices.interval) : null };
  if (!fromFiles()) return { ...body, texts: pasted() };
  const columns = wanted().map((name) => [name, given(name)]).filter(([name, own]) => name !== own);
  const [kind, ...name] = find("split").value.split(":");
  Object.assign(body, { uploads: state.files.map((file) => file.id), columns: Object.fromEntries(columns) });
  if (kind === "by") Object.assign(body, { by: name.join(":"), min_items: 10 });
  if (kind === "time") Object.assign(body, { by_time: name.join(":"), freq: choices.freq });
  return body;
}

const current = () => ({ ...request(), model: state.model.name, readings: fromFiles() ? state.files.map((file) => file.reading) : [] });

// What decides on a result, as a text that can be compared.
function inputs({ model, texts, uploads, columns, by, by_time: time, freq, interval, readings }) {
  const read = readings.map(({ encoding, delimiter }) => [encoding, delimiter]);
  return JSON.stringify([model, texts ?? null, uploads ?? null, Object.entries(columns ?? {}).sort(), by ?? null, time ?? null, time ? freq : null, interval, read]);
}

// `first` is the job without labels, if this estimate has some.
async function estimate(body, model, first = "") {
  if (state.busy) return;
  calm();
  busy(true);
  try {
    const { id } = await post(`/v1/models/${encodeURIComponent(model)}/quantify?wait=false`, body);
    location.hash = `#/result/${id}${first && `/${first}`}`;
  } catch (error) {
    complain(error);
    busy(false);
  }
}

function busy(now) {
  state.busy = now;
  ready();
}

// The result that the address names is shown, as soon as it is there.
export async function openAddress() {
  const [, id, first] = RESULT.exec(location.hash) ?? [];
  if (!id) {
    leave();
    return;
  }
  state.turn += 1;
  const { turn } = state;
  busy(true);
  try {
    const job = await follow(find("quantify-progress"), await get(`/v1/jobs/${id}`), "Estimating");
    const [answer, asked, before] = await Promise.all([get(job.result.batches), get(`/v1/jobs/${id}/request`), first ? get(`/v1/jobs/${first}/batches`).catch(() => null) : null]);
    if (turn === state.turn) await present(job, answer, asked, before, first ?? id);
  } catch (error) {
    complain(error);
    // Back to the result that is shown; one that failed has no address.
    if (turn === state.turn) history.replaceState(null, "", state.result ? state.result.address : location.pathname);
  } finally {
    if (turn === state.turn) busy(false);
  }
}

// Another place of the page is no other address of a result.
function leave() {
  if (location.hash) {
    if (state.result) history.replaceState(null, "", state.result.address);
    return;
  }
  state.turn += 1;
  state.result = null;
  show(find("result"), false);
  busy(false);
}

async function present(job, answer, asked, before, first) {
  const { model, readings, labelled, ...body } = asked;
  if (!state.files.length && !find("paste").value) await adopt(asked);
  state.result = { ...asked, address: location.hash };
  const again = (more) => estimate(more, model, before || answer.level && !labelled ? first : "");
  showResult(job, answer, labelling(model, body, answer, labelled ? before : null, again));
}

// An empty page takes over what a result was made from, as far as it is still there.
async function adopt({ model, texts, uploads, columns, by, by_time: time, freq, interval }) {
  choices = { columns: { ...columns }, split: time ? `time:${time}` : by ? `by:${by}` : "", freq, interval: LEVELS.map(([level]) => level).find((level) => level === String(interval ?? "")) ?? "0.9" };
  source(texts ? "paste" : "files");
  find("paste").value = (texts ?? []).join("\n");
  state.files = await stillThere((uploads ?? []).map((id) => ({ id })));
  choose(model);
}
