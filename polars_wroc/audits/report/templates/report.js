"use strict";
(() => {
  const all = selector => [...document.querySelectorAll(selector)];

  // The charts are compressed.
  const unpack = async packed => {
    if (!window.DecompressionStream) throw new Error("charts need a newer browser");
    const bytes = Uint8Array.from(atob(packed), sign => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };

  const config = { font: "Arial, Helvetica, sans-serif" };
  const scrolls = () => all(".chart").forEach(chart =>
    chart.scrollWidth > chart.clientWidth ? chart.setAttribute("tabindex", "0") : chart.removeAttribute("tabindex"));
  // A tooltip has a few lines of words: what it is of, then numbers, with limits in brackets.
  const words = { {%- for name, text in words.items() %}{{ name }}: {{ text | tojson }}, {% endfor -%} threshold: "selected from a score of" };
  const counts = new Set(["tp", "fp", "fn", "tn", "auc", "weight", "density", "cumulative"]);
  const tooltip = (given, sanitize) => {
    const limits = (low, high) => low in given && high in given ? ` (${given[low]} to ${given[high]})` : "";
    const lines = Object.entries(given).flatMap(([name, value]) => {
      if (value === "null" || value === null || counts.has(name) || /(^|_)(low|high)$/.test(name)) return [];
      if (name.endsWith("\u200b") || name === "verdict") return [`${value}`];
      if (name === "adjusted p") return [value < 0.001 ? "p below 0.001" : `p ${value}`];
      const ends = limits(`${name}_low`, `${name}_high`) || (["value", "gap", "ratio", "change"].includes(name) ? limits("low", "high") : "");
      return [`${words[name] || name.replaceAll("_", " ")} ${value}${ends}`];
    });
    return lines.slice(0, 5).map(line => `<p>${sanitize(line)}</p>`).join("");
  };
  // On a phone charts are as wide as the page, and panels one below the other.
  const small = matchMedia("(max-width: 40rem)"), dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = spec => spec.facet ? { ...spec, columns: 1 } : spec;

  const draw = async () => {
    const packed = await unpack(document.getElementById("specs").textContent).catch(error => error);
    const charts = packed instanceof Error ? packed : packed.charts;
    // Charts choose their colours by the background.
    const background = getComputedStyle(document.documentElement).getPropertyValue("--page").trim();
    // Those in the open first.
    for (const chart of [...all(".chart:not(details:not([open]) *)"), ...all("details:not([open]) .chart")]) {
      // A chart that fails must not cost the others.
      try {
        if (charts instanceof Error) throw charts;
        const spec = small.matches ? narrow(charts[chart.id]) : charts[chart.id];
        const options = { actions: false, renderer: "svg", mode: "vega-lite", ast: true, config: { ...config, background },
                          tooltip: { formatTooltip: tooltip, offsetX: 14, offsetY: 14 } };
        await new Promise(done => setTimeout(done));
        await vegaEmbed(chart, spec, options);
        // Groups without marks have a role, but nothing to say.
        chart.querySelectorAll("[role=graphics-symbol]:not([aria-label])").forEach(group => {
          group.removeAttribute("role");
          group.removeAttribute("aria-roledescription");
        });
      } catch (error) {
        console.error(error);
        const sentence = document.createElement("p");
        sentence.textContent = `This chart could not be drawn: ${error.message}`;
        chart.replaceChildren(sentence);
      }
    }
    scrolls();
    addEventListener("resize", scrolls);
    all("details").forEach(details => details.addEventListener("toggle", scrolls));
    document.documentElement.dataset.drawn = "yes";
  };
  for (const query of [small, dark]) query.addEventListener("change", () => draw().catch(console.error));

  // The menu is folded where there is little room.
  const menu = document.querySelector(".contents details");
  if (menu) {
    const fold = () => { menu.open = !small.matches; };
    small.addEventListener("change", fold);
    menu.addEventListener("click", ({ target }) => { if (target.closest("a") && small.matches) menu.open = false; });
    fold();
  }

  // What a link leads to is unfolded.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // Tables sort by the number or the text that a cell begins with; what is neither comes last,
  // but for the largest threshold, which is written in words.
  const aboveAll = {{ above | tojson }};
  const key = (row, column, isText) => {
    const shown = row.cells[column].firstChild.textContent.trim();
    if (isText) return shown;
    if (shown === aboveAll) return Infinity;
    // A small p-value begins with a sign, an interval with its lower limit.
    const number = Number.parseFloat(shown.replace("< ", "").replaceAll(",", "").replace("\u2212", "-"));
    return Number.isNaN(number) ? null : number;
  };
  const compare = (a, b) =>
    typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a === b ? 0 : a - b;
  const sort = (table, heading, rows) => {
    const next = { none: "ascending", ascending: "descending", descending: "none" };
    const order = next[heading.getAttribute("aria-sort")];
    table.querySelectorAll("thead th").forEach(other => other.setAttribute("aria-sort", "none"));
    heading.setAttribute("aria-sort", order);
    const column = heading.cellIndex, side = order === "descending" ? -1 : 1;
    const keyed = rows.map(row => [row, key(row, column, heading.classList.contains("text"))]);
    if (order !== "none") keyed.sort(([, a], [, b]) =>
      a === null || b === null ? (a === null) - (b === null) : side * compare(a, b));
    table.tBodies[0].append(...keyed.map(([row]) => row));
  };
  for (const table of all("table:not(.fixed, .fixed *)")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) continue;
    for (const heading of table.querySelectorAll("thead th")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      // A browser does not repeat buttons on each sheet of paper.
      const paper = document.createElement("span");
      paper.className = "paper";
      paper.textContent = heading.textContent;
      heading.replaceChildren(button, paper);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, heading, rows));
    }
  }

  // Paper shows what is open; all of it, if that is asked for here or by ?print=all. Some pages fold nothing.
  const whole = document.getElementById("print-folded") || {};
  whole.checked = new URLSearchParams(location.search).get("print") === "all";
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = whole.checked ? all("main details:not([open])") : [];
    closed.forEach(details => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach(details => { details.open = false; }));

  // Files of the numbers, made here: text in quotes, and nothing that a spreadsheet runs.
  const csv = rows => {
    const cell = value => typeof value === "string" ? `"${value.replace(/^[=+@\t\r-]/, "'$&").replaceAll('"', '""')}"` : value ?? "";
    return [Object.keys(rows[0]), ...rows.map(Object.values)].map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
  };
  for (const button of all("[data-save]")) button.addEventListener("click", async () => {
    const { data } = await unpack(document.getElementById("specs").textContent);
    const kind = button.dataset.save, link = document.createElement("a");
    const text = kind === "csv" ? csv(data.table) : JSON.stringify(data, null, 2) + "\n";
    link.href = URL.createObjectURL(new Blob([text], { type: kind === "csv" ? "text/csv" : "application/json" }));
    link.download = `${document.title.replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind}`;
    link.click();
    URL.revokeObjectURL(link.href);
  });

  draw().catch(console.error);
})();
