// The OpenAPI document for people to read, without a library from elsewhere.

import { find, make } from "./dom.js";

const THEME = "prevalens-theme";

function typeName(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `list of ${typeName(schema.items)}`;
  if (schema.type === "object" && schema.additionalProperties?.type) return `object of ${typeName(schema.additionalProperties)}`;
  return schema.type ?? "anything";
}

function table(name, head, rows) {
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": name },
    make("table", {}, make("thead", {}, make("tr", {}, head.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((text) => make("td", {}, text)))))));
}

function bodyRows(content = {}) {
  return Object.entries(content).map(([kind, { schema }]) => [kind, typeName(schema)]);
}

function operation(path, verb, about) {
  const parameters = (about.parameters ?? []).map((one) => [one.name, one.in, typeName(one.schema), one.description ?? ""]);
  const answers = Object.entries(about.responses).map(([status, one]) => [status, one.description, bodyRows(one.content).map((row) => row.join(": ")).join("; ")]);
  const body = bodyRows(about.requestBody?.content);
  const name = `${verb.toUpperCase()} ${path}`;
  return make("div", { className: "operation" },
    make("h3", {}, make("span", { className: "verb" }, verb.toUpperCase()), make("code", {}, path)),
    make("p", {}, about.description ?? about.summary ?? ""),
    parameters.length ? table(`${name}, parameters`, ["Parameter", "In", "Type", "Meaning"], parameters) : null,
    body.length ? table(`${name}, body`, ["Body", "Type"], body) : null,
    table(`${name}, answers`, ["Answer", "Meaning", "Type"], answers));
}

function type(name, schema) {
  const needed = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([field, one]) =>
    [field, typeName(one), needed.has(field) ? "needed" : `default ${JSON.stringify(one.default ?? null)}`, one.description ?? ""]);
  return make("div", { className: "operation" }, make("h3", {}, name), make("p", {}, schema.description ?? ""), table(`${name}, fields`, ["Field", "Type", "Default", "Meaning"], rows));
}

document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? "auto";
const description = await (await fetch("/openapi.json")).json();
find("about").textContent = `${description.info.title} ${description.info.version}. ${description.info.description ?? ""}`;
find("operations").replaceChildren(...Object.entries(description.paths).flatMap(([path, verbs]) =>
  Object.entries(verbs).map(([verb, about]) => operation(path, verb, about))));
find("types").replaceChildren(...Object.entries(description.components.schemas).map(([name, schema]) => type(name, schema)));
