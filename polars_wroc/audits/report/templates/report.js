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

  // Charts have the colours of the page.
  const text = { labelColor: "var(--ink)", titleColor: "var(--ink)" };
  const config = {
    background: "transparent", font: "Arial, Helvetica, sans-serif",
    axis: { ...text, domainColor: "var(--soft)", tickColor: "var(--soft)", gridColor: "var(--grid)" },
    legend: text, header: text, title: { color: "var(--ink)" }, view: { stroke: "var(--grid)" },
  };

  // The value beside a slider, with no more digits than are read.
  const show = value => {
    const digits = Math.abs(value) < 1e6 ? 6 : 10;
    return String(Number(Number(value).toPrecision(digits))).replace("-", "\u2212");
  };
  const label = (chart, view) => {
    for (const input of chart.querySelectorAll(".vega-bind input[type=range]")) {
      const output = document.createElement("output");
      const say = value => {
        output.textContent = show(value);
        input.setAttribute("aria-valuetext", show(value));
      };
      input.nextElementSibling.replaceWith(output);
      input.addEventListener("input", () => say(input.value));
      say(view.signal("threshold"));
    }
  };
  const scrolls = () => all(".chart").forEach(chart =>
    chart.scrollWidth > chart.clientWidth ? chart.setAttribute("tabindex", "0") : chart.removeAttribute("tabindex"));
  const draw = async () => {
    const charts = unpack(document.getElementById("specs").textContent);
    // Those in the open first.
    for (const chart of [...all(".chart:not(details:not([open]) *)"), ...all("details:not([open]) .chart")]) {
      // A chart that fails must not cost the others.
      try {
        const spec = (await charts)[chart.id];
        const options = { actions: false, renderer: "svg", mode: "vega-lite", ast: true, config };
        await new Promise(done => setTimeout(done));
        const { view } = await vegaEmbed(chart, spec, options);
        label(chart, view);
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

  // Tables sort by the number or the text that a cell begins with; what is neither comes last,
  // but for the largest threshold, which is written in words.
  const above = {{ above | tojson }};
  const key = (row, column, isText) => {
    const shown = row.cells[column].firstChild.textContent.trim();
    if (isText) return shown;
    if (shown === above) return Infinity;
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
  for (const table of all("table")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) continue;
    for (const heading of table.querySelectorAll("thead th")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, heading, rows));
    }
  }

  // Paper cannot be opened.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach(details => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach(details => { details.open = false; }));

  draw().catch(console.error);
})();
