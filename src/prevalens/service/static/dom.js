// Building nodes. Text is always text: nothing here or elsewhere parses a string as markup.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

function fill(node, children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  return fill(node, children);
}

export function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return fill(node, children);
}

export function show(node, visible) {
  node.hidden = !visible;
}

export function options(select, choices, chosen) {
  select.replaceChildren(
    ...choices.map(([value, text]) => make("option", { value, textContent: text, selected: value === chosen })),
  );
}

export function complain(error) {
  // The card that asks for the token says it already.
  if (error.code === "unauthorised") return;
  find("alert-text").textContent = error.message || String(error);
  show(find("alert"), true);
  find("alert").scrollIntoView({ block: "nearest" });
}

export function calm() {
  show(find("alert"), false);
}
