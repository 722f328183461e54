"use strict";
/* Hover values, curves that can be hidden, tables that can be sorted. The page reads without it. */
document.querySelectorAll("figure[data-figure]").forEach(figure => {
  const readout = figure.querySelector(".readout");
  const buttons = [...figure.querySelectorAll(".legend button")];
  buttons.forEach(button => button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    figure.querySelectorAll(`svg g[data-s="${button.dataset.s}"]`)
      .forEach(curve => curve.classList.toggle("off", !shown));
  }));
  const nearest = event => {
    let best = null, distance = 40 * 40;
    const plot = event.currentTarget;
    plot.querySelectorAll("g[data-s]:not(.off) .p").forEach(point => {
      const box = point.getBoundingClientRect();
      const dx = box.x + box.width / 2 - event.clientX, dy = box.y + box.height / 2 - event.clientY;
      if (dx * dx + dy * dy < distance) {
        distance = dx * dx + dy * dy;
        best = point;
      }
    });
    if (!best) return;
    const name = buttons[+best.parentNode.dataset.s].textContent;
    readout.textContent = `${name}: ${best.dataset.y} at ${best.dataset.x}`;
  };
  figure.querySelectorAll("svg.wide, svg.narrow").forEach(plot => {
    plot.addEventListener("pointermove", nearest);
    plot.addEventListener("pointerdown", nearest);
  });
});
document.querySelectorAll("table.sortable").forEach(table => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => {
      const text = row.cells[column].dataset.v ?? row.cells[column].textContent;
      const value = parseFloat(text);
      return text.trim() !== "" && !Number.isNaN(value) ? value : text;
    };
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      const order = typeof x === "number" && typeof y === "number" ? x - y
        : String(x).localeCompare(String(y));
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows);
  }));
});
window.addEventListener("beforeprint", () => document.querySelectorAll("details")
  .forEach(details => { details.open = true; }));
