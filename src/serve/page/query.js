// Completes words of a query while it is typed: rows, fields, functions, keywords, and the values of fields that have a few.
// Without it the box takes the same queries. VOCABULARY stands before this.
"use strict";
const SHOWN_MAX = 10;
const box = document.getElementById("query"), list = document.getElementById("words");
// Which rows the fields after a name and a point belong to, and those after the first word.
const ROWS = { page: "pages", source: "pages", target: "pages", site: "sites", host: "hosts", capture: "captures", version: "captures", link: "links" };
const VALUE = /(?:(\w+) +)?(\w+)\s*(?:!?=|in\s*\((?:[\w-]+\s*,\s*)*)\s*([\w-]*)$/i;
let found = [], from = 0, to = 0, active = -1;

const plain = text => text.toLowerCase().replace(/[_ ]+/g, " ");
const begins = (name, typed) => plain(name).startsWith(plain(typed)) && plain(name) !== plain(typed);

// What may stand at the end of a text, and how much of it that replaces.
const fitting = before => {
  const rest = before.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|--[^\n]*\n/gs, text => "?".repeat(text.length));
  // Texts and comments are nobody's business.
  if (/["']|--/.test(rest)) return [[], ""];
  const kind = rest.match(/^\s*(?:count\s+)?(page|site|host|capture|version|link)s?\b(?!\s*[=!<>~.]|\s+(?:in|is|matches|contains|starts|ends|between)\b)/i)?.[1] ?? "page";
  const fields = VOCABULARY.fields[ROWS[kind.toLowerCase()]];
  const value = rest.match(VALUE);
  const field = value && fields.find(({ name }) => [value[2], `${value[1]} ${value[2]}`].some(it => plain(it) === plain(name)));
  if (field) return [field.choices.filter(it => begins(it, value[3])).map(name => ({ name, meaning: "" })), value[3]];
  const keywords = VOCABULARY.keywords.filter(({ name }) => !fields.some(field => field.name === name));
  for (const [typed] of [rest.match(/[a-z]\w*[ _]+\w*$/i), rest.match(/[a-z]\w*$/i)].filter(Boolean)) {
    const start = rest.slice(0, rest.length - typed.length), owner = start.match(/(\w+)\.$/)?.[1].toLowerCase();
    const known = start.endsWith(".")
      ? VOCABULARY.fields[ROWS[owner]] ?? []
      : [...(start.trim() ? [] : VOCABULARY.rows), ...fields, ...VOCABULARY.functions, ...keywords];
    const fit = known.filter(({ name }) => begins(name, typed));
    if (fit.length) return [fit, typed];
  }
  return [[], ""];
};

// Shows what may be chosen. The box is a combobox while there is a list, and a box of several lines else.
const show = (fit, typed) => {
  [found, to, active] = [fit.slice(0, SHOWN_MAX), box.selectionStart, -1];
  from = to - typed.length;
  list.replaceChildren(...found.map(({ name, meaning }, place) => {
    const option = document.createElement("li"), code = document.createElement("code");
    Object.assign(option, { id: `word${place}`, role: "option", ariaSelected: "false", lang: "en" });
    code.textContent = name;
    option.append(code, " ", meaning);
    return option;
  }));
  list.hidden = !found.length;
  for (const name of ["role", "aria-expanded", "aria-controls", "aria-autocomplete", "aria-activedescendant"]) box.removeAttribute(name);
  if (!found.length) return;
  for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "true", "aria-controls": list.id, "aria-autocomplete": "list" })) box.setAttribute(name, value);
};
const close = () => show([], "");

const choose = place => {
  active = (place + found.length) % found.length;
  [...list.children].forEach((option, index) => (option.ariaSelected = String(index === active)));
  box.setAttribute("aria-activedescendant", list.children[active].id);
};

const take = place => {
  box.setRangeText(found[place].name, from, to, "end");
  close();
};

box.addEventListener("input", event => event.isComposing || box.selectionStart !== box.selectionEnd
  ? close() : show(...fitting(box.value.slice(0, box.selectionStart))));
box.addEventListener("keydown", event => {
  if (list.hidden || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "ArrowDown") choose(active + 1);
  else if (event.key === "ArrowUp") choose(active < 0 ? -1 : active - 1);
  else if (event.key === "Enter" && active >= 0) take(active);
  else if (event.key === "Escape") close();
  else {
    // What moves the caret leaves the word.
    if (["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key)) close();
    return;
  }
  event.preventDefault();
});
box.addEventListener("blur", close);
box.addEventListener("click", close);
// The box keeps the focus.
list.addEventListener("mousedown", event => event.preventDefault());
list.addEventListener("click", event => {
  const place = [...list.children].indexOf(event.target.closest("li"));
  if (place >= 0) take(place);
});
