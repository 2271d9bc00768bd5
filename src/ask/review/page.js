"use strict";
(() => {
  const body = document.querySelector("#sites tbody");
  const rows = [...body.rows];
  const filter = document.getElementById("filter");
  const open = document.getElementById("open");
  const memory = "archive review " + document.body.dataset.sheet;

  const score = (row) => row.querySelector("input:checked")?.value ?? "";
  const verdict = (row) => row.querySelector("select").value;
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

  function say(row, rating, decided) {
    for (const input of row.querySelectorAll("input")) input.checked = input.value === rating;
    row.querySelector("select").value = decided;
  }

  // What was said before, so that u takes back the newest change, by key or mouse.
  const said = new Map();
  const undone = [];
  function changed(row) {
    const now = [score(row), verdict(row)];
    if (String(now) !== String(said.get(row))) undone.push([row, ...said.get(row)]);
    said.set(row, now);
    keep();
  }
  function undo() {
    const [row, rating, decided] = undone.pop() ?? [];
    if (!row) return;
    say(row, rating, decided);
    said.set(row, [rating, decided]);
    keep();
    show();
    choose(row);
  }

  // Keys: digits rate, letters decide, arrows move.
  const letters = { k: "keep", d: "drop", o: "often", n: "never", i: "investigate" };
  let current;
  function choose(row) {
    current?.removeAttribute("aria-current");
    current = row;
    current?.setAttribute("aria-current", "true");
    current?.scrollIntoView({ block: "nearest" });
  }
  function neighbour(step) {
    const order = [...body.rows];
    for (let at = order.indexOf(current) + step; order[at]; at += step) if (!order[at].hidden) return order[at];
    return current ?? order.find((row) => !row.hidden);
  }
  function press(key) {
    if (key === "ArrowDown" || key === "ArrowRight") choose(neighbour(1));
    else if (key === "ArrowUp" || key === "ArrowLeft") choose(neighbour(-1));
    else if (key === "u") undo();
    else if (current && !current.hidden && (/^[1-4]$/.test(key) || letters[key])) {
      const row = current;
      if (letters[key]) say(row, score(row), letters[key]);
      else say(row, key, verdict(row));
      changed(row);
      choose(neighbour(1));
      show();
    } else return false;
    return true;
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    // In texts and lists keys are theirs, and arrows go through the ratings of a row that has the focus.
    if (event.target.matches("textarea, select, [type=search]")) return;
    if (event.key.startsWith("Arrow") && event.target.matches("[type=radio]")) return;
    if (press(event.key)) event.preventDefault();
  });

  // Ratings are kept in this browser until they are downloaded; where it keeps nothing, leaving asks first.
  let kept = true;
  let downloaded = true;
  function keep() {
    downloaded = false;
    const state = {};
    for (const row of rows) {
      const now = [score(row), comment(row), verdict(row)];
      if (now.some(Boolean)) state[row.dataset.site] = now;
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
      const [rating, text, decided] = state[row.dataset.site] ?? [];
      say(row, rating ?? "", decided ?? "");
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
    const lines = rows.map((row) => [row.dataset.site, score(row), comment(row), verdict(row), made].map(cell).join(","));
    return "\ufeff" + ["site,rating,comment,verdict,exported", ...lines, ""].join("\r\n");
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
    if (event.target.matches("fieldset input, textarea, select")) changed(event.target.closest("tr"));
    show();
  });
  document.addEventListener("focusout", () => setTimeout(() => open.checked && show()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.sort) sort(button);
    if (button.id === "download") download();
    if (button.className === "clear") {
      const row = button.closest("tr");
      say(row, "", verdict(row));
      changed(row);
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

  document.addEventListener("focusin", (event) => {
    const row = event.target.closest("#sites tbody tr");
    if (row) choose(row);
  });

  restore();
  for (const row of rows) said.set(row, [score(row), verdict(row)]);
  show();
  choose(neighbour(1));
})();
