// The second step: what is asked about.

import { get, post, remove, upload } from "./client.js";
import { calm, complain, find, make, options, show } from "./dom.js";
import { bytes } from "./format.js";
import { labelling } from "./labelling.js";
import { droppable, likely, names, pairs, previewTable } from "./preview.js";
import { follow, sending } from "./progress.js";
import { showResult } from "./result.js";

const FREQUENCIES = [["D", "days"], ["W", "weeks"], ["M", "months"], ["Q", "quarters"], ["Y", "years"]];
const LEVELS = [["0.8", "80 %"], ["0.9", "90 %"], ["0.95", "95 %"], ["0.99", "99 %"], ["", "none"]];
const state = { files: [], model: null, busy: false };

export function setUpData() {
  droppable(find("drop"), find("files"), take);
  for (const radio of document.getElementsByName("source")) radio.addEventListener("change", arrange);
  find("paste").addEventListener("input", ready);
  find("estimate").addEventListener("click", () => estimate());
  arrange();
}

export function useModel(model) {
  state.model = model;
  arrange();
}

export function useFiles(files) {
  state.files = files;
  source("files");
  arrange();
}

const pasted = () => find("paste").value.split("\n").map((line) => line.trim()).filter((line) => line);
const fromFiles = () => document.querySelector("[name=source]:checked").value === "files";

function source(value) {
  for (const radio of document.getElementsByName("source")) radio.checked = radio.value === value;
}

async function take(chosen) {
  calm();
  const place = find("quantify-progress");
  try {
    state.files.push(...await upload(chosen, sending(place, `Sending ${chosen.length === 1 ? chosen[0].name : `${chosen.length} files`}`)));
  } catch (error) {
    complain(error);
  } finally {
    show(place, false);
    arrange();
  }
}

function drop(file) {
  state.files = state.files.filter((one) => one !== file);
  remove(`/v1/uploads/${file.id}`).catch(() => {});
  arrange();
  find("files").focus();
}

function arrange() {
  show(find("by-files"), fromFiles());
  show(find("by-paste"), !fromFiles());
  find("file-list").replaceChildren(...state.files.map(entry));
  find("preview").replaceChildren(...state.files.slice(0, 1).map(previewTable));
  find("mapping").replaceChildren(...mapping());
  ready();
}

function entry(file) {
  const button = make("button", { type: "button", "aria-label": `Remove ${file.name}` }, "×");
  button.addEventListener("click", () => drop(file));
  return make("li", {}, `${file.name} (${bytes(file.bytes)})`, button);
}

function field(text, id, choices, chosen) {
  const select = make("select", { id });
  options(select, choices, chosen);
  return make("label", {}, text, select);
}

// Columns of the model beside columns of the file, and how the items fall into batches.
function mapping() {
  const found = [];
  if (fromFiles() && state.files.length && state.model) {
    const [file] = state.files;
    const kinds = state.model.kind === "text" ? ["text"] : ["number", "category", "binary"];
    found.push(...state.model.columns.slice(0, 200).map((wanted, number) => {
      const label = field(state.model.kind === "text" ? "Text column" : `Column for ${wanted}`, `column-${number}`, pairs(names(file)), likely(file, wanted, ...kinds));
      label.querySelector("select").dataset.wanted = wanted;
      return label;
    }));
    found.push(...batching(file));
  }
  if (state.model) found.push(field("Intervals", "interval", LEVELS, "0.9"));
  return found;
}

function batching(file) {
  const times = names(file, "time");
  const choices = [["", "each file is a batch"], ...times.map((name) => [`time:${name}`, `by time: ${name}`]),
    ...names(file).map((name) => [`by:${name}`, `by value: ${name}`])];
  const split = field("Batches", "split", choices, times.length ? `time:${times[0]}` : "");
  const freq = field("Periods", "freq", FREQUENCIES, "M");
  const update = () => show(freq, split.querySelector("select").value.startsWith("time:"));
  split.addEventListener("change", update);
  update();
  return [split, freq];
}

function ready() {
  const some = fromFiles() ? state.files.length > 0 : pasted().length > 0;
  find("estimate").disabled = !state.model || !some;
  // Not `disabled` while it works, which would take the focus away.
  find("estimate").setAttribute("aria-disabled", String(state.busy));
  const hint = !state.model ? "Choose or train a model first." : some ? "" : fromFiles() ? "Add at least one file." : "Paste at least one text.";
  find("estimate-hint").textContent = hint;
}

function request() {
  const level = find("interval").value;
  const body = { interval: level ? Number(level) : null };
  if (!fromFiles()) return { ...body, texts: pasted() };
  const columns = [...find("mapping").querySelectorAll("[data-wanted]")].map((select) => [select.dataset.wanted, select.value]);
  const [kind, ...name] = find("split").value.split(":");
  Object.assign(body, { uploads: state.files.map((file) => file.id), columns: Object.fromEntries(columns.filter(([wanted, given]) => wanted !== given)) });
  if (kind === "by") Object.assign(body, { by: name.join(":"), min_items: 10 });
  if (kind === "time") Object.assign(body, { by_time: name.join(":"), freq: find("freq").value });
  return body;
}

// With labels, `before` is the answer without them.
async function estimate(body = request(), model = state.model.name, before = null) {
  if (state.busy) return;
  calm();
  state.busy = true;
  ready();
  try {
    const path = `/v1/models/${encodeURIComponent(model)}/quantify?wait=false`;
    const job = await follow(find("quantify-progress"), await post(path, body), "Estimating");
    const answer = await get(job.result.batches);
    const { labelled, ...plain } = body;
    const first = labelled ? before : answer;
    const again = (more) => estimate(more, model, first?.level ? first : null);
    showResult(job, answer, labelling(model, plain, answer, before, again));
  } catch (error) {
    complain(error);
  } finally {
    state.busy = false;
    ready();
  }
}
