// Lists what openapi.json describes, and lets one try it. No dependency, no inline script, nothing from elsewhere.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function resolved(document_, schema) {
  let found = schema ?? {};
  for (let step = 0; found.$ref && step < 20; step += 1) {
    found = found.$ref.slice(2).split("/").reduce((at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], document_) ?? {};
  }
  return found;
}

// A value of the schema's shape, to begin a body with.
function sample(document_, schema, depth = 0) {
  const found = resolved(document_, schema);
  if (depth > 6) return null;
  if (found.default !== undefined) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  const choice = (found.oneOf ?? found.anyOf ?? [])[0];
  if (choice) return sample(document_, choice, depth + 1);
  const type = Array.isArray(found.type) ? found.type[0] : found.type;
  if (type === "object" || found.properties) {
    return Object.fromEntries(Object.entries(found.properties ?? {}).map(([name, inner]) => [name, sample(document_, inner, depth + 1)]));
  }
  if (type === "array") return found.items ? [sample(document_, found.items, depth + 1)] : [];
  if (type === "integer" || type === "number") return found.minimum ?? 0;
  if (type === "boolean") return false;
  if (type === "string") return found.format === "uuid" ? "00000000-0000-0000-0000-000000000000" : "";
  return null;
}

function jsonSchema(content) {
  return content?.["application/json"]?.schema ?? Object.values(content ?? {})[0]?.schema;
}

function shape(document_, schema) {
  return element("pre", {}, JSON.stringify(sample(document_, schema), null, 2));
}

function typeName(document_, schema) {
  const found = resolved(document_, schema);
  const choices = found.oneOf ?? found.anyOf;
  if (choices) return choices.map((choice) => typeName(document_, choice)).join(" | ");
  return [found.type, found.format].flat().filter(Boolean).join(" ") || "any";
}

async function send(method, path, inputs, body, output) {
  let address = path;
  const query = new URLSearchParams();
  const headers = {};
  for (const { parameter, input } of inputs) {
    if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (input.value && parameter.in === "query") query.append(parameter.name, input.value);
    else if (input.value && parameter.in === "header") headers[parameter.name] = input.value;
  }
  if ([...query].length) address += `?${query}`;
  if (byId("token").value) headers.Authorization = `Bearer ${byId("token").value}`;
  if (byId("key").value) headers["X-API-Key"] = byId("key").value;
  if (body?.value) headers["Content-Type"] = "application/json";
  output.textContent = "…";
  try {
    const answer = await fetch(address, { method: method.toUpperCase(), headers, body: body?.value || undefined });
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: as it is */ }
    output.className = answer.ok ? "" : "bad";
    output.textContent = `${answer.status} ${answer.statusText}\nX-Request-Id: ${answer.headers.get("x-request-id")}\n\n${shown}`;
  } catch (error) {
    output.className = "bad";
    output.textContent = String(error);
  }
}

function tryIt(document_, method, path, operation, parameters) {
  const inputs = parameters.map((parameter) => ({ parameter, input: element("input", { ariaLabel: parameter.name }) }));
  const schema = jsonSchema(operation.requestBody?.content);
  const body = schema ? element("textarea", { ariaLabel: "body", value: JSON.stringify(sample(document_, schema), null, 2) }) : null;
  const output = element("pre", { ariaLive: "polite" });
  const rows = inputs.map(({ parameter, input }) => element("tr", {},
    element("td", { className: "path" }, parameter.name + (parameter.required ? " *" : "")),
    element("td", {}, parameter.in), element("td", {}, typeName(document_, parameter.schema)),
    element("td", {}, parameter.description ?? ""), element("td", {}, input)));
  const form = element("form", {},
    rows.length ? element("table", {}, ...rows) : null,
    body ? element("h3", {}, "Body") : null, body,
    element("button", { type: "submit" }, "Try it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(method, path, inputs, body, output);
  });
  return [form, output];
}

function fill(details, document_, method, path, operation, shared) {
  const parameters = [...shared, ...(operation.parameters ?? [])].map((parameter) => resolved(document_, parameter));
  const answers = Object.entries(operation.responses ?? {}).map(([status, answer]) => {
    const found = resolved(document_, answer);
    const schema = jsonSchema(found.content);
    return element("div", {}, element("h3", {}, `${status} ${found.description ?? ""}`), schema ? shape(document_, schema) : null);
  });
  details.append(element("div", {},
    element("p", {}, operation.description ?? operation.summary ?? ""),
    ...tryIt(document_, method, path, operation, parameters), ...answers));
}

function show(document_) {
  byId("title").textContent = `${document_.info.title} ${document_.info.version}`;
  byId("about").textContent = document_.info.description ?? "";
  const main = byId("operations");
  main.replaceChildren();
  let group = "";
  for (const [path, item] of Object.entries(document_.paths).sort(([a], [b]) => a.localeCompare(b))) {
    for (const method of METHODS.filter((name) => item[name])) {
      const operation = item[method];
      const name = path.split("/").slice(0, 3).join("/");
      if (name !== group) main.append(element("h2", {}, name));
      group = name;
      const details = element("details", { className: "operation" },
        element("summary", {}, element("span", { className: `method ${method}` }, method.toUpperCase()),
          element("span", { className: "path" }, path),
          element("span", { className: "summary" }, operation.summary ?? "")));
      details.dataset.words = `${method} ${path} ${operation.summary ?? ""} ${operation.description ?? ""}`.toLowerCase();
      // Filled when opened: a page of two hundred forms would be slow.
      details.addEventListener("toggle", () => fill(details, document_, method, path, operation, item.parameters ?? []), { once: true });
      main.append(details);
    }
  }
}

byId("credentials").addEventListener("submit", (event) => event.preventDefault());
byId("find").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const details of document.querySelectorAll("details.operation")) details.hidden = !details.dataset.words.includes(wanted);
});
fetch("/openapi.json").then((answer) => answer.json()).then(show).catch((error) => {
  byId("operations").replaceChildren(element("p", { className: "bad" }, `openapi.json could not be read: ${error}`));
});
