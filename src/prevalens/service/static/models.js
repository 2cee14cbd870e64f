// The first step: which model, how good it is, and removing one.

import { errorChart, key, SYMBOLS } from "./charts.js";
import { download, get, post, remove } from "./client.js";
import { calm, complain, find, make, notice, recall, remember, show } from "./dom.js";
import { count, plural } from "./format.js";

let models = null;
let chosen = null;
let onChoice = () => {};

// `use` is called with the chosen model, or null.
export function setUpModels(use) {
  onChoice = use;
  addEventListener("resize", () => drawErrors());
  // Another tab may have trained or removed one meanwhile.
  addEventListener("focus", () => loadModels().catch(() => {}));
}

// Nothing but a person changes which model is chosen; at the start, the only one needs no choice.
export async function loadModels(name = chosen) {
  const before = models;
  ({ models } = await get("/v1/models"));
  const list = (some) => some.map((model) => model.name).join("\n");
  if (before && name === chosen && list(before) === list(models)) return;
  const fieldset = find("models");
  fieldset.replaceChildren(fieldset.querySelector("legend"), ...models.map(card));
  show(fieldset, models.length > 0);
  show(find("no-models"), models.length === 0);
  find("demo").classList.toggle("primary", models.length === 0);
  choose(before ? name : recall("model") ?? (models.length === 1 ? models[0].name : null));
}

export function choose(name) {
  const model = models.find((one) => one.name === name) ?? null;
  chosen = model?.name ?? null;
  remember("model", chosen);
  for (const radio of document.getElementsByName("model")) radio.checked = radio.value === chosen;
  showQuality(model);
  onChoice(model);
}

function card(model) {
  const radio = make("input", { type: "radio", name: "model", value: model.name });
  radio.addEventListener("change", () => choose(model.name));
  const about = `${plural(model.labels.length, "label")}, trained on ${count(model.n_items)} items. ${model.method_in_words}`;
  return make("label", { className: "model" }, radio,
    make("span", {}, make("strong", {}, model.name), make("small", { title: model.method }, about), model.drift ? make("small", { className: "drift" }, model.drift) : null, ...notes(model), model.origin === "trained" ? ownButtons(model) : null));
}

// What the training warned of: labels that were left out, for example.
function notes(model) {
  return (model.summary.warnings ?? []).slice(0, 3).map((text) => make("small", { className: "note" }, text));
}

const address = (name) => `/v1/models/${encodeURIComponent(name)}`;

function button(text, label, act) {
  const node = make("button", { type: "button", className: "quiet", "aria-label": label }, text);
  node.addEventListener("click", act);
  return node;
}

function ownButtons(model) {
  const place = make("small");
  const save = button("download", `Download the model ${model.name}`, () => download(`${address(model.name)}/file`, `${model.name}.prevalens`).catch(complain));
  const drop = button("remove", `Remove the model ${model.name}`, () => {
    const keep = button("keep it", `Keep the model ${model.name}`, () => {
      place.replaceChildren(save, drop);
      drop.focus();
    });
    const sure = button("yes, remove it", `Yes, remove the model ${model.name}`, () => removeModel(model.name).catch(complain));
    place.replaceChildren("Remove it? ", sure, keep);
    keep.focus();
  });
  place.append(save, drop);
  return place;
}

async function removeModel(name) {
  calm();
  const own = name === chosen;
  await remove(address(name));
  if (own) choose(null);
  await loadModels();
  notice(`The model ${name} was removed.`, () => restore(name, own).catch(complain));
}

async function restore(name, own) {
  const back = await post(`${address(name)}/restore`, {});
  await loadModels(own && chosen === null ? back.name : chosen);
  document.querySelector(`[name=model][value="${CSS.escape(back.name)}"]`)?.focus();
}

let drawErrors = () => {};

// How far estimates were from the truth in held-out items: a sentence, a chart, and its numbers.
function showQuality(model) {
  const place = find("quality");
  const quality = model?.quality;
  show(place, Boolean(quality));
  drawErrors = () => {};
  if (!quality) return;
  const chart = make("div", { className: "chart", id: "error-chart" });
  const lines = Object.keys(quality.errors);
  const legend = key(...lines.map((name, number) => [SYMBOLS[["line", "dots", "dashes"][number]](), name]));
  drawErrors = () => chart.replaceChildren(legend, errorChart(quality, place.clientWidth));
  const reasons = quality.reasons.map((reason) => make("li", {}, reason.text));
  place.replaceChildren(make("h3", {}, `How good is ${model.name}?`), make("p", {}, make("strong", {}, quality.headline), ` ${quality.sentence}`), chart,
    make("details", {}, make("summary", {}, "What the test found"), make("ul", {}, reasons), make("p", { className: "muted" }, quality.tested), errorTable(quality)));
  drawErrors();
}

function errorTable(quality) {
  const lines = Object.entries(quality.errors);
  const number = (value) => make("td", { className: "number" }, value.toFixed(1));
  const head = ["Shift of the labels", ...lines.map(([name]) => `Error of ${name}`)];
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Errors of the test" },
    make("table", {}, make("caption", {}, "Mean absolute errors, in percentage points"),
      make("thead", {}, make("tr", {}, head.map((text) => make("th", { scope: "col", className: "number" }, text)))),
      make("tbody", {}, quality.shifts.map((shift, row) => make("tr", {}, number(shift), lines.map(([, errors]) => number(errors[row])))))));
}
