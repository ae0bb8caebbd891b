(() => {
  "use strict";
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  document.documentElement.classList.add("js");

  // Sorting by the value in data-v; cells without a value stay at the end in both directions.
  const places = new WeakMap();
  all("table.sortable tbody tr").forEach((row, place) => places.set(row, place));
  const value = (row, column) => row.cells[column].dataset.v ?? "";
  const sort = (head) => {
    const body = head.closest("table").tBodies[0];
    const now = head.getAttribute("aria-sort");
    const first = head.dataset.first ?? "ascending";
    const other = { ascending: "descending", descending: "ascending" };
    const order = now === "none" ? first : other[now];
    const sign = order === "ascending" ? 1 : -1;
    const numeric = "number" in head.dataset;
    const compare = (a, b) => {
      const [x, y] = [value(a, head.cellIndex), value(b, head.cellIndex)];
      if (x === "" || y === "") return (x === "") - (y === "") || places.get(a) - places.get(b);
      const difference = numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true });
      return sign * difference || places.get(a) - places.get(b);
    };
    for (const th of head.parentElement.cells) if (th.hasAttribute("aria-sort")) th.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    body.append(...[...body.rows].sort(compare));
  };
  for (const button of all("th[aria-sort] button")) button.addEventListener("click", () => sort(button.closest("th")));

  // Filters apply to all elements with data-family, data-text, data-set or data-published.
  const form = document.querySelector("form.filters");
  const status = document.querySelector("#filtered");
  const filter = () => {
    const { text, family, set, published } = form.elements;
    const words = text.value.trim().toLowerCase();
    const wanted = (el) =>
      (!family.value || !("family" in el.dataset) || el.dataset.family === family.value) &&
      (!words || !("text" in el.dataset) || el.dataset.text.includes(words)) &&
      (!set?.value || !("set" in el.dataset) || el.dataset.set === set.value) &&
      (!published || published.checked || !("published" in el.dataset));
    for (const el of all("[data-family], [data-text], [data-set], [data-published]")) el.hidden = !wanted(el);
    if (set?.value) for (const el of all(`details[data-set="${set.value}"]`)) el.open = true;
    const rows = all("#main-table tbody tr");
    status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  if (form) {
    form.addEventListener("input", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  // A link into a closed part opens it; printing opens all.
  const reveal = () => {
    const goal = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (goal) for (let el = goal; el; el = el.parentElement) if (el.tagName === "DETAILS") el.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();
  addEventListener("beforeprint", () => all("details").forEach((el) => (el.open = true)));
})();
