// The first step, second half: a model from a labelled file, or from the demo data.

import { post, upload } from "./client.js";
import { calm, complain, find, options, show } from "./dom.js";
import { droppable, likely, names, pairs, previewTable, ticked, ticks } from "./preview.js";
import { follow, sending } from "./progress.js";

let file = null;

export function setUpTraining({ onModel, onDemo }) {
  find("train-open").addEventListener("click", () => open(find("training").hidden));
  droppable(find("train-drop"), find("train-file"), ([first]) => take(first));
  for (const id of ["train-from", "train-where", "train-text", "train-tags"]) find(id).addEventListener("change", arrange);
  find("train-start").addEventListener("click", () => train(onModel));
  find("demo").addEventListener("click", () => demo(onDemo));
}

export function open(visible) {
  show(find("training"), visible);
  find("train-open").setAttribute("aria-expanded", String(visible));
}

async function take(chosen) {
  calm();
  const place = find("train-progress");
  try {
    [file] = await upload([chosen], sending(place, `Sending ${chosen.name}`));
    fillForm();
  } catch (error) {
    complain(error);
  } finally {
    show(place, false);
  }
}

function fillForm() {
  const binary = names(file, "binary");
  const hasText = names(file, "text").length > 0;
  find("train-preview").replaceChildren(previewTable(file));
  find("train-from").value = hasText ? "text" : "features";
  find("train-where").value = binary.length || !names(file, "tags").length ? "labels" : "tags";
  options(find("train-text"), pairs(names(file)), likely(file, "text", "text"));
  options(find("train-answers"), pairs(names(file)), likely(file, "tags", "tags", "category"));
  options(find("train-tags"), pairs(names(file)), likely(file, "tags", "tags", "category"));
  find("train-sep").value = file.columns.find((column) => column.name === find("train-tags").value).separator ?? ",";
  fillTimes();
  ticks(find("train-labels"), names(file), binary);
  ticks(find("train-features"), names(file), names(file, "number", "category").filter((name) => !binary.includes(name)));
  show(find("train-form"), true);
  arrange();
}

// The first column of dates is taken for the time of the items, and marked as a guess.
function fillTimes() {
  const [guess] = names(file, "time");
  const choices = names(file).map((name) => [name, name === guess ? `${name} (a guess)` : name]);
  options(find("train-time"), [["", "not known"], ...choices], guess ?? "");
}

function arrange() {
  const [from, inTags] = [find("train-from").value, find("train-where").value === "tags"];
  show(find("train-text-label"), from === "text");
  show(find("train-features"), from === "features");
  show(find("train-scores-label"), from === "scores");
  show(find("train-answers-label"), from === "answers");
  show(find("train-scores-hint"), from === "scores" || from === "answers");
  show(find("train-tags-label"), inTags);
  show(find("train-sep-label"), inTags);
  show(find("train-labels"), !inTags);
}

function request() {
  const [from, inTags] = [find("train-from").value, find("train-where").value === "tags"];
  const body = {
    upload: file.id, name: find("train-name").value.trim(), method: find("train-method").value.trim() || "auto",
    time_budget: Number(find("train-budget").value) || 120,
  };
  if (from === "text") body.text = find("train-text").value;
  else if (from === "scores") body.scores = labellers(find("train-scores").value);
  else if (from === "answers") body.scores_tags = [find("train-answers").value];
  else body.features = ticked(find("train-features"));
  if (inTags) Object.assign(body, { tags: find("train-tags").value, sep: find("train-sep").value });
  else body.labels = ticked(find("train-labels"));
  if (find("train-time").value) body.time = find("train-time").value;
  return body;
}

// "p_*; r_a, r_b" are two labellers; the second has two columns.
function labellers(text) {
  const columns = text.split(";").map((part) => part.split(",").map((name) => name.trim()).filter(Boolean));
  return columns.filter((own) => own.length);
}

async function train(onModel) {
  await working(find("train-start"), async () => {
    const job = await follow(find("train-progress"), await post("/v1/models", request()), "Training");
    await onModel(job.result.model);
    document.querySelector("[name=model]:checked")?.focus();
    open(false);
  });
}

async function demo(onDemo) {
  await working(find("demo"), async () => {
    const job = await follow(find("train-progress"), await post("/v1/demo", {}), "Preparing the demo");
    await onDemo(job.result);
  });
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
