// Keys for reviewing: digits rate, letters decide, arrows move, u undoes. Without it, the same buttons work.
"use strict";
const VERDICTS = { k: "keep", d: "drop", o: "often", n: "never", i: "investigate" };
// People who use speech input, or type by accident, can switch them off.
const keys = document.getElementById("keys");
keys.checked = localStorage.getItem("keys") !== "off";
keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));
const { silent } = document.currentScript.dataset;
const rows = [...document.querySelectorAll("[data-site]")];
let at = 0;

const choose = index => {
  if (!rows.length) return;
  rows[at].removeAttribute("aria-current");
  at = Math.max(0, Math.min(rows.length - 1, index));
  rows[at].setAttribute("aria-current", "true");
  rows[at].scrollIntoView({ block: "nearest" });
};

const send = async (row, name, value) => {
  const form = row.querySelector("form");
  const fields = new URLSearchParams(new FormData(form));
  fields.set(name, value);
  fields.set("lang", document.documentElement.lang);
  const said = row.querySelector("output");
  try {
    const answer = await fetch(form.action, { method: "POST", body: fields, headers: { Accept: "application/json" } });
    const reply = await answer.json();
    said.textContent = reply.error || reply.said;
    said.className = reply.error ? "failed" : "";
    // After a conflict, the same key once more writes all the same.
    if (reply.seen !== undefined) form.elements.seen.value = reply.seen;
    return !reply.error;
  } catch {
    said.textContent = silent;
    said.className = "failed";
    return false;
  }
};

document.addEventListener("submit", event => {
  const row = event.target.closest("[data-site]"), button = event.submitter;
  if (!row || !button?.name) return;
  event.preventDefault();
  choose(rows.indexOf(row));
  send(row, button.name, button.value);
});

document.addEventListener("keydown", async event => {
  if (event.target.matches("input:not([type=checkbox]), textarea, select") || event.ctrlKey || event.metaKey || event.altKey || !keys.checked || !rows.length) return;
  const key = event.key, row = rows[at];
  if (key === "ArrowDown" || key === "ArrowRight") choose(at + 1);
  else if (key === "ArrowUp" || key === "ArrowLeft") choose(at - 1);
  else if (key === "Enter" && event.target.matches("a, button")) return;
  else if (key === "Enter") row.querySelector("a")?.click();
  else if ("1234".includes(key)) { if (await send(row, "rating", key) && rows[at] === row) choose(at + 1); }
  else if (VERDICTS[key]) { if (await send(row, "verdict", VERDICTS[key]) && rows[at] === row) choose(at + 1); }
  else if (key === "u") send(row, "undo", "1");
  else return;
  event.preventDefault();
});

choose(0);
