// The page: steps in order, and what they tell each other.

import { download, get, remove, takeToken, useToken } from "./client.js";
import { setUpData, useFiles, useModel } from "./data.js";
import { calm, complain, find, make, show } from "./dom.js";
import { count, plural } from "./format.js";
import { watchWidth } from "./result.js";
import { open, setUpTraining } from "./training.js";

const THEME = "prevalens-theme";
let models = [];

function setUpTheme() {
  const select = find("theme");
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
  };
  select.value = localStorage.getItem(THEME) ?? "auto";
  apply(select.value);
  select.addEventListener("change", () => {
    localStorage.setItem(THEME, select.value);
    apply(select.value);
  });
}

async function loadModels(chosen) {
  ({ models } = await get("/v1/models"));
  const name = models.some((model) => model.name === chosen) ? chosen : models[0]?.name;
  const fieldset = find("models");
  fieldset.replaceChildren(fieldset.querySelector("legend"), ...models.map((model) => card(model, model.name === name)));
  show(fieldset, models.length > 0);
  show(find("no-models"), models.length === 0);
  find("demo").classList.toggle("primary", models.length === 0);
  useModel(models.find((model) => model.name === name) ?? null);
}

function card(model, chosen) {
  const radio = make("input", { type: "radio", name: "model", value: model.name, checked: chosen });
  radio.addEventListener("change", () => useModel(model));
  const about = `${plural(model.labels.length, "label")}, trained on ${count(model.n_items)} items. ${model.method_in_words}`;
  return make("label", { className: "model" }, radio,
    make("span", {}, make("strong", {}, model.name), make("small", { title: model.method }, about), model.drift ? make("small", { className: "drift" }, model.drift) : null, ...notes(model), model.origin === "trained" ? ownButtons(model) : null));
}

// What the training warned of: labels that were left out, for example.
function notes(model) {
  return (model.summary.warnings ?? []).slice(0, 3).map((text) => make("small", { className: "note" }, text));
}

function ownButtons(model) {
  const path = `/v1/models/${encodeURIComponent(model.name)}`;
  const save = make("button", { type: "button", className: "quiet", "aria-label": `Download the model ${model.name}` }, "download");
  save.addEventListener("click", () => download(`${path}/file`, `${model.name}.prevalens`).catch(complain));
  const drop = make("button", { type: "button", className: "quiet", "aria-label": `Remove the model ${model.name}` }, "remove");
  drop.addEventListener("click", () => remove(path).then(() => loadModels()).catch(complain));
  return make("small", {}, save, drop);
}

async function begin() {
  calm();
  const { version } = await get("/healthz");
  find("version").textContent = `prevalens ${version}`;
  await loadModels();
  show(find("token-card"), false);
}

function setUpToken() {
  find("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(find("token").value.trim());
    begin().catch(complain);
  });
}

async function demo(result) {
  await loadModels(result.model);
  useFiles(result.uploads);
  open(false);
  find("estimate").focus({ preventScroll: true });
  find("data-title").scrollIntoView({ block: "start" });
}

// The focus does not vanish with the button that had it.
function putAway() {
  const inside = find("alert").contains(document.activeElement);
  calm();
  if (inside) find("main").focus({ preventScroll: true });
}

takeToken();
setUpTheme();
setUpToken();
setUpData();
setUpTraining({ onModel: loadModels, onDemo: demo });
watchWidth();
find("alert-close").addEventListener("click", putAway);
addEventListener("keydown", (event) => event.key === "Escape" && putAway());
begin().catch(complain);
