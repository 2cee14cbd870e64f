// Charts as SVG, drawn at the width they are shown at, so that letters keep their size on a phone.

import { draw, make } from "./dom.js";
import { percent, points } from "./format.js";

const ROW = 28;
const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

function short(label, width, size) {
  if (textWidth(label, size) <= width) return label;
  let letters = Math.max(3, Math.floor((label.length * width) / textWidth(label, size)));
  while (letters > 3 && textWidth(`${label.slice(0, letters)}…`, size) > width) letters -= 1;
  return `${label.slice(0, letters)}…`;
}

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

function frame(width, height, title, ...children) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": title }, ...children);
}

export function interval(row) {
  return row.lower === null ? "" : ` (${percent(row.lower)} to ${percent(row.upper)})`;
}

// A chart that pointer and arrow keys read, row by row or batch by batch. Only keys speak to screen
// readers; a pointer that passes by does not.
function readable(id, title, svg, { count, start = 0, locate, mark, say, choose = null }, output) {
  const hint = choose ? "arrow keys read the values, Enter shows items" : "arrow keys read the values";
  const box = make("div", { id, className: "readable", tabIndex: 0, role: "group", "aria-label": `${title}; ${hint}` }, svg);
  let at = start;
  const move = (to, spoken) => {
    at = Math.max(0, Math.min(count - 1, to));
    output.setAttribute("aria-live", spoken ? "polite" : "off");
    output.textContent = say(at);
    mark(at);
  };
  box.addEventListener("pointermove", (event) => {
    const area = svg.getBoundingClientRect();
    move(locate(event.clientX - area.left, event.clientY - area.top), false);
  });
  box.addEventListener("focus", () => move(at, true));
  box.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: count - 1 }[event.key];
    if (to !== undefined) move(to, true);
    else if (event.key === "Enter" && choose) choose(at);
    else return;
    event.preventDefault();
  });
  if (choose) box.addEventListener("click", () => choose(at));
  return box;
}

// Rows of labels: `bar` draws one, `end` is the number at its right, which nothing else covers.
function rowChart(id, title, rows, width, { bar, end, axis, say, choose }, output) {
  const longest = Math.max(...rows.map((row) => textWidth(row.label, 13))) + 12;
  const left = Math.min(longest, width * 0.36);
  const right = width - Math.max(...rows.map((row) => textWidth(end(row), 12))) - 16;
  const bottom = rows.length * ROW + 6;
  const scale = axis(left, right, bottom);
  const marker = draw("rect", { class: "marker", x: 0, y: 0, width, height: ROW, rx: 4, visibility: "hidden" });
  const lines = rows.map((row, number) => {
    const y = number * ROW + ROW / 2 + 3;
    return draw("g", {},
      draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short(row.label, left - 8, 13)),
      ...bar(row, y, scale.x),
      draw("text", { class: "tick end", x: width, y: y + 4, "text-anchor": "end" }, end(row)));
  });
  const svg = frame(width, bottom + scale.below, `${title}; the table of numbers has the values.`, marker, scale.lines, lines);
  return readable(id, title, svg, {
    count: rows.length,
    locate: (_, y) => Math.floor((y - 3) / ROW),
    mark: (at) => {
      marker.setAttribute("y", at * ROW + 3);
      marker.setAttribute("visibility", "visible");
    },
    say: (at) => say(rows[at]),
    choose: choose && ((at) => choose(rows[at])),
  }, output);
}

// One line per label: the estimate with its interval, beside the training prevalence. `top` is the
// end of a scale that several charts share.
export function intervalChart(rows, width, top, choose, output) {
  const narrow = width < 480;
  const highest = Math.max(...rows.map((row) => Math.max(row.upper ?? row.point, row.training)), 0.01);
  const most = top ?? Math.min(1, highest * 1.04);
  return rowChart("prevalence-read", "Estimated prevalence of labels", rows, width, {
    end: (row) => (narrow ? percent(row.point) : percent(row.point) + interval(row)),
    say: (row) => `${row.label}: ${percent(row.point)}${interval(row)}, in training ${percent(row.training)}`,
    choose,
    axis: (left, right, bottom) => {
      const x = (share) => left + 6 + (Math.min(share, most) / most) * (right - left - 14);
      const lines = ticks(0, most, narrow ? 3 : 6).map((at) => [
        draw("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: bottom }),
        draw("text", { class: "tick", x: x(at), y: bottom + 16, "text-anchor": "middle" }, percent(at, most < 0.05 ? 1 : 0)),
      ]);
      return { x, lines: lines.flat(), below: 24 };
    },
    bar: (row, y, x) => [
      row.lower === null ? null : draw("line", { class: "span", x1: x(row.lower), x2: x(row.upper), y1: y, y2: y }),
      draw("path", { class: "before", d: diamond(x(row.training), y, 5) }),
      draw("circle", { class: "dot", cx: x(row.point), cy: y, r: 5 }),
    ],
  }, output);
}

function diamond(x, y, r) {
  return `M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`;
}

// One bar per label: how far it is from training.
export function moverChart(rows, width, output) {
  const most = Math.max(...rows.map((row) => Math.abs(row.change)), 0.005);
  return rowChart("mover-read", "Change since training", rows, width, {
    end: (row) => points(row.change),
    say: (row) => `${row.label}: ${percent(row.training)} in training, ${percent(row.point)} now, ${points(row.change)}${row.clear ? "" : ", may be chance"}`,
    axis: (left, right, bottom) => {
      const middle = (left + right) / 2;
      const x = (change) => middle + (change / most) * ((right - left) / 2 - 8);
      return { x, lines: [draw("line", { class: "grid", x1: middle, x2: middle, y1: 0, y2: bottom })], below: 4 };
    },
    bar: (row, y, x) => {
      const [from, to] = [Math.min(x(0), x(row.change)), Math.max(x(0), x(row.change))];
      const side = row.change > 0 ? "up" : "down";
      return [draw("rect", { class: row.clear ? side : `${side} unsure`, x: from, y: y - 9, width: Math.max(to - from, 1), height: ROW - 10, rx: 2 })];
    },
  }, output);
}

// One panel per label: the estimates over time with their intervals, and the training prevalence.
export function trendPanel(view, index, width, top, output) {
  const [height, left, right, above, bottom] = [128, 44, 8, 8, 22];
  const series = view.point.map((line, b) => ({ value: line[index], lower: view.lower[b][index], upper: view.upper[b][index] }));
  const highest = top ?? Math.max(...series.map((one) => one.upper ?? one.value), view.training[index], 0.01);
  const y = (share) => above + (1 - share / (highest * 1.05)) * (height - above - bottom);
  const x = (b) => left + (b / Math.max(1, series.length - 1)) * (width - left - right);
  const path = (end) => `M${series.map((one, b) => `${x(b).toFixed(1)} ${y(one[end]).toFixed(1)}`).join("L")}`;
  const grid = ticks(0, highest, 2).map((share) => [
    draw("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
    draw("text", { class: "tick", x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share, highest < 0.04 ? 1 : 0)),
  ]);
  const back = series.map((one, b) => `${x(b).toFixed(1)} ${y(one.lower ?? 0).toFixed(1)}`).reverse().join("L");
  const band = series.every((one) => one.lower !== null)
    ? [draw("path", { class: "area", d: `${path("upper")}L${back}Z` }), draw("path", { class: "edge", d: path("upper") }), draw("path", { class: "edge", d: path("lower") })]
    : [];
  const dots = series.length > 60 ? [] : series.map((one, b) => draw("circle", { class: "dot", cx: x(b), cy: y(one.value), r: 3.5 }));
  const names = [[0, "start"], [series.length - 1, "end"]].map(([b, anchor]) =>
    draw("text", { class: "tick", x: anchor === "start" ? left : x(b), y: height - 4, "text-anchor": anchor }, short(view.batches[b].name, width / 2 - 24, 12)));
  const marker = draw("line", { class: "cursor", y1: above, y2: height - bottom, visibility: "hidden" });
  const title = `${view.labels[index]} over time, from ${percent(series[0].value)} to ${percent(series.at(-1).value)}`;
  const svg = frame(width, height, title, grid.flat(),
    draw("line", { class: "training", x1: left, x2: width - right, y1: y(view.training[index]), y2: y(view.training[index]) }),
    ...band, draw("path", { class: "line", d: path("value") }), dots, marker, names);
  return readable(`trend-read-${index}`, view.labels[index], svg, {
    count: series.length,
    start: series.length - 1,
    locate: (at) => Math.round(((at - left) / (width - left - right)) * (series.length - 1)),
    mark: (b) => {
      marker.setAttribute("x1", x(b));
      marker.setAttribute("x2", x(b));
      marker.setAttribute("visibility", "visible");
    },
    say: (b) => `${view.labels[index]}, ${view.batches[b].name}: ${percent(series[b].value)}${interval(series[b])}, in training ${percent(view.training[index])}`,
  }, output);
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
  unsure: () => [draw("rect", { class: "up unsure", x: 1, y: 1, width: 9, height: 10 }), draw("rect", { class: "down unsure", x: 12, y: 1, width: 9, height: 10 })],
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
