(function () {
  "use strict";
  // Tables whose rows are the same methods: find methods and choose columns, in all tables at once.
  function list(nodes) { return Array.prototype.slice.call(nodes); }
  var main = document.querySelector("main"), tables = list(main.querySelectorAll("table"));
  var rows = [], shown = {}, heads = [];
  tables.forEach(function (table) {
    table.dataset.first = "ascending";
    list(table.tHead.rows[0].cells).slice(1).forEach(function (head) {
      var name = head.textContent.trim();
      if (heads.indexOf(name) < 0) { heads.push(name); shown[name] = true; }
      head.dataset.column = name;
    });
    list(table.tBodies).forEach(function (body) { rows = rows.concat(list(body.rows)); });
  });
  function element(name, values, children) {
    var made = document.createElement(name);
    Object.keys(values).forEach(function (key) { made[key] = values[key]; });
    (children || []).forEach(function (child) { made.append(child); });
    return made;
  }
  var search = element("input", { type: "search", autocomplete: "off", spellcheck: false });
  var found = element("output", {});
  function method(row) { return row.cells[0].textContent; }
  function find() {
    var words = search.value.toLowerCase().split(/\s+/).filter(Boolean), left = {}, all = {};
    rows.forEach(function (row) {
      var name = method(row).toLowerCase();
      row.hidden = !words.every(function (word) { return name.indexOf(word) >= 0; });
      all[name] = true;
      if (!row.hidden) { left[name] = true; }
    });
    found.textContent = Object.keys(left).length + " of " + Object.keys(all).length + " methods";
  }
  function choose() {
    tables.forEach(function (table) {
      list(table.tHead.rows[0].cells).forEach(function (head, place) {
        if (!head.dataset.column) { return; }
        list(table.rows).forEach(function (row) { row.cells[place].hidden = !shown[head.dataset.column]; });
      });
    });
  }
  var boxes = heads.map(function (name) {
    var box = element("input", { type: "checkbox", checked: true });
    box.addEventListener("change", function () { shown[name] = box.checked; choose(); });
    return element("label", { className: "check" }, [box, name]);
  });
  function all(value) {
    var button = element("button", { type: "button", textContent: value ? "Show all" : "Hide all" });
    button.addEventListener("click", function () {
      boxes.forEach(function (label) { label.firstChild.checked = shown[label.lastChild.textContent] = value; });
      choose();
    });
    return button;
  }
  search.addEventListener("input", find);
  var columns = element("fieldset", {}, [element("legend", { textContent: "Columns to show" }), all(true), all(false)].concat(boxes));
  main.insertBefore(
    element("div", { className: "controls tools" }, [
      element("label", {}, ["Find methods", search]),
      found,
      element("details", {}, [element("summary", { textContent: "Columns" }), columns])
    ]),
    main.querySelector("section")
  );
  find();
}());
