// Charts as SVG, drawn at the width they are shown at, so that letters keep their size on a phone.

import { draw, make } from "./dom.js";
import { percent, points } from "./format.js";

const LETTER = 7.2;
const ROW = 28;

function step(span, wanted) {
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
}

function ticks(low, high, wanted) {
  const size = step(Math.max(high - low, 1e-6), wanted);
  const found = [];
  for (let at = Math.ceil(low / size - 1e-9); at * size <= high + 1e-9; at += 1) found.push(at * size);
  return found;
}

function short(label, width) {
  const letters = Math.max(4, Math.floor(width / LETTER));
  return label.length > letters ? `${label.slice(0, letters - 1)}…` : label;
}

function labelWidth(rows, width) {
  const longest = Math.max(...rows.map((row) => row.label.length)) * LETTER + 12;
  return Math.min(longest, width * 0.36);
}

function frame(width, height, title, ...children) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": title }, ...children);
}

function interval(row) {
  return row.lower === null ? "" : ` (${percent(row.lower)} to ${percent(row.upper)})`;
}

// One line per label: the estimate with its interval, beside the training prevalence.
export function intervalChart(rows, width) {
  const left = labelWidth(rows, width);
  const right = width < 480 ? 56 : 150;
  const highest = Math.max(...rows.map((row) => Math.max(row.upper ?? row.point, row.training)), 0.01);
  const top = Math.min(1, highest * 1.04);
  const x = (share) => left + (share / top) * (width - left - right);
  const bottom = rows.length * ROW + 6;
  const axis = ticks(0, top, width < 480 ? 3 : 6).map((at) => [
    draw("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: bottom }),
    draw("text", { class: "tick", x: x(at), y: bottom + 16, "text-anchor": "middle" }, percent(at, top < 0.05 ? 1 : 0)),
  ]);
  const lines = rows.map((row, number) => {
    const y = number * ROW + ROW / 2 + 3;
    const said = width < 480 ? percent(row.point) : percent(row.point) + interval(row);
    return draw("g", {},
      draw("title", {}, `${row.label}: ${percent(row.point)}${interval(row)}; in training ${percent(row.training)}`),
      draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short(row.label, left - 8)),
      row.lower === null ? null : draw("line", { class: "span", x1: x(row.lower), x2: x(Math.min(row.upper, top)), y1: y, y2: y }),
      draw("path", { class: "before", d: diamond(x(row.training), y, 5) }),
      draw("circle", { class: "dot", cx: x(row.point), cy: y, r: 5 }),
      draw("text", { class: "tick", x: width, y: y + 4, "text-anchor": "end" }, said));
  });
  return frame(width, bottom + 24, `Estimated prevalence of ${rows.length} labels; the table below has the numbers.`, axis.flat(), lines);
}

function diamond(x, y, r) {
  return `M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`;
}

// One bar per label: how far it is from training.
export function moverChart(rows, width) {
  const left = labelWidth(rows, width);
  const right = 84;
  const most = Math.max(...rows.map((row) => Math.abs(row.change)), 0.005);
  const middle = left + (width - left - right) / 2;
  const x = (change) => middle + (change / most) * ((width - left - right) / 2 - 4);
  const bottom = rows.length * ROW;
  const bars = rows.map((row, number) => {
    const y = number * ROW + 5;
    const [from, to] = [Math.min(x(0), x(row.change)), Math.max(x(0), x(row.change))];
    const side = row.change > 0 ? "up" : "down";
    return draw("g", {},
      draw("title", {}, `${row.label}: ${percent(row.training)} in training, ${percent(row.point)} now`),
      draw("text", { x: left - 8, y: y + 13, "text-anchor": "end" }, short(row.label, left - 8)),
      draw("rect", { class: row.clear ? side : `${side} unsure`, x: from, y, width: Math.max(to - from, 1), height: ROW - 10, rx: 2 }),
      draw("text", { class: "tick", x: width, y: y + 13, "text-anchor": "end" }, points(row.change)));
  });
  const zero = draw("line", { class: "grid", x1: middle, x2: middle, y1: 0, y2: bottom });
  return frame(width, bottom + 4, "Change since training; the table below has the numbers.", zero, bars);
}

// One panel per label: the estimates over time with their intervals, and the training prevalence.
export function trendPanel(view, index, width) {
  const [height, left, right, top, bottom] = [128, 40, 8, 8, 22];
  const series = view.point.map((line, b) => ({ value: line[index], lower: view.lower[b][index], upper: view.upper[b][index] }));
  const highest = Math.max(...series.map((one) => one.upper ?? one.value), view.training[index], 0.01);
  const y = (share) => top + (1 - share / (highest * 1.05)) * (height - top - bottom);
  const x = (b) => left + (b / Math.max(1, series.length - 1)) * (width - left - right);
  const at = (b, value) => `${x(b).toFixed(1)} ${y(value).toFixed(1)}`;
  const grid = ticks(0, highest, 2).map((share) => [
    draw("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
    draw("text", { class: "tick", x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share, highest < 0.04 ? 1 : 0)),
  ]);
  const known = series.every((one) => one.lower !== null);
  const area = known
    ? `M${series.map((one, b) => at(b, one.upper)).join("L")}L${series.map((one, b) => at(b, one.lower)).reverse().join("L")}Z`
    : "";
  const dots = series.map((one, b) => draw("circle", { class: "dot", cx: x(b), cy: y(one.value), r: series.length > 40 ? 2 : 3.5 },
    draw("title", {}, `${view.batches[b].name}: ${percent(one.value)}${interval(one)}`)));
  const names = [[0, "start"], [series.length - 1, "end"]].map(([b, anchor]) =>
    draw("text", { class: "tick", x: x(b), y: height - 4, "text-anchor": anchor }, short(view.batches[b].name, width / 2)));
  return frame(width, height, `${view.labels[index]} over time, from ${percent(series[0].value)} to ${percent(series.at(-1).value)}`,
    grid.flat(),
    draw("line", { class: "training", x1: left, x2: width - right, y1: y(view.training[index]), y2: y(view.training[index]) }),
    draw("path", { class: "area", d: area }),
    draw("path", { class: "line", d: `M${series.map((one, b) => at(b, one.value)).join("L")}` }),
    dots, names);
}

export function key(...entries) {
  return make("p", { className: "key" }, ...entries.map(([nodes, text]) =>
    make("span", {}, draw("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, nodes), text)));
}

export const SYMBOLS = {
  estimate: () => [draw("circle", { class: "dot", cx: 11, cy: 6, r: 5 })],
  span: () => [draw("line", { class: "span", x1: 5, x2: 17, y1: 6, y2: 6 })],
  before: () => [draw("path", { class: "before", d: diamond(11, 6, 5) })],
  dashes: () => [draw("line", { class: "training", x1: 0, x2: 22, y1: 6, y2: 6 })],
  line: () => [draw("line", { class: "line", x1: 0, x2: 22, y1: 6, y2: 6 })],
  dots: () => [draw("line", { class: "line counted", x1: 0, x2: 22, y1: 6, y2: 6 })],
  clear: () => [draw("rect", { class: "up", x: 0, y: 1, width: 10, height: 10 }), draw("rect", { class: "down", x: 12, y: 1, width: 10, height: 10 })],
  unsure: () => [draw("rect", { class: "up unsure", x: 0, y: 1, width: 10, height: 10 }), draw("rect", { class: "down unsure", x: 12, y: 1, width: 10, height: 10 })],
};

// Mean error by the shift of the labels, a line for each estimate; both in percentage points.
export function errorChart(quality, width) {
  const [height, left, right, top, bottom] = [200, 46, 12, 8, 40];
  const lines = Object.entries(quality.errors);
  const highest = Math.max(...lines.flatMap(([, errors]) => errors), 1);
  const last = Math.max(...quality.shifts, 1);
  const x = (shift) => left + (shift / last) * (width - left - right);
  const y = (error) => top + (1 - error / (highest * 1.05)) * (height - top - bottom);
  const grid = ticks(0, highest, 3).map((error) => [
    draw("line", { class: "grid", x1: left, x2: width - right, y1: y(error), y2: y(error) }),
    draw("text", { class: "tick", x: left - 6, y: y(error) + 4, "text-anchor": "end" }, String(+error.toFixed(1))),
  ]);
  const below = ticks(0, last, width < 480 ? 3 : 6).map((shift) =>
    draw("text", { class: "tick", x: x(shift), y: height - bottom + 16, "text-anchor": "middle" }, String(+shift.toFixed(1))));
  const title = draw("text", { class: "tick", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "shift of the labels, points");
  const paths = lines.map(([name, errors], number) =>
    draw("path", { class: ["line", "line counted", "training"][number], d: `M${errors.map((error, at) => `${x(quality.shifts[at]).toFixed(1)} ${y(error).toFixed(1)}`).join("L")}` }, draw("title", {}, name)));
  const ends = lines.map(([name, errors]) => `${name} ${errors.at(-1).toFixed(1)}`).join(", ");
  return frame(width, height, `Mean error by the shift of the labels. At the largest shift, in points: ${ends}. The table below has the numbers.`,
    grid.flat(), below, title, paths.reverse());
}
