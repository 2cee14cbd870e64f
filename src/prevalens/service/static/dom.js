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

// What a tab remembers when its page is loaded again; too much to keep is not kept.
export function remember(name, value) {
  try {
    sessionStorage.setItem(`prevalens-${name}`, JSON.stringify(value));
  } catch {
    sessionStorage.removeItem(`prevalens-${name}`);
  }
}

export const recall = (name) => JSON.parse(sessionStorage.getItem(`prevalens-${name}`) ?? "null");

// Text of a live region; the same words are not said twice.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Something was done that can be undone.
export function notice(text, undo) {
  const button = find("notice-undo");
  find("notice-text").textContent = text;
  button.onclick = () => {
    show(find("notice"), false);
    undo();
  };
  show(find("notice"), true);
  button.focus({ preventScroll: true });
}
