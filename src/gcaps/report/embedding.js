(() => {
  "use strict";
  const points = JSON.parse(document.getElementById("points").textContent);
  const card = document.getElementById("card");
  const svg = document.querySelector("#map svg");
  const ring = document.getElementById("chosen");
  const drawing = (place) => document.getElementById(`drawing-${place}`);
  const field = (name) => card.querySelector(`[data-field=${name}]`);
  document.documentElement.classList.add("js");
  let now = -1;

  const show = (place) => {
    now = place;
    if (place < 0) {
      card.hidden = true;
      ring.setAttribute("visibility", "hidden");
      return;
    }
    const [x, y, id, truth, predicted, wrong] = points[place];
    ring.setAttribute("visibility", "visible");
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    field("id").textContent = id;
    field("truth").textContent = truth;
    field("truth").parentElement.hidden = truth === "";
    field("predicted").textContent = predicted;
    field("predicted").classList.toggle("wrong", wrong === 1);
    const picture = drawing(place);
    field("picture").replaceChildren(...(picture ? [picture.content.cloneNode(true)] : []));
    card.hidden = false;
    // beside the point, inside the map
    const box = svg.getBoundingClientRect();
    const outer = card.parentElement.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const left = box.left - outer.left + x * scale;
    const top = box.top - outer.top + y * scale;
    const right = left + 16 + card.offsetWidth > outer.width;
    card.style.left = `${Math.max(0, right ? left - 16 - card.offsetWidth : left + 16)}px`;
    card.style.top = `${Math.max(0, Math.min(top - 20, outer.height - card.offsetHeight))}px`;
  };

  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    let found = -1;
    let least = (18 * scale) ** 2;
    points.forEach(([a, b], place) => {
      const gap = (a - x) ** 2 + (b - y) ** 2;
      if (gap < least) [found, least] = [place, gap];
    });
    return found;
  };

  svg.addEventListener("pointermove", (event) => show(nearest(event)));
  svg.addEventListener("pointerdown", (event) => show(nearest(event)));
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && show(-1));
  // with the keyboard: from point to point in the order of the graphs
  const map = document.getElementById("map");
  map.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      show((now + step + points.length) % points.length);
      event.preventDefault();
    } else if (event.key === "Escape") show(-1);
  });
  for (const row of document.querySelectorAll("tr[data-place]")) {
    row.addEventListener("pointerenter", () => ring && show(Number(row.dataset.place)));
  }
})();
