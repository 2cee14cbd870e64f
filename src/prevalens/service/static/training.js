// The first step, second half: a model from a labelled file, or from the demo data.

import { get, post } from "./client.js";
import { calm, complain, find, recall, remember, say, show } from "./dom.js";
import { percent, plural } from "./format.js";
import { droppable, likely, names, offer, pairs, previewTable, readingFields, send, ticked, ticks } from "./preview.js";
import { follow } from "./progress.js";

const FROM = [["text", "a text column"], ["features", "numbers and categories"], ["scores", "scores of a labeller"], ["answers", "answers of a labeller"]];
const WHERE = [["", "choose"], ["labels", "0/1 columns"], ["tags", "a tag column"], ["category", "one label each"]];
const TEXT = /^(text|body|message|content|description|comment|title)s?$/i;
const LABEL = /^(label|category|topic|tag|class|target)(s|es)?$/i;
const TITLES = { train: "Training", demo: "Preparing the demo" };
// Fields whose choice does not depend on the columns of the file.
const GENERAL = ["train-name", "train-method", "train-budget", "train-test", "train-scores"];
// A test needs 30 items, and as many to learn from; a division by labels is not exact.
const TESTED = 33;
const NAMED = 8;

let file = null;
let counted = { body: "", answer: null, error: "" };
// What was chosen, for each list of columns: a file that was corrected keeps its choices.
let choices = { general: {} };
const after = {};

const chosen = () => (choices[names(file).join("\n")] ??= {});
const value = (id) => find(id).value;
// Whether a labeller has answered for the items; its answers may be learned from with the texts.
const labelled = () => ["scores", "answers"].includes(value("train-from"));

export function setUpTraining({ onModel, onDemo }) {
  Object.assign(after, { train: (result) => done(result, onModel), demo: onDemo });
  find("train-open").addEventListener("click", () => open(find("training").hidden));
  droppable(find("train-drop"), find("train-file"), ([first]) => send([first], find("train-progress"), find("train-unread"), ([sent]) => use(sent)));
  find("train-form").addEventListener("change", ({ target }) => note(target));
  find("train-start").addEventListener("click", () => working(find("train-start"), async () => run((await post("/v1/models", request())).id, "train")));
  find("demo").addEventListener("click", () => working(find("demo"), async () => run((await post("/v1/demo", {})).id, "demo")));
}

export function open(visible) {
  show(find("training"), visible);
  remember("open", visible);
  find("train-open").setAttribute("aria-expanded", String(visible));
}

function use(sent) {
  file = sent;
  find("train-preview").replaceChildren(previewTable(file));
  find("train-reading").replaceChildren(...readingFields(file, "train", () => use(file)));
  arrange();
}

// A training that runs is followed, and the form is as it was.
export async function restoreTraining() {
  const kept = recall("training");
  if (kept) {
    choices = kept.choices;
    for (const [id, text] of Object.entries(choices.general)) find(id).value = text;
    await get(`/v1/uploads/${kept.file}`).then(use, () => {});
  }
  open(recall("open") ?? false);
  const job = recall("job");
  if (job) working(find(job.kind === "demo" ? "demo" : "train-start"), () => run(job.id, job.kind));
}

function note(target) {
  if (target.closest("#train-reading")) return;
  const list = target.closest(".ticks");
  if (list) chosen()[list.id] = ticked(list);
  else if (GENERAL.includes(target.id)) choices.general[target.id] = target.value;
  else chosen()[target.id] = target.value;
  arrange();
  if (list) [...list.querySelectorAll("input")].find((box) => box.value === target.value)?.focus();
}

// The form for the file: what was chosen, and guesses for the rest.
function arrange() {
  fillSelects();
  const [from, where] = [value("train-from"), value("train-where")];
  const taken = serving().map(([, column]) => column);
  const labels = names(file).filter((name) => !taken.includes(name));
  fillTicks("train-labels", labels, names(file, "binary"));
  const free = labels.filter((name) => where !== "labels" || !ticked(find("train-labels")).includes(name));
  fillTicks("train-features", free, names(file, "number", "category"));
  const shown = { text: from !== "features", features: from === "features", scores: from === "scores", answers: from === "answers", tags: where === "tags", sep: where === "tags", category: where === "category", labels: where === "labels" };
  for (const [name, visible] of Object.entries(shown)) show(find(`train-${name}-label`) ?? find(`train-${name}`), visible);
  show(find("train-scores-hint"), labelled());
  show(find("train-form"), true);
  remember("training", { file: file.id, choices });
  countLabels();
}

function fillSelects() {
  const own = chosen();
  const kinds = ["text", "binary", "tags", "category", "time"];
  const [texts, binary, tags, categories, times] = kinds.map((kind) => names(file, kind));
  const open = (list) => [["", "choose a column"], ...pairs(list)];
  offer(find("train-from"), FROM, own["train-from"], texts.length ? "text" : "features");
  offer(find("train-where"), WHERE, own["train-where"], binary.length ? "labels" : tags.length ? "tags" : categories.length ? "category" : "");
  const noText = [["", "none: learn from the answers alone"], ...pairs(names(file))];
  offer(find("train-text"), labelled() ? noText : open(names(file)), own["train-text"], likely(texts, TEXT));
  offer(find("train-tags"), open(names(file)), own["train-tags"], likely(tags.length ? tags : categories, LABEL));
  offer(find("train-answers"), open(names(file)), own["train-answers"]);
  // Where categories are learned from, only its name tells the one to be learned.
  const many = value("train-from") === "features" ? categories.filter((name) => LABEL.test(name)) : categories;
  offer(find("train-category"), open(names(file)), own["train-category"], likely(many, LABEL));
  offer(find("train-time"), [["", "not known"], ...pairs(names(file))], own["train-time"], times[0]);
  const column = file.columns.find(({ name }) => name === value("train-tags"));
  find("train-sep").value = own["train-sep"] ?? column?.separator ?? ",";
  show(find("train-sep-guess"), own["train-sep"] === undefined);
}

function fillTicks(id, list, guess) {
  const own = chosen()[id];
  ticks(find(id), list, own ?? guess);
  show(find(id).querySelector("legend small"), own === undefined);
}

// Which columns serve as what, besides those that are ticked.
function serving() {
  const [from, where] = [value("train-from"), value("train-where")];
  const found = [];
  if (from === "text" || (labelled() && value("train-text"))) found.push(["texts", value("train-text")]);
  if (from === "answers") found.push(["answers", value("train-answers")]);
  if (where === "tags" || where === "category") found.push(["labels", value(`train-${where}`)]);
  if (value("train-time")) found.push(["times", value("train-time")]);
  return found;
}

// Why nothing can be trained yet; empty if it can.
function problem() {
  const roles = serving();
  const [open] = roles.find(([, column]) => !column) ?? [];
  if (open) return `Choose the column that holds the ${open}.`;
  const twice = roles.find(([, column], at) => roles.findIndex((other) => other[1] === column) < at);
  if (twice) return `The column ${twice[1]} cannot hold both the ${roles.find(([, column]) => column === twice[1])[0]} and the ${twice[0]}; choose another one.`;
  if (!value("train-where")) return "Say where the labels are.";
  if (value("train-where") === "labels" && !ticked(find("train-labels")).length) return "Tick at least one label column.";
  if (value("train-from") === "features" && !ticked(find("train-features")).length) return "Tick at least one column to learn from.";
  return counted.error;
}

function labelPlace() {
  const where = value("train-where");
  if (where === "labels") return { labels: ticked(find("train-labels")) };
  return where === "tags" ? { tags: value("train-tags"), sep: value("train-sep") || "," } : { category: value("train-category") };
}

// The labels that a training would find, counted once for each place that is chosen.
async function countLabels() {
  const body = JSON.stringify([file.id, file.reading, labelPlace()]);
  if (body !== counted.body) {
    const mine = { body, answer: null, error: "" };
    counted = mine;
    if (!problem()) {
      try {
        mine.answer = await post(`/v1/uploads/${file.id}/labels`, labelPlace());
      } catch (error) {
        mine.error = error.message;
      }
    } else mine.body = "";
    if (counted !== mine) return;
  }
  const why = problem();
  say(find("train-summary"), counted.answer ? summary(counted.answer) : "");
  say(find("train-hint"), why || untested());
  find("train-start").disabled = Boolean(why);
}

function summary({ n_items: items, n_without: without, n_labels: number, labels }) {
  const shares = Object.entries(labels).slice(0, NAMED).map(([label, times]) => `${label} ${percent(times / items, 0)}`);
  const rest = number > NAMED ? `, and ${plural(number - NAMED, "more label")}` : "";
  const none = without ? `; ${plural(without, "item")} without any` : "";
  return `${plural(number, "label")} in ${plural(items, "item")}: ${shares.join(", ")}${rest}${none}.`;
}

const share = () => Number(value("train-test"));
const testable = () => !counted.answer || Math.floor(counted.answer.n_items * Math.min(share(), 1 - share())) >= TESTED;

function untested() {
  if (!share() || testable()) return "";
  return `${plural(counted.answer.n_items, "item")} are too few for the test, so that the model will not be tested.`;
}

function request() {
  const from = value("train-from");
  const body = {
    upload: file.id, name: value("train-name").trim(), method: value("train-method").trim() || "auto",
    time_budget: Number(value("train-budget")) || 120, ...labelPlace(),
  };
  if (from !== "features" && value("train-text")) body.text = value("train-text");
  if (from === "scores") body.scores = labellers(value("train-scores"));
  else if (from === "answers") body.scores_tags = [value("train-answers")];
  else if (from === "features") body.features = ticked(find("train-features"));
  if (value("train-time")) body.time = value("train-time");
  if (share() && testable()) body.holdout = share();
  return body;
}

// "p_*; r_a, r_b" are two labellers; the second has two columns.
function labellers(text) {
  const columns = text.split(";").map((part) => part.split(",").map((name) => name.trim()).filter(Boolean));
  return columns.filter((own) => own.length);
}

// Follow a job to its end; a page that is loaded again meanwhile goes on with it.
async function run(id, kind) {
  remember("job", { id, kind });
  try {
    const job = await follow(find("train-progress"), await get(`/v1/jobs/${id}`), TITLES[kind]);
    await after[kind](job.result);
  } catch (error) {
    if (error.code === "unreachable") throw error;
    remember("job", null);
    throw error;
  }
  remember("job", null);
}

async function done(result, onModel) {
  await onModel(result.model);
  document.querySelector("[name=model]:checked")?.focus();
  open(false);
}

async function working(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  calm();
  // Not `disabled`, which would take the focus away.
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } catch (error) {
    complain(error);
  } finally {
    button.removeAttribute("aria-disabled");
  }
}
