"use strict";
// Filters, sorts and folds what is on the page; without it all is shown.
(() => {
  const all = (selector, from) => [...(from || document).querySelectorAll(selector)];
  const make = (tag, words, more) => Object.assign(document.createElement(tag), { textContent: words }, more);
  const main = document.querySelector("main");
  const columnOf = (row, name) => {
    const heads = all("thead th", row.closest("table")).map((one) => one.dataset.name || one.textContent);
    const at = heads.findIndex((one) => name.test(one));
    return at < 0 || row.cells.length < heads.length ? "" : row.cells[at].textContent;
  };
  const rows = all("tbody tr:not(.day)", main);
  const topics = new Set();
  // Names of topics only: nothing else of the page becomes a part of a pattern.
  for (const one of all(".partition > :first-child a", main)) if (/^[\w.-]+-\d+$/.test(one.textContent)) topics.add(one.textContent.replace(/-\d+$/, ""));
  for (const one of rows) {
    const name = columnOf(one, /^partition$/i).trim().replace(/-\d+$/, "") || columnOf(one, /^topic$/i).trim();
    if (/^[\w.-]+$/.test(name)) topics.add(name);
  }
  const names = [...topics].sort((one, other) => other.length - one.length).map((one) => one.replace(/[.]/g, "\\."));
  const ofTopic = names.length ? new RegExp("(?<![\\w.-])(" + names.join("|") + ")(?=-\\d+(?![\\w-])|[^\\w-]|$)", "g") : null;
  const subjects = [...all(".partition", main), ...rows, ...all("ul.items > li, .moments > li", main)].map((element) => {
    const words = element.textContent;
    const brokers = [...words.matchAll(/\bbrokers? (\d+(?:(?:,| and) \d+)*)/gi)].flatMap((found) => found[1].match(/\d+/g));
    const own = element.cells ? columnOf(element, /^(broker|node)$/i).trim() : "";
    return {
      element,
      words: words.toLowerCase(),
      topic: new Set(ofTopic ? [...words.matchAll(ofTopic)].map((found) => found[1]) : []),
      broker: new Set(/^\d+$/.test(own) ? [...brokers, own] : brokers),
      cluster: new Set(element.cells ? [columnOf(element, /^cluster$/i).trim()].filter(Boolean) : []),
      mark: new Set(all(".badge", element).map((one) => one.textContent)),
    };
  });
  const wanted = { topic: "", broker: "", cluster: "", mark: "", words: "" };
  const shown = make("output", "");
  const apply = () => {
    let hidden = 0;
    for (const one of subjects) {
      const isOther = ["topic", "broker", "cluster", "mark"].some((kind) => wanted[kind] && one[kind].size && !one[kind].has(wanted[kind]));
      const off = isOther || !one.words.includes(wanted.words);
      one.element.classList.toggle("off", off);
      hidden += off;
    }
    shown.textContent = hidden ? hidden + " of " + subjects.length + " rows and parts are hidden by the filter." : "";
  };
  const tools = make("div", "", { className: "tools" });
  tools.setAttribute("role", "search");
  tools.setAttribute("aria-label", "Filter this page");
  const add = (title, control, kind) => {
    const label = make("label", title + " ");
    control.addEventListener("input", () => {
      wanted[kind] = kind === "words" ? control.value.toLowerCase() : control.value;
      apply();
    });
    label.append(control);
    tools.append(label);
  };
  for (const [kind, title] of [["topic", "Topic"], ["broker", "Broker"], ["cluster", "Cluster"], ["mark", "Certainty"]]) {
    const values = [...new Set(subjects.flatMap((one) => [...one[kind]]))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    if (values.length < 2) continue;
    const select = make("select", "");
    select.append(make("option", "all", { value: "" }), ...values.map((one) => make("option", one)));
    add(title, select, kind);
  }
  if (subjects.length > 3) {
    add("Text", make("input", "", { type: "search" }), "words");
    const folds = all("details", main);
    if (folds.length) {
      const button = make("button", "Open all", { type: "button" });
      button.addEventListener("click", () => {
        const open = button.textContent === "Open all";
        for (const one of folds) one.open = open;
        button.textContent = open ? "Fold all" : "Open all";
      });
      tools.append(button);
    }
    tools.append(shown);
    const first = main.querySelector(":scope > nav, :scope > h2");
    if (first) first[first.tagName === "NAV" ? "after" : "before"](tools);
    else main.append(tools);
  }
  for (const head of all(":scope > h2", main)) {
    const fold = make("button", "fold", { type: "button", className: "fold" });
    fold.setAttribute("aria-expanded", "true");
    fold.setAttribute("aria-label", "Fold " + head.textContent);
    fold.addEventListener("click", () => {
      const open = fold.getAttribute("aria-expanded") === "false";
      for (let one = head.nextElementSibling; one && one.tagName !== "H2"; one = one.nextElementSibling) one.classList.toggle("folded", !open);
      fold.setAttribute("aria-expanded", String(open));
      fold.textContent = open ? "fold" : "open";
    });
    head.append(" ", fold);
  }
  for (const table of all("table", main)) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2 || body.querySelector("[colspan]")) continue;
    all("thead th", table).forEach((head, at) => {
      const button = make("button", head.textContent, { type: "button" });
      head.dataset.name = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        const key = (row) => row.cells[at].textContent.trim().replace(/(\d),(?=\d{3})/g, "$1");
        const sorted = [...body.rows].sort((one, other) => (down ? -1 : 1) * key(one).localeCompare(key(other), "en", { numeric: true }));
        for (const one of all("thead th", table)) one.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...sorted);
      });
    });
  }
})();
