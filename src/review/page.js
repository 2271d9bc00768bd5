"use strict";
(() => {
  const body = document.querySelector("#sites tbody");
  const rows = [...body.rows];
  const filter = document.getElementById("filter");
  const open = document.getElementById("open");
  const memory = "archive review " + document.body.dataset.sheet;

  const score = (row) => row.querySelector("input:checked")?.value ?? "";
  const comment = (row) => row.querySelector("textarea").value.trim();

  function show() {
    const wanted = filter.value.trim().toLowerCase();
    let rated = 0;
    let shown = 0;
    for (const row of rows) {
      const isRated = score(row) !== "";
      row.classList.toggle("rated", isRated);
      row.querySelector("td.rating").dataset.value = score(row);
      rated += isRated;
      const texts = () => (row.querySelector("th").textContent + " " + comment(row)).toLowerCase();
      // The row in which somebody works stays, also when it no longer fits.
      const stays = row.contains(document.activeElement);
      row.hidden = !stays && ((open.checked && isRated) || (wanted !== "" && !texts().includes(wanted)));
      shown += !row.hidden;
    }
    document.getElementById("progress").textContent = `${rated} of ${rows.length} rated`;
    document.getElementById("done").style.width = `${rows.length ? (rated / rows.length) * 100 : 0}%`;
    document.getElementById("none").hidden = shown > 0 || rows.length === 0;
  }

  // Ratings are kept in this browser until they are downloaded; where it keeps nothing, leaving asks first.
  let kept = true;
  let downloaded = true;
  function keep() {
    downloaded = false;
    const state = {};
    for (const row of rows) {
      if (score(row) || comment(row)) state[row.dataset.site] = [score(row), comment(row)];
    }
    try {
      localStorage.setItem(memory, JSON.stringify(state));
    } catch {
      kept = false;
    }
  }
  function restore() {
    let state = {};
    try {
      state = JSON.parse(localStorage.getItem(memory) ?? "{}");
    } catch {
      kept = false;
    }
    for (const row of rows) {
      const [rating, text] = state[row.dataset.site] ?? ["", ""];
      const chosen = [...row.querySelectorAll("input")].find((input) => input.value === rating);
      if (chosen) chosen.checked = true;
      if (text) row.querySelector("textarea").value = text;
    }
  }
  addEventListener("beforeunload", (event) => {
    if (!kept && !downloaded) event.preventDefault();
  });

  function sort(button) {
    const head = button.closest("th");
    const name = button.dataset.sort;
    const isText = name === "site";
    const first = isText || name === "rank" ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const th of head.parentElement.cells) th.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const value = (row) => row.querySelector("." + name).dataset.value;
    const number = (row) => Number(value(row));
    const sign = order === "ascending" ? 1 : -1;
    const compare = (a, b) => (isText ? value(a).localeCompare(value(b)) : number(a) - number(b));
    body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
  }

  function csv() {
    // A text that a spreadsheet program would take for a formula gets an apostrophe in front.
    const cell = (text) => {
      const harmless = /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? "'" + text : text;
      return /[",;\t\r\n]/.test(harmless) ? '"' + harmless.replaceAll('"', '""') + '"' : harmless;
    };
    const made = document.body.dataset.made;
    const lines = rows.map((row) => [row.dataset.site, score(row), comment(row), made].map(cell).join(","));
    return "\ufeff" + ["site,rating,comment,exported", ...lines, ""].join("\r\n");
  }

  function download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    link.download = "ratings.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    downloaded = true;
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("fieldset input, textarea")) keep();
    show();
  });
  document.addEventListener("focusout", () => setTimeout(() => open.checked && show()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.sort) sort(button);
    if (button.id === "download") download();
    if (button.className === "clear") {
      const chosen = button.closest("tr").querySelector("input:checked");
      if (chosen) chosen.checked = false;
      keep();
      show();
    }
  });
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });

  restore();
  show();
})();
