// The third step: charts, numbers and files.

import { intervalChart, key, moverChart, SYMBOLS, trendPanel } from "./charts.js";
import { download } from "./client.js";
import { complain, find, make, show } from "./dom.js";
import { count, percent, plural, points } from "./format.js";
import { movers, ranked, restless, viewOf } from "./view.js";

const FEW = { labels: 25, movers: 8, panels: 9, narrow: 4 };
const FORMATS = [["csv", "CSV"], ["json", "JSON"], ["html", "HTML report"]];
let redraw = null;

export function showResult(job, answer, labels) {
  const state = { view: viewOf(answer), batch: answer.groups.length - 1, all: {} };
  const [over, charts] = [make("div", { className: "charts" }), make("div", { className: "charts" })];
  redraw = () => {
    const width = find("result-body").clientWidth;
    over.replaceChildren(...overTime(state, width));
    charts.replaceChildren(...sections(state, width));
  };
  find("result-body").replaceChildren(...[
    facts(answer), warnings(answer.warnings), over, batchChoice(state), charts,
    numbers(answer), downloads(job), labels, command(answer),
  ].filter((part) => part !== null));
  show(find("result"), true);
  redraw();
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

function facts(answer) {
  const level = answer.level === null ? "without intervals" : `intervals of ${percent(answer.level, 0)}`;
  const said = [plural(answer.n_items, "item"), plural(answer.groups.length, "batch"), plural(answer.labels.length, "label"), `model ${answer.model}`, level];
  return make("p", { className: "facts muted" }, ...said.map((text) => make("span", {}, text)));
}

function warnings(found) {
  if (!found.length) return null;
  const items = found.map((one) => make("li", {}, one.batch && !one.text.includes(one.batch) ? `${one.batch}: ${one.text}` : one.text));
  return make("div", { className: "warnings", role: "status" }, make("strong", {}, "Before you trust the numbers"), make("ul", {}, items));
}

function batchChoice(state) {
  const { batches } = state.view;
  if (batches.length < 2) return null;
  const select = make("select", { id: "batch" }, ...batches.map((batch, index) =>
    make("option", { value: String(index), selected: index === state.batch }, `${batch.name} (${plural(batch.n_items, "item")})`)));
  select.addEventListener("change", () => {
    state.batch = Number(select.value);
    redraw();
  });
  return make("div", { className: "batch" }, make("label", { htmlFor: "batch" }, "Batch"), select);
}

function sections(state, width) {
  const known = state.view.lower[state.batch][0] !== null;
  return [prevalence(state, width, known), change(state, width, known)];
}

function overTime(state, width) {
  return state.view.ordered ? [trend(state, width, state.view.lower[0][0] !== null)] : [];
}

function chart(id, title, legend, drawing, more) {
  return make("div", { className: "chart", id }, make("h3", {}, title), legend, drawing, more);
}

function more(state, name, total, few) {
  if (total <= few) return null;
  const button = make("button", { type: "button", className: "quiet" }, state.all[name] ? "Show fewer" : `Show all ${count(total)}`);
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
  return chart("prevalence-chart", `Prevalence in ${state.view.batches[state.batch].name}`, legend, intervalChart(shown, width), more(state, "labels", rows.length, FEW.labels));
}

function change(state, width, known) {
  const rows = movers(state.view, state.batch);
  const shown = rows.slice(0, FEW.movers);
  const legend = known ? key([SYMBOLS.clear(), "beyond the interval"], [SYMBOLS.unsure(), "may be chance"]) : null;
  return chart("mover-chart", "Biggest movers against training", legend, moverChart(shown, width), null);
}

function trend(state, width, known) {
  const { view } = state;
  const columns = Math.max(1, Math.floor((width + 22) / (248 + 22)));
  const panel = (width - 22 * (columns - 1)) / columns;
  const labels = restless(view);
  const few = columns === 1 ? FEW.narrow : FEW.panels;
  const shown = state.all.panels ? labels : labels.slice(0, few);
  const legend = key([SYMBOLS.estimate(), "estimate"], ...(known ? [[SYMBOLS.span(), "interval"]] : []), [SYMBOLS.dashes(), "in training"]);
  const panels = make("div", { className: "panels" }, shown.map(({ label, index }) =>
    make("div", {}, make("h4", {}, label), trendPanel(view, index, panel))));
  return chart("trend-chart", "Over time", legend, panels, more(state, "panels", labels.length, few));
}

function numbers(answer) {
  const known = answer.level !== null;
  const head = ["Batch", "Label", "Estimate", ...(known ? ["From", "To"] : []), "In training", "Change"];
  const number = (text) => make("td", { className: "number" }, text);
  const rows = answer.rows.slice(0, 2000).map((row) => make("tr", {},
    make("td", {}, row.group), make("td", {}, row.label), number(percent(row.prevalence)),
    ...(known ? [number(percent(row.lower)), number(percent(row.upper))] : []),
    number(percent(answer.training[row.label])), number(points(row.prevalence - answer.training[row.label]))));
  const cut = answer.rows.length > rows.length ? `The first ${count(rows.length)} of ${count(answer.rows.length)} rows; the files below have all.` : "All estimates";
  return make("details", {}, make("summary", {}, "Numbers"),
    make("div", { className: "scroll tall", tabIndex: 0, role: "region", "aria-label": "Numbers" },
      make("table", {}, make("caption", {}, cut),
        make("thead", {}, make("tr", {}, head.map((text, i) => make("th", { className: i > 1 ? "number" : "", scope: "col" }, text)))),
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
