"use strict";
/* The filter to play with, values beside the pointer, curves that can be hidden, tables that can be
   sorted. The page reads without it. */

/* ---- a Bloom filter of 32 bits and three hashes ---- */
{
  const play = document.getElementById("play"), cells = [...play.querySelectorAll(".cell")];
  const word = document.getElementById("word"), answer = document.getElementById("answer");
  const state = document.getElementById("state"), added = new Set();
  const hash = (text, seed) => {                         // FNV-1a, then mixed
    let h = 2166136261 ^ seed;
    for (const letter of new TextEncoder().encode(text)) h = Math.imul(h ^ letter, 16777619);
    h = Math.imul(h ^ h >>> 15, 2246822507);
    h = Math.imul(h ^ h >>> 13, 3266489909);
    return (h ^ h >>> 16) >>> 0;
  };
  const bits = text => [1, 2, 3].map(seed => hash(text, seed * 0x9E3779B1) % cells.length);
  const tell = () => {
    const on = cells.filter(cell => cell.classList.contains("on")).length;
    const rate = Math.pow(on / cells.length, 3);
    state.textContent = added.size === 0 ? "Nothing added yet." :
      `${added.size} ${added.size === 1 ? "word" : "words"} added (${[...added].join(", ")}), ${on} of ` +
      `${cells.length} bits on: a word never added is taken for one of them with probability ` +
      `(${on}/${cells.length})³ = ${(100 * rate).toFixed(1)} %.`;
  };
  play.querySelector("form").addEventListener("submit", event => {
    event.preventDefault();
    const text = word.value.trim(), places = bits(text);
    if (!text) return;
    cells.forEach(cell => cell.classList.remove("hit", "miss"));
    if (event.submitter && event.submitter.value === "add") {
      places.forEach(place => cells[place].classList.add("on", "hit"));
      added.add(text);
      answer.textContent = `“${text}” switched on bits ${places.join(", ")}.`;
    } else {
      const off = places.filter(place => !cells[place].classList.contains("on"));
      places.forEach(place => cells[place].classList.add(off.includes(place) ? "miss" : "hit"));
      answer.textContent = off.length > 0 ?
        `“${text}”: no, for sure. Bit ${off[0]} is off.` :
        `“${text}”: maybe. Bits ${places.join(", ")} are on` +
        (added.has(text) ? "; it was added." : ", but by other words: this “maybe” is wrong.");
    }
    tell();
  });
  document.getElementById("empty").addEventListener("click", () => {
    cells.forEach(cell => cell.classList.remove("on", "hit", "miss"));
    added.clear();
    answer.textContent = "All bits are off.";
    tell();
  });
}

/* ---- contents: open where there is room beside the page ---- */
{
  const list = document.querySelector("#contents details"), wide = matchMedia("(min-width: 1160px)");
  const set = () => { list.open = wide.matches; };
  wide.addEventListener("change", set);
  set();
  list.addEventListener("click", event => {
    if (event.target.closest("a") && !wide.matches) list.open = false;
  });
}

/* ---- figures ---- */
document.querySelectorAll("figure[data-figure]").forEach(figure => {
  const buttons = [...figure.querySelectorAll(".legend button")];
  buttons.forEach(button => button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    figure.querySelectorAll(`.plot > svg g[data-s="${button.dataset.s}"]`)
      .forEach(curve => curve.classList.toggle("off", !shown));
  }));
  figure.querySelectorAll(".plot").forEach(plot => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    plot.append(tip);
    const show = point => {
      plot.querySelectorAll(".p.at").forEach(other => other.classList.remove("at"));
      tip.textContent = "";
      if (!point) return;
      point.classList.add("at");
      const name = buttons[+point.parentNode.dataset.s].textContent.trim();
      tip.textContent = `${name} (${point.dataset.k}): ${point.dataset.y} at ${point.dataset.x}`;
      const box = point.getBoundingClientRect(), frame = plot.getBoundingClientRect();
      const x = box.x + box.width / 2 - frame.x, left = x > frame.width / 2;
      tip.style.left = left ? "auto" : `${x + 10}px`;
      tip.style.right = left ? `${frame.width - x + 10}px` : "auto";
      tip.style.top = `${Math.max(0, box.y - frame.y - 30)}px`;
    };
    const nearest = event => {
      let best = null, distance = 40 * 40;
      event.currentTarget.querySelectorAll("g[data-s]:not(.off) .p").forEach(point => {
        const box = point.getBoundingClientRect();
        const dx = box.x + box.width / 2 - event.clientX, dy = box.y + box.height / 2 - event.clientY;
        if (dx * dx + dy * dy < distance) {
          distance = dx * dx + dy * dy;
          best = point;
        }
      });
      show(best);
    };
    plot.querySelectorAll(":scope > svg").forEach(svg => {
      svg.addEventListener("pointermove", nearest);
      svg.addEventListener("pointerdown", nearest);
      svg.addEventListener("pointerleave", () => show(null));
      svg.addEventListener("blur", () => show(null));
      svg.addEventListener("keydown", event => {
        const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (!step) return;
        event.preventDefault();
        const points = [...svg.querySelectorAll("g[data-s]:not(.off) .p")];
        const now = points.findIndex(point => point.classList.contains("at"));
        show(points[now < 0 ? (step > 0 ? 0 : points.length - 1) :
          (now + step + points.length) % points.length]);
      });
    });
  });
});

/* ---- tables ---- */
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
window.addEventListener("beforeprint", () => document.querySelectorAll("main details")
  .forEach(details => { details.open = true; }));
