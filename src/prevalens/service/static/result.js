// The third step: the answer in a sentence, then charts, items, numbers and files.

import { intervalChart, key, moverChart, SYMBOLS, trendPanel } from "./charts.js";
import { download, get } from "./client.js";
import { complain, find, make, show } from "./dom.js";
import { count, percent, plural, points } from "./format.js";
import { movers, ranked, restless, viewOf } from "./view.js";

const FEW = { labels: 25, movers: 8, panels: 9, narrow: 4, messages: 5, numbers: 500 };
const FORMATS = [["csv", "CSV"], ["json", "JSON"], ["html", "HTML report"]];
let redraw = null;

// `answer` is a page of the batches of `job`.
export function showResult(job, answer, labels) {
  const state = { job, all: {}, shared: false, find: "" };
  const place = (id, className = "charts") => make("div", { id, className });
  const [pager, over, batch, charts, items, table] = [place("pager", ""), place("over"), place("batch-choice", "batch"), place("charts"), place("items", "inset"), place("numbers", "")];
  state.draw = () => {
    const width = find("result-body").clientWidth;
    over.replaceChildren(...overTime(state, width));
    charts.replaceChildren(...sections(state, width));
    table.replaceChildren(numbers(state));
  };
  state.use = (page) => {
    Object.assign(state, { answer: page, view: viewOf(page), batch: page.ordered ? page.groups.length - 1 : 0 });
    pager.replaceChildren(...pages(state));
    batch.replaceChildren(...batchChoice(state));
    items.replaceChildren(...behind(state));
    redraw();
  };
  redraw = () => keepFocus(() => state.draw());
  find("result-body").replaceChildren(...headline(answer.headline), facts(answer), ...messages(answer),
    pager, over, batch, charts, items, table, downloads(job), ...[labels, command(answer)].filter((part) => part));
  show(find("result"), true);
  state.use(answer);
  find("result-title").focus({ preventScroll: true });
  find("result").scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

export function watchWidth() {
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => redraw && redraw(), 120);
  });
}

// What is drawn anew may hold the focus: its successor gets it.
function keepFocus(work) {
  const { id } = document.activeElement;
  work();
  if (id && document.activeElement?.id !== id) find(id)?.focus({ preventScroll: true });
}

function headline({ text, alarm, is_alarm }) {
  const said = text ? make("p", { className: "headline" }, text) : null;
  const care = alarm ? make("p", { className: "warnings" }, make("strong", {}, "Take care. "), alarm) : null;
  return (is_alarm ? [care, said] : [said, care]).filter((part) => part);
}

function facts(answer) {
  const level = answer.level === null ? "without intervals" : `intervals of ${percent(answer.level, 0)}`;
  const said = [plural(answer.n_items, "item"), plural(answer.n_groups, "batch"), plural(answer.labels.length, "label"), `model ${answer.model}`, answer.method, level];
  return make("p", { className: "facts muted" }, ...said.map((text) => make("span", {}, text)));
}

function messages({ messages: texts, n_messages: total }) {
  if (!total) return [];
  const list = (some) => make("ul", {}, some.map((text) => make("li", {}, text)));
  const rest = texts.slice(FEW.messages);
  const unseen = total - texts.length;
  const more = rest.length ? make("details", {}, make("summary", {}, `${count(total - FEW.messages)} more`), list(rest),
    unseen > 0 ? make("p", {}, `${count(unseen)} further ones are in the JSON file.`) : null) : null;
  return [make("div", { className: "warnings", id: "messages" }, make("strong", {}, "Before you trust the numbers"), list(texts.slice(0, FEW.messages)), more)];
}

// Many batches come page by page, or by a part of their name.
function pages(state) {
  const { answer } = state;
  const all = answer.n_pages === 1 && !state.find;
  if (all) return answer.groups.length > 1 ? [make("div", { className: "actions" }, scaleChoice(state))] : [];
  const to = (page) => async () => {
    try {
      const asked = new URLSearchParams({ find: state.find, ...(page === null ? {} : { page }) });
      const next = await get(`${state.job.result.batches}?${asked}`);
      keepFocus(() => state.use(next));
    } catch (error) {
      complain(error);
    }
  };
  const button = (id, text, page) => {
    const node = make("button", { id, type: "button", "aria-disabled": String(page < 0 || page >= answer.n_pages) }, text);
    node.addEventListener("click", () => node.getAttribute("aria-disabled") === "false" && to(page)());
    return node;
  };
  const search = make("input", { id: "find-batch", type: "search", value: state.find, maxLength: 200, autocomplete: "off" });
  search.addEventListener("change", () => {
    state.find = search.value.trim();
    to(null)();
  });
  const last = answer.first + answer.groups.length;
  const said = answer.n_found ? `Batches ${count(answer.first + 1)} to ${count(last)} of ${count(answer.n_found)}` : "No batch has this in its name";
  return [make("div", { className: "actions" }, make("span", { id: "page-said", role: "status" }, said),
    button("page-before", "Previous", answer.page - 1), button("page-after", "Next", answer.page + 1),
    make("label", { className: "inline" }, "Find a batch ", search), scaleChoice(state))];
}

function scaleChoice(state) {
  const box = make("input", { id: "shared-scale", type: "checkbox", checked: state.shared });
  box.addEventListener("change", () => {
    state.shared = box.checked;
    redraw();
  });
  return make("label", { className: "inline" }, box, " Same scale in all charts");
}

function batchChoice(state) {
  const { batches } = state.view;
  if (batches.length < 2) return [];
  const select = make("select", { id: "batch" }, ...batches.map((batch, index) =>
    make("option", { value: String(index), selected: index === state.batch }, `${batch.name} (${plural(batch.n_items, "item")}${batch.alarm ? ", take care" : ""})`)));
  select.addEventListener("change", () => {
    state.batch = Number(select.value);
    find("items").replaceChildren(...behind(state));
    redraw();
  });
  return [make("label", { htmlFor: "batch" }, "Batch"), select];
}

// The end of the scale that all charts share; null for a scale of their own.
function top({ shared, view }) {
  if (!shared) return null;
  const ends = view.point.map((line, b) => Math.max(...line.map((value, l) => view.upper[b][l] ?? value)));
  return Math.min(1, Math.max(0.01, ...ends, ...view.training) * 1.04);
}

function sections(state, width) {
  if (!state.view.batches.length) return [];
  const known = state.view.lower[state.batch][0] !== null;
  return [prevalence(state, width, known), change(state, width, known)];
}

function overTime(state, width) {
  return state.view.ordered ? [trend(state, width, state.view.lower[0][0] !== null)] : [];
}

function chart(id, title, legend, output, drawing, more = null) {
  return make("div", { className: "chart", id }, make("h3", {}, title), legend, drawing, output, more);
}

const reading = () => make("output", { className: "reading" });

function more(state, name, total, few) {
  if (total <= few) return null;
  const button = make("button", { id: `more-${name}`, type: "button", className: "quiet" }, state.all[name] ? "Show fewer" : `Show all ${count(total)}`);
  button.addEventListener("click", () => {
    state.all[name] = !state.all[name];
    redraw();
  });
  return button;
}

function prevalence(state, width, known) {
  const rows = ranked(state.view, state.batch);
  const shown = state.all.labels ? rows : rows.slice(0, FEW.labels);
  const legend = key([SYMBOLS.estimate(), "estimate"], ...(known ? [[SYMBOLS.span(), "interval"]] : []), [SYMBOLS.before(), "in training"]);
  const output = reading();
  const drawing = intervalChart(shown, width, top(state), (row) => showItems(state, row.label), output);
  return chart("prevalence-chart", `Prevalence in ${state.view.batches[state.batch].name}`, legend, output, drawing, more(state, "labels", rows.length, FEW.labels));
}

function change(state, width, known) {
  const shown = movers(state.view, state.batch).slice(0, FEW.movers);
  const legend = known ? key([SYMBOLS.clear(), "clearly moved"], [SYMBOLS.unsure(), "may be chance"]) : null;
  const output = reading();
  return chart("mover-chart", "Biggest movers against training", legend, output, moverChart(shown, width, output));
}

function trend(state, width, known) {
  const { view } = state;
  const columns = Math.max(1, Math.floor((width + 22) / (248 + 22)));
  const panel = (width - 22 * (columns - 1)) / columns;
  const labels = restless(view);
  const few = columns === 1 ? FEW.narrow : FEW.panels;
  const shown = state.all.panels ? labels : labels.slice(0, few);
  const legend = key([SYMBOLS.estimate(), "estimate"], ...(known ? [[SYMBOLS.span(), "interval"]] : []), [SYMBOLS.dashes(), "in training"]);
  const output = reading();
  const panels = make("div", { className: "panels" }, shown.map(({ label, index }) =>
    make("div", {}, make("h4", {}, label), trendPanel(view, index, panel, top(state), output))));
  return chart("trend-chart", "Over time", legend, output, panels, more(state, "panels", labels.length, few));
}

// The items that a person can check: those with the highest and lowest scores of a label.
function behind(state) {
  if (!state.view.batches.length) return [];
  const select = make("select", { id: "item-label" }, make("option", { value: "" }, "choose a label"),
    ...ranked(state.view, state.batch).map(({ label }) => make("option", { value: label }, label)));
  select.addEventListener("change", () => select.value && showItems(state, select.value));
  return [make("h3", {}, "Items behind a number"),
    make("p", { className: "hint" }, "The items of the batch with the highest and the lowest scores of a label, to check whether the model understands it. Choose a label here, or a row of the chart of prevalences."),
    make("label", { className: "inline" }, `Items of ${state.view.batches[state.batch].name} for `, select),
    make("div", { id: "item-lists", role: "status" })];
}

async function showItems(state, label) {
  find("item-label").value = label;
  const asked = new URLSearchParams({ group: state.view.batches[state.batch].name, label });
  const place = find("item-lists");
  try {
    const { highest, lowest } = await get(`/v1/jobs/${state.job.id}/examples?${asked}`);
    place.replaceChildren(itemList(`Highest scores of ${label}`, highest), ...(lowest.length ? [itemList(`Lowest scores of ${label}`, lowest)] : []));
  } catch (error) {
    place.replaceChildren(make("p", {}, error.message));
  }
}

function itemList(title, items) {
  return make("div", { className: "item-list" }, make("h4", {}, title), make("ol", {}, items.map((item) =>
    make("li", {}, make("strong", {}, percent(item.score, 0)), " ", make("q", {}, item.text), " ", make("small", {}, item.place)))));
}

function numbers(state) {
  if (!state.view.batches.length) return "";
  const known = state.answer.level !== null;
  const head = ["Label", "Estimate", ...(known ? ["From", "To"] : []), "In training", "Change"];
  const number = (text) => make("td", { className: "number" }, text);
  const all = ranked(state.view, state.batch);
  const rows = all.slice(0, FEW.numbers).map((row) => make("tr", {}, make("th", { scope: "row" }, row.label), number(percent(row.point)),
    ...(known ? [number(percent(row.lower)), number(percent(row.upper))] : []),
    number(percent(row.training)), number(points(row.point - row.training))));
  const cut = all.length > rows.length ? `The first ${count(rows.length)} of ${count(all.length)} labels of` : "All labels of";
  const open = find("numbers")?.querySelector("details")?.open ?? false;
  return make("details", { open }, make("summary", { id: "numbers-summary" }, "Numbers"),
    make("div", { className: "scroll tall", tabIndex: 0, role: "region", "aria-label": "Numbers" },
      make("table", {}, make("caption", {}, `${cut} ${state.view.batches[state.batch].name}; the files below have all batches.`),
        make("thead", {}, make("tr", {}, head.map((text, i) => make("th", { className: i ? "number" : "", scope: "col" }, text)))),
        make("tbody", {}, rows))));
}

function downloads(job) {
  const buttons = FORMATS.map(([ending, name]) => {
    const button = make("button", { type: "button" }, name);
    button.addEventListener("click", () => download(`/v1/jobs/${job.id}/result.${ending}`, `prevalence.${ending}`).catch(complain));
    return button;
  });
  return make("div", { className: "actions", role: "group", "aria-label": "Download" }, make("span", {}, "Download"), buttons);
}

function command(answer) {
  if (!answer.command) return null;
  return make("details", {}, make("summary", {}, "The same on the command line"), make("code", { className: "code", tabIndex: 0 }, answer.command));
}
