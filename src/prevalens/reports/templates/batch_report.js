(function () {
  "use strict";
  // Sorting: every table with one row of heads; text that begins with a number is a number.
  function number(text) {
    var found = text.replace(/,/g, "").replace("∞", "Infinity").match(/^[+-]?(\d+\.?\d*|\.\d+|Infinity)(?=$| )/);
    return found ? parseFloat(found[0]) : NaN;
  }
  function key(row, column) {
    var cell = row.cells[column], field = cell.querySelector("circle.point");
    return field ? field.getAttribute("cx") : cell.textContent.trim();
  }
  // Figures in the direction asked for, those that are missing last in both.
  function compare(a, b, up) {
    var x = number(a), y = number(b);
    if (isNaN(x) !== isNaN(y)) { return isNaN(x) ? 1 : -1; }
    return (up ? 1 : -1) * (isNaN(x) ? a.localeCompare(b) : x - y);
  }
  function sort(table, column, head) {
    var up = head.getAttribute("aria-sort") === "descending" ||
      (!head.hasAttribute("aria-sort") && (column === 0 || table.dataset.first === "ascending"));
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (one) { one.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    Array.prototype.forEach.call(table.tBodies, function (body) {
      var rows = Array.prototype.slice.call(body.rows);
      rows.sort(function (a, b) { return compare(key(a, column), key(b, column), up); });
      rows.forEach(function (row) { body.appendChild(row); });
    });
    limit(table);
  }
  // Long tables show their first rows until the reader asks for all.
  function limit(table) {
    var button = document.querySelector('button.more[data-table="' + table.id + '"]');
    if (!button) { return; }
    var most = table.dataset.all ? Infinity : Number(table.dataset.most), shown = 0, all = 0;
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
      var wanted = !row.dataset.left;
      all += wanted ? 1 : 0;
      row.hidden = !wanted || shown >= most;
      shown += row.hidden ? 0 : 1;
    });
    button.hidden = all <= Number(table.dataset.most);
    button.textContent = table.dataset.all ? "Show the first " + table.dataset.most : "Show all " + all + " labels";
  }
  function sortable(table) {
    if (!table.tHead || table.tHead.rows.length !== 1 || table.tBodies[0].rows.length < 3) { return; }
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      if (!head.textContent.trim()) { return; }
      var button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = head.textContent;
      button.addEventListener("click", function () { sort(table, column, head); });
      head.textContent = "";
      head.appendChild(button);
    });
  }
  Array.prototype.forEach.call(document.querySelectorAll("main table"), sortable);

  var block = document.getElementById("batch-data");
  if (!block) { return; }
  var data = JSON.parse(block.textContent);
  var SVG = "http://www.w3.org/2000/svg";
  function by(id) { return document.getElementById(id); }

  // Figures in words, as the static page writes them.
  function share(value) {
    if (value === 0 || value === 1) { return 100 * value + " %"; }
    return (100 * value).toFixed(value >= 0.00995 ? 1 : 2) + " %";
  }
  function points(change) {
    if (Math.abs(change) < 5e-5) { return "0.0"; }
    var digits = Math.abs(change) >= 0.00095 ? 1 : 2;
    return (change > 0 ? "+" : "") + (100 * change).toFixed(digits);
  }
  function interval(batch, label) {
    return share(data.lower[batch][label]) + " to " + share(data.upper[batch][label]);
  }
  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }
  all("button.more").forEach(function (button) {
    var table = by(button.dataset.table);
    button.addEventListener("click", function () {
      if (table.dataset.all) { delete table.dataset.all; } else { table.dataset.all = "yes"; }
      limit(table);
    });
  });
  function unsorted(table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (one) { one.removeAttribute("aria-sort"); });
  }

  // The table of one batch: choose the batch, find labels.
  var table = by("prevalence-table"), rows = Array.prototype.slice.call(table.tBodies[0].rows);
  var choice = by("batch"), filter = by("filter"), moved = by("moved"), found = by("found");
  var top = parseFloat(table.dataset.top), width = parseFloat(table.dataset.width), margin = 6;
  var root = by("root");
  function place(value) {
    var part = Math.max(0, Math.min(value / top, 1));
    return margin + (root.checked ? Math.sqrt(part) : part) * (width - 2 * margin);
  }
  function field(row, name, text) {
    var cell = row.querySelector('[data-field="' + name + '"]');
    if (cell) { cell.textContent = text; }
    return cell;
  }
  function show(row, batch) {
    var label = Number(row.dataset.label), value = data.point[batch][label];
    field(row, "point", share(value));
    var cell = field(row, "change", points(value - data.training[label]));
    cell.className = { "1": "clear up", "-1": "clear down" }[data.moved[batch][label]] || "";
    var bar = row.querySelector("svg.bar"), words = data.labels[label] + ": " + share(value);
    bar.querySelector(".point").setAttribute("cx", place(value));
    ["x1", "x2"].forEach(function (end) {
      bar.querySelector(".training").setAttribute(end, place(data.training[label]));
    });
    if (data.lower) {
      field(row, "interval", interval(batch, label));
      var low = place(data.lower[batch][label]), range = bar.querySelector(".interval");
      range.setAttribute("x", low);
      range.setAttribute("width", Math.max(place(data.upper[batch][label]) - low, 1));
      words += " (" + interval(batch, label) + ")";
    }
    bar.querySelector("title").textContent = words + ", training " + share(data.training[label]);
  }
  function choose() {
    var batch = Number(choice.value), text = filter.value.trim().toLowerCase(), shown = 0;
    rows.forEach(function (row) {
      var label = Number(row.dataset.label);
      var left = data.labels[label].toLowerCase().indexOf(text) < 0 || (moved.checked && !data.moved[batch][label]);
      if (left) { row.dataset.left = "yes"; } else { delete row.dataset.left; }
      shown += left ? 0 : 1;
      show(row, batch);
    });
    table.classList.toggle("unsure", data.alarms[batch]);
    by("batch-alarm").hidden = !data.alarms[batch];
    by("shown-batch").textContent = data.batches[batch];
    found.textContent = shown + " of " + data.labels.length + " labels, " +
      data.sizes[batch].toLocaleString("en") + " items";
    limit(table);
  }
  // Another batch: supported moves come first again.
  function arrange() {
    var batch = Number(choice.value);
    function far(row, matrix) { return matrix[batch][Number(row.dataset.label)]; }
    function change(row) { return Math.abs(far(row, data.point) - data.training[Number(row.dataset.label)]); }
    rows.sort(function (a, b) { return far(b, data.reach) - far(a, data.reach) || change(b) - change(a); });
    rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    unsorted(table);
  }
  all(".controls[hidden]").forEach(function (one) { one.hidden = false; });
  if (!data.lower) { moved.parentNode.hidden = true; }
  if (data.batches.length < 2) { choice.parentNode.hidden = true; }
  choice.addEventListener("input", arrange);
  [choice, filter, moved, root].forEach(function (one) { one.addEventListener("input", choose); });
  choose();

  // The difference of two batches: distances of the ends from the estimates are squared and added,
  // or added where the batches lie on different sides of training.
  var differences = by("difference-table");
  function ends(low, high, first, second, label) {
    var before = data.point[first][label], after = data.point[second][label], change = after - before;
    var apart = (before - data.training[label]) * (after - data.training[label]) < 0;
    function combined(a, b) { return apart ? a + b : Math.hypot(a, b); }
    return [
      Math.max(change - combined(after - data[low][second][label], data[high][first][label] - before), -1),
      Math.min(change + combined(data[high][second][label] - after, before - data[low][first][label]), 1)
    ];
  }
  function support(first, second, label) {
    if (!data.band_lower || !data.judged[first] || !data.judged[second]) { return 0; }
    var band = ends("band_lower", "band_upper", first, second, label);
    return band[0] > 0 ? 1 : (band[1] < 0 ? -1 : 0);
  }
  function compareBatches() {
    var first = Number(by("first").value), second = Number(by("second").value), n = 0;
    var signs = data.labels.map(function (_, label) { return first === second ? 0 : support(first, second, label); });
    function change(label) { return data.point[second][label] - data.point[first][label]; }
    var lines = Array.prototype.slice.call(differences.tBodies[0].rows);
    lines.sort(function (a, b) {
      var x = Number(a.dataset.label), y = Number(b.dataset.label);
      return Math.abs(signs[y]) - Math.abs(signs[x]) || Math.abs(change(y)) - Math.abs(change(x)) || x - y;
    });
    lines.forEach(function (row) {
      var label = Number(row.dataset.label);
      n += Math.abs(signs[label]);
      field(row, "first", share(data.point[first][label]));
      field(row, "second", share(data.point[second][label]));
      field(row, "difference", points(change(label)));
      if (data.lower) { field(row, "interval", ends("lower", "upper", first, second, label).map(points).join(" to ")); }
      field(row, "supported", { "1": "▲ higher", "-1": "▼ lower" }[signs[label]] || "no");
      differences.tBodies[0].appendChild(row);
    });
    unsorted(differences);
    differences.classList.toggle("unsure", !data.judged[first] || !data.judged[second]);
    by("compared").textContent = data.batches[second] + " minus " + data.batches[first];
    ["first", "second"].forEach(function (name) {
      var head = differences.querySelector('[data-field="' + name + '-name"]');
      (head.querySelector("button") || head).textContent = data.batches[name === "first" ? first : second];
    });
    by("differences-found").textContent = !data.judged[first] || !data.judged[second]
      ? "No verdict: a batch raises the alarm, is unusual or has too few items."
      : n + " of " + data.labels.length + " differences supported";
    limit(differences);
  }
  if (differences) {
    ["first", "second"].forEach(function (id) { by(id).addEventListener("input", compareBatches); });
    compareBatches();
  }

  // The trend of one label, or its bars.
  var box = by("trend");
  if (!box) { return; }
  box.hidden = false;
  var select = by("trend-label"), chart = by("trend-chart"), value = by("trend-value");
  // One unit is one pixel, so that letters keep their size on a phone.
  var WIDE = 720, HIGH = 300, LEFT = 56, RIGHT = 16, UPPER = 14, LOWER = 40;
  var marker = null, at = data.ordered ? data.batches.length - 1 : 0, last = data.batches.length - 1;
  function make(name, attributes, parent) {
    var one = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) { one.setAttribute(key, attributes[key]); });
    parent.appendChild(one);
    return one;
  }
  function column(name, label) { return data[name].map(function (row) { return row[label]; }); }
  function ticks(high) {
    var rough = high / 5, unit = Math.pow(10, Math.floor(Math.log10(rough)));
    var step = [1, 2, 5, 10].map(function (m) { return m * unit; }).find(function (m) { return m >= rough * (1 - 1e-9); });
    var all = [];
    for (var k = 0; k * step <= high * (1 + 1e-9); k += 1) { all.push(k * step); }
    return all;
  }
  function wanted(id, name) { var box = by(id); return data[name] && box && box.checked; }
  function x(batch) { return last ? LEFT + batch / last * (WIDE - LEFT - RIGHT) : (LEFT + WIDE - RIGHT) / 2; }
  function highest(label) {
    var values = column("point", label).concat(data.training[label]);
    if (data.upper) { values = values.concat(column("upper", label)); }
    if (wanted("show-counted", "counted")) { values = values.concat(column("counted", label)); }
    if (wanted("show-true", "true")) { values = values.concat(column("true", label)); }
    return Math.min(1, Math.max.apply(null, values) * 1.06 || 0.01);
  }
  // Groups have no order in time: a bar for each, by size, share or name.
  var order = data.batches.map(function (_, i) { return i; }), LINE = 22, NAMES = 130;
  function across(label) {
    return function (v) { return NAMES + v / highest(label) * (WIDE - NAMES - RIGHT); };
  }
  function arrangeBars(label) {
    var by_ = by("bar-order").value;
    order.sort(function (a, b) {
      if (by_ === "value") { return data.point[b][label] - data.point[a][label]; }
      return by_ === "name" ? data.batches[a].localeCompare(data.batches[b]) : a - b;
    });
  }
  function drawBars() {
    WIDE = Math.max(280, chart.clientWidth);
    var label = Number(select.value), at_ = across(label), high = UPPER + LINE * order.length;
    arrangeBars(label);
    chart.textContent = "";
    var svg = make("svg", { viewBox: "0 0 " + WIDE + " " + (high + 30), role: "img", fill: "currentColor", "font-size": 13,
      "aria-label": "Groups, " + data.labels[label] }, chart);
    ticks(highest(label)).forEach(function (v) {
      make("line", { x1: at_(v), x2: at_(v), y1: UPPER, y2: high, stroke: "var(--pv-line)" }, svg);
      make("text", { x: at_(v), y: high + 18, "text-anchor": "middle" }, svg).textContent = parseFloat((100 * v).toPrecision(3)) + " %";
    });
    order.forEach(function (batch, row) {
      var y = UPPER + LINE * row + LINE / 2, name = data.batches[batch];
      var hue = data.alarms[batch] ? "var(--pv-muted)" : "var(--pv-series-1)";
      make("text", { x: NAMES - 8, y: y + 4, "text-anchor": "end" }, svg).textContent = name.length > 17 ? name.slice(0, 16) + "…" : name;
      make("rect", { x: NAMES, y: y - 7, width: Math.max(at_(data.point[batch][label]) - NAMES, 0.5), height: 14,
        fill: hue, "fill-opacity": 0.3, stroke: hue }, svg);
      if (data.lower) {
        make("line", { x1: at_(data.lower[batch][label]), x2: at_(data.upper[batch][label]), y1: y, y2: y, stroke: hue, "stroke-width": 3 }, svg);
      }
    });
    var training = at_(data.training[label]);
    make("line", { x1: training, x2: training, y1: UPPER, y2: high, stroke: "var(--pv-text)", "stroke-width": 1.5, "stroke-dasharray": "5 4" }, svg);
    marker = make("rect", { x: 0, width: WIDE, height: LINE, fill: "none", stroke: "var(--pv-text)" }, svg);
    read();
  }
  function draw() {
    if (!data.ordered) { drawBars(); return; }
    WIDE = Math.max(280, chart.clientWidth);
    var label = Number(select.value), high = highest(label);
    function y(v) { return HIGH - LOWER - v / high * (HIGH - LOWER - UPPER); }
    function line(values, attributes) {
      var path = values.map(function (v, i) { return x(i).toFixed(1) + "," + y(v).toFixed(1); }).join(" ");
      make("polyline", Object.assign({ points: path, fill: "none", "stroke-linejoin": "round" }, attributes), svg);
    }
    chart.textContent = "";
    var svg = make("svg", { viewBox: "0 0 " + WIDE + " " + HIGH, role: "img", fill: "currentColor", "font-size": 13,
      "aria-label": "Trend of " + data.labels[label] }, chart);
    ticks(high).forEach(function (v) {
      make("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y(v), y2: y(v), stroke: "var(--pv-line)" }, svg);
      make("text", { x: LEFT - 8, y: y(v) + 4, "text-anchor": "end" }, svg).textContent = parseFloat((100 * v).toPrecision(3)) + " %";
    });
    var every = Math.ceil(data.batches.length / Math.max(2, Math.floor(WIDE / 120)));
    data.batches.forEach(function (name, i) {
      if (i !== last && (i % every || last - i < every)) { return; }
      var anchor = i === 0 ? "start" : (i === last ? "end" : "middle");
      make("text", { x: x(i), y: HIGH - LOWER + 20, "text-anchor": anchor }, svg).textContent =
        name.length > 14 ? name.slice(0, 13) + "…" : name;
    });
    make("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y(data.training[label]), y2: y(data.training[label]),
      stroke: "var(--pv-muted)", "stroke-width": 1.5, "stroke-dasharray": "5 4" }, svg);
    if (data.lower) {
      var band = column("lower", label).map(function (v, i) { return [x(i), y(v)]; });
      band = band.concat(column("upper", label).map(function (v, i) { return [x(i), y(v)]; }).reverse());
      make("polygon", { points: band.map(function (p) { return p[0].toFixed(1) + "," + p[1].toFixed(1); }).join(" "),
        fill: "var(--pv-series-1)", "fill-opacity": 0.18 }, svg);
      ["lower", "upper"].forEach(function (end) { line(column(end, label), { stroke: "var(--pv-series-1)", "stroke-width": 0.75 }); });
    }
    if (wanted("show-counted", "counted")) {
      line(column("counted", label), { stroke: "var(--pv-series-2)", "stroke-width": 1.5, "stroke-dasharray": "8 3 2 3" });
    }
    if (wanted("show-true", "true")) {
      line(column("true", label), { stroke: "var(--pv-series-3)", "stroke-width": 2, "stroke-dasharray": "2 3" });
    }
    line(column("point", label), { stroke: "var(--pv-series-1)", "stroke-width": 2.5 });
    column("point", label).forEach(function (v, i) {
      make("circle", data.alarms[i] ? { cx: x(i), cy: y(v), r: 4, fill: "var(--pv-ground)", stroke: "var(--pv-muted)", "stroke-width": 2 }
        : { cx: x(i), cy: y(v), r: 3.5, fill: "var(--pv-series-1)" }, svg);
    });
    marker = make("line", { y1: UPPER, y2: HIGH - LOWER, stroke: "var(--pv-text)", "stroke-width": 1 }, svg);
    read();
  }
  function read() {
    var batch = data.ordered ? at : order[at];
    var label = Number(select.value), text = data.labels[label] + ", " + data.batches[batch] + ": " + share(data.point[batch][label]);
    if (data.lower) { text += " (" + interval(batch, label) + ")"; }
    if (wanted("show-counted", "counted")) { text += ", uncorrected " + share(data.counted[batch][label]); }
    if (wanted("show-true", "true")) { text += ", truth " + share(data.true[batch][label]); }
    value.textContent = text + ", training " + share(data.training[label]) + ", " + data.sizes[batch].toLocaleString("en") + " items" +
      (data.alarms[batch] ? "; this batch raises the alarm" : "");
    if (!data.ordered) { marker.setAttribute("y", UPPER + LINE * at); return; }
    marker.setAttribute("x1", x(at));
    marker.setAttribute("x2", x(at));
  }
  // Only keys speak to screen readers; a pointer that passes by does not.
  function move(to, spoken) {
    at = Math.max(0, Math.min(last, to));
    value.setAttribute("aria-live", spoken ? "polite" : "off");
    read();
  }
  chart.addEventListener("pointermove", function (event) {
    var area = chart.getBoundingClientRect();
    if (!data.ordered) { move(Math.floor((event.clientY - area.top - UPPER) / LINE), false); return; }
    var inside = (event.clientX - area.left) / area.width * WIDE;
    move(Math.round((inside - LEFT) / (WIDE - LEFT - RIGHT) * last), false);
  });
  chart.addEventListener("keydown", function (event) {
    var to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) { return; }
    event.preventDefault();
    move(to, true);
  });
  select.addEventListener("input", draw);
  ["show-counted", "show-true", "bar-order"].forEach(function (id) { if (by(id)) { by(id).addEventListener("input", draw); } });
  draw();
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", function () {
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (one) { one.open = true; });
  });
}());
