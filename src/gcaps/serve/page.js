(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  document.documentElement.classList.add("js");
  const FEW = 300; // rows of the table that are drawn at once
  const DELAY = 200; // milliseconds before a running request is shown
  const state = { model: null, token: sessionStorage.getItem("gcaps-token"), file: null, sent: null, answer: null, waiting: false };
  const view = { columns: [], rows: [], sort: null, limit: FEW, chosen: null };
  let explaining = null;

  // --- small things -----------------------------------------------------------------------------------------------
  const make = (name, values = {}, ...children) => {
    const el = document.createElement(name);
    for (const [key, value] of Object.entries(values)) {
      if (key in el && typeof value !== "string") el[key] = value;
      else if (key === "text") el.textContent = value;
      else el.setAttribute(key, value);
    }
    el.append(...children.filter((child) => child !== null && child !== undefined));
    return el;
  };
  const asCoverage = (share) => `${Number((100 * share).toFixed(2))} %`;
  const percent = (share) => `${(100 * share).toFixed((share > 0.999 && share < 1) || (share > 0 && share < 0.001) ? 2 : 1)} %`;
  const number = (value) =>
    value === null ? "∞" : Number.isInteger(value) ? String(value) : Number(value.toPrecision(4)).toString();
  const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

  class Problem extends Error {
    constructor(status, message) {
      super(message);
      this.status = status;
    }
  }

  const call = async (path, options = {}) => {
    const headers = { ...(options.headers ?? {}) };
    if (state.token) headers.Authorization = `Bearer ${state.token}`;
    let response;
    try {
      response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, "The server does not answer. Is it still running?");
    }
    let found = null;
    try {
      found = await response.json();
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
    if (response.ok && found) return found;
    throw new Problem(response.status, found?.error?.message ?? `The server answered with error ${response.status}.`);
  };

  const say = (words) => ($("message").textContent = words);
  const failed = (error) => {
    if (error.name === "AbortError") return;
    if (error.status === 401) askForToken(state.token ? "That is not the token." : "");
    else if (state.file && error.message.startsWith(state.file.name)) say(error.message);
    else say(error.message[0].toUpperCase() + error.message.slice(1));
  };

  // --- the model --------------------------------------------------------------------------------------------------
  const askForToken = (words) => {
    state.token = null;
    sessionStorage.removeItem("gcaps-token");
    $("login").hidden = false;
    $("input").hidden = $("results").hidden = true;
    $("about").textContent = words || "A token is needed.";
    $("token").value = "";
    $("token").focus();
  };

  const start = async () => {
    try {
      state.model = await call("/model");
    } catch (error) {
      $("about").textContent = error.message;
      failed(error);
      return;
    }
    const model = state.model;
    $("login").hidden = true;
    $("input").hidden = $("results").hidden = false;
    document.title = `${model.name} · gcaps`;
    $("title").textContent = model.name;
    const names = model.targets.map((target) => target.name);
    const what =
      model.task === "regression"
        ? `Predicts ${names.slice(0, 4).join(", ")}`
        : model.task === "multilabel"
          ? `Predicts ${names.length} yes-or-no targets`
          : `Predicts ${names[0]}, one of ${model.targets[0].classes.slice(0, 8).join(", ")}${model.targets[0].classes.length > 8 ? " and others" : ""}`;
    const trained = model.trained_on ? `, trained on ${model.trained_on} (${plural(model.training_graphs, "graph")})` : "";
    $("about").textContent = `${what}. Model: ${model.describes}${trained}.${model.calibrated ? "" : " It is not calibrated: no sets, intervals or warnings."}`;
    $("text-label").textContent = model.molecules ? "SMILES, one in a line" : "Graphs as node-link JSON";
    $("text-hint").textContent = model.molecules
      ? "A name may follow each SMILES after a space. Ctrl + Enter predicts."
      : 'As NetworkX writes them: one {"nodes": […], "links": […]}, or a list of them. Ctrl + Enter predicts.';
    $("coverage-label").hidden = !model.calibrated;
    const wanted = String(model.coverage);
    if (![...$("coverage").options].some((option) => option.value === wanted))
      $("coverage").append(make("option", { value: wanted, text: asCoverage(model.coverage) }));
    $("coverage").value = wanted;
    $("example").hidden = Object.keys(model.example).length === 0;
    if (state.waiting) predict();
  };

  $("login-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    state.token = $("token").value.trim();
    sessionStorage.setItem("gcaps-token", state.token);
    await start();
    if (state.model) $("text").focus();
  });

  // --- what is asked ------------------------------------------------------------------------------------------------
  const choose = (file) => {
    state.file = file;
    $("chosen").hidden = !file;
    $("chosen-name").textContent = file ? `${file.name} (${Math.ceil(file.size / 1024).toLocaleString("en")} KiB)` : "";
    if (!file) $("file").value = "";
  };
  const drop = $("drop");
  for (const name of ["dragover", "dragenter"])
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length !== 1) return say("Drop one file at a time.");
    choose(event.dataTransfer.files[0]);
    predict();
  });
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault()); // beside the box
  $("file").addEventListener("change", () => {
    choose($("file").files[0] ?? null);
    if (state.file) predict();
  });
  $("forget").addEventListener("click", () => {
    choose(null);
    $("file").focus();
  });
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      choose(null);
      predict();
    }
  });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    predict();
  });
  $("coverage").addEventListener("change", () => state.sent && predict());
  $("example").addEventListener("click", () => {
    choose(null);
    const { smiles, graphs } = state.model.example;
    $("text").value = smiles ? smiles.join("\n") : JSON.stringify(graphs, null, 1);
    predict();
  });
  $("clear").addEventListener("click", () => {
    choose(null);
    $("text").value = "";
    say("");
    state.sent = state.answer = null;
    $("batch").hidden = $("detail").hidden = true;
    $("status").textContent = "Nothing yet: paste, drop a file, or try the example.";
    $("text").focus();
  });

  /** What is in the text area, as a request. */
  const typed = () => {
    const text = $("text").value.trim();
    if (!text) throw new Problem(0, state.model.molecules ? "Enter a SMILES, or drop a file." : "Enter a graph, or drop a file.");
    if (text.startsWith("{") || text.startsWith("[{") || /^\[\s*\{/.test(text) || !state.model.molecules) {
      let read;
      try {
        read = JSON.parse(text);
      } catch (error) {
        throw new Problem(0, `This is no JSON: ${error.message}`);
      }
      const graphs = Array.isArray(read) ? read : Array.isArray(read.graphs) ? read.graphs : [read];
      return { graphs, ids: graphs.map((graph, i) => String(graph?.id ?? graph?.name ?? i)) };
    }
    const lines = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
    const parts = lines.map((line) => line.match(/^(\S+)\s*(.*)$/));
    return { smiles: parts.map((part) => part[1]), ids: parts.map((part, i) => part[2].slice(0, 250) || String(i + 1)) };
  };

  let running = null;
  const predict = async () => {
    state.waiting = !state.model; // what is asked before the model is known is answered after
    if (state.waiting) return;
    say("");
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    const coverage = state.model.calibrated ? Number($("coverage").value) : null;
    let sent, asked;
    try {
      if (state.file) {
        const query = new URLSearchParams({ name: state.file.name, neighbors: "3" });
        if (coverage) query.set("coverage", coverage);
        sent = { file: state.file, name: state.file.name };
        if (state.file.size > state.model.limits.max_bytes)
          throw new Problem(0, `The file is larger than ${Math.floor(state.model.limits.max_bytes / 1048576)} MiB, the limit of this server.`);
        asked = [`/predict/file?${query}`, { method: "POST", body: state.file, signal, headers: { "Content-Type": "application/octet-stream" } }];
      } else {
        sent = typed();
        const body = JSON.stringify({ ...sent, ...(coverage ? { coverage } : {}), neighbors: 3 });
        asked = ["/predict", { method: "POST", body, signal, headers: { "Content-Type": "application/json" } }];
      }
    } catch (error) {
      failed(error);
      return;
    }
    const timer = setTimeout(() => {
      $("busy").hidden = false;
      $("status").textContent = "Predicting…";
    }, DELAY);
    $("predict").disabled = true;
    $("results").setAttribute("aria-busy", "true");
    try {
      state.answer = await call(...asked);
      state.sent = sent;
      show();
    } catch (error) {
      if (error.name === "AbortError") return;
      $("batch").hidden = $("detail").hidden = true;
      $("status").textContent = "No predictions.";
      failed(error);
    } finally {
      if (!signal.aborted || running.signal === signal) {
        clearTimeout(timer);
        $("busy").hidden = true;
        $("predict").disabled = false;
        $("results").removeAttribute("aria-busy");
      }
    }
  };

  // --- the table ----------------------------------------------------------------------------------------------------
  const smilesOf = (row) => row.smiles ?? state.sent.smiles?.[row.row] ?? "";
  const setText = (set) => (set.length ? set.join(" or ") : "none");
  const rangeText = ([low, high]) => `${low === null ? "−∞" : number(low)} to ${number(high)}`;

  /** Columns of the table: a title, the value that sorts and is downloaded, and the text that is shown. */
  const columnsOf = (answer) => {
    const model = state.model;
    const found = [];
    const add = (title, value, text, kind = "n") => found.push({ title, value, text: text ?? value, kind });
    model.targets.forEach((target, t) => {
      const of = (row) => row.targets?.[t];
      const several = model.targets.length > 1 ? `${target.name}: ` : "";
      if (model.task === "regression") {
        add(target.name, (row) => of(row)?.value, (row) => number(of(row).value));
        if (model.calibrated) {
          add(`${several}interval`, (row) => (of(row) ? (of(row).interval[1] ?? Infinity) - (of(row).interval[0] ?? -Infinity) : undefined), (row) => rangeText(of(row).interval));
          found.at(-1).download = [["lower", (row) => of(row)?.interval[0]], ["upper", (row) => of(row)?.interval[1]]].map(([end, value]) => [`${several}${end}`, value]);
        }
        return;
      }
      add(several ? target.name : "Class", (row) => of(row)?.value, (row) => String(of(row).value), "text");
      const shares = (row) => of(row)?.calibrated ?? of(row)?.probabilities;
      const title = model.calibrated ? "calibrated" : "p";
      if (target.classes.length === 2) {
        const second = String(target.classes[1]);
        add(`${several}${title}(${second})`, (row) => shares(row)?.[second], (row) => percent(shares(row)[second]));
      } else add(`${title} of it`, (row) => shares(row)?.[String(of(row).value)], (row) => percent(shares(row)[String(of(row).value)]));
      found.at(-1).download = target.classes.flatMap((name) => [
        [`${several}p(${name})`, (row) => of(row)?.probabilities[String(name)]],
        ...(model.calibrated ? [[`${several}calibrated(${name})`, (row) => of(row)?.calibrated[String(name)]]] : []),
      ]);
      if (model.calibrated) {
        add(`${several}set`, (row) => of(row) && setText(of(row).set), null, "text");
        found.at(-1).download = [[`${several}set`, (row) => of(row) && `{${of(row).set.join("|")}}`]];
      }
    });
    if (answer.predictions.some((row) => smilesOf(row))) add("SMILES", smilesOf, null, "text");
    if (model.calibrated) {
      add("similarity", (row) => row.similarity, (row) => row.similarity.toFixed(2));
      add("nearest", (row) => row.nearest, null, "text");
      add("novel", (row) => (row.novel === undefined ? undefined : row.novel ? "yes" : "no"), null, "text");
    }
    add("nodes", (row) => row.nodes);
    return found;
  };

  const show = () => {
    const { answer } = state;
    const rows = answer.predictions;
    const wrong = rows.filter((row) => row.error).length;
    const novel = rows.filter((row) => row.novel).length;
    const parts = [plural(rows.length - wrong, "prediction")];
    if (wrong) parts.push(`${plural(wrong, "row")} could not be read`);
    if (novel) parts.push(`${novel} unlike anything seen in training`);
    $("status").textContent = `${parts.join(", ")}.${(answer.notes ?? []).map((note) => ` Note: ${note}.`).join("")}`;
    Object.assign(view, { columns: columnsOf(answer), rows, sort: null, limit: FEW, chosen: null });
    $("find").value = "";
    const kinds = new Map([["", "all rows"]]);
    if (novel) kinds.set("novel", "unlike training");
    if (wrong) kinds.set("error", "not readable");
    if (state.model.task === "classification")
      for (const name of state.model.targets[0].classes) kinds.set(`class ${name}`, `class ${name}`);
    $("show").replaceChildren(...[...kinds].map(([value, text]) => make("option", { value, text })));
    $("batch").hidden = rows.length === 1;
    const head = [{ title: "Graph" }, ...view.columns].map((column, place) =>
      make("th", { scope: "col", "aria-sort": "none", class: column.kind === "n" ? "n" : "" },
        make("button", { type: "button", text: column.title, onclick: (event) => sort(place - 1, event.target.closest("th")) })));
    $("table").tHead.replaceChildren(make("tr", {}, ...head));
    draw();
    detail(rows.find((row) => !row.error) ?? rows[0]);
  };

  const sort = (place, head) => {
    const numeric = place >= 0 && view.columns[place].kind === "n";
    const now = head.getAttribute("aria-sort");
    const order = now === "none" ? (numeric ? "descending" : "ascending") : now === "ascending" ? "descending" : "ascending";
    for (const th of head.parentElement.cells) th.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    view.sort = { place, sign: order === "ascending" ? 1 : -1 };
    draw();
  };

  const wanted = () => {
    const words = $("find").value.trim().toLowerCase();
    const kind = $("show").value;
    const found = view.rows.filter((row) => {
      if (kind === "novel" && !row.novel) return false;
      if (kind === "error" && !row.error) return false;
      if (kind.startsWith("class ") && String(row.targets?.[0]?.value) !== kind.slice(6)) return false;
      if (!words) return true;
      const texts = [row.id, smilesOf(row), row.error ?? "", ...(row.targets ?? []).map((one) => String(one.value)), row.nearest ?? ""];
      return texts.some((text) => text.toLowerCase().includes(words));
    });
    if (view.sort) {
      const { place, sign } = view.sort;
      const value = place < 0 ? (row) => row.id : view.columns[place].value;
      found.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined) || a.row - b.row;
        const difference = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
        return sign * difference || a.row - b.row;
      });
    }
    return found;
  };

  const draw = () => {
    const rows = wanted();
    const body = rows.slice(0, view.limit).map((row) => {
      const open = make("button", { type: "button", text: row.id, title: row.id, onclick: () => detail(row, true) });
      const cells = row.error
        ? [make("td", { class: "no", colSpan: view.columns.length, text: row.error })]
        : view.columns.map((column) => {
            const text = String(column.text(row) ?? "");
            return make("td", { class: column.kind, text, ...(column.title === "SMILES" ? { title: text } : {}) });
          });
      const tr = make("tr", { class: row === view.chosen ? "chosen" : "" }, make("th", { scope: "row" }, open), ...cells);
      tr.dataset.row = row.row;
      return tr;
    });
    $("table").tBodies[0].replaceChildren(...body);
    $("count").textContent = `${rows.length} of ${view.rows.length} rows`;
    $("more").hidden = rows.length <= view.limit;
    $("more").textContent = `Show the other ${(rows.length - view.limit).toLocaleString("en")} rows`;
  };
  $("more").addEventListener("click", () => {
    view.limit = Infinity;
    draw();
  });
  $("filters").addEventListener("input", draw);
  $("filters").addEventListener("submit", (event) => event.preventDefault());

  /** A cell that a spreadsheet does not take for a formula, quoted where it needs to be. */
  const cell = (value) => {
    if (value === undefined || value === null) return "";
    let text = String(value);
    if (/^'*[=+\-@\t\r\n]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  $("download").addEventListener("click", () => {
    const columns = [["graph", (row) => row.id], ...view.columns.flatMap((column) =>
      column.title.endsWith("set") || column.title.endsWith("interval") ? column.download
        : [[column.title, column.value], ...(column.download ?? []).filter(([title]) => title !== column.title)]), ["error", (row) => row.error]];
    const lines = [columns.map(([title]) => title), ...wanted().map((row) => columns.map(([, value]) => value(row)))];
    const text = lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${state.model.name}-predictions.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });

  // --- one graph ----------------------------------------------------------------------------------------------------
  const detail = (row, move = false) => {
    view.chosen = row;
    for (const tr of $("table").tBodies[0].rows) tr.classList.toggle("chosen", Number(tr.dataset.row) === row.row);
    const article = $("detail");
    article.hidden = false;
    const named = /^\d+$/.test(row.id) ? `${state.model.molecules ? "Molecule" : "Graph"} ${row.id}` : row.id;
    const title = make("h3", { id: "detail-title", text: named });
    if (row.error) {
      explaining?.abort();
      article.replaceChildren(title, make("p", { class: "warning", text: row.error }));
    } else {
      const left = make("div", {}, ...row.targets.map((target, t) => answerOf(target, t)), factsOf(row), nearOf(row));
      const right = make("div", { id: "explanation" });
      article.replaceChildren(title, make("div", { class: "two" }, left, right));
      explain(row, right, 0);
    }
    if (move) {
      article.focus({ preventScroll: true });
      article.scrollIntoView({ block: "nearest" });
    }
  };

  const answerOf = (target, t) => {
    const several = state.model.targets.length > 1;
    const facts = state.model.targets[t];
    if (!facts.classes) {
      const answer = make("p", { class: "answer" }, make("small", { text: facts.name }), number(target.value));
      const ends = target.interval && make("p", { text: `${asCoverage(state.answer.coverage)} interval: ${rangeText(target.interval)}` });
      return make("div", {}, answer, ends);
    }
    const shares = target.calibrated ?? target.probabilities;
    const inside = new Set((target.set ?? [target.value]).map(String));
    const rows = facts.classes.map(String).map((name) => {
      const fill = make("i");
      fill.style.width = `${100 * shares[name]}%`;
      return [shares[name], make("div", { class: inside.has(name) ? "in" : "" }, make("span", { class: "name", text: name }), make("span", { class: "bar", "aria-hidden": "true" }, fill), make("span", { class: "share", text: percent(shares[name]) }))];
    });
    rows.sort((a, b) => b[0] - a[0]);
    const kind = target.calibrated ? "calibrated probability" : "probability";
    const bars = make("div", { class: "bars", role: "group", "aria-label": `${kind} of each class` }, ...rows.slice(0, 12).map(([, el]) => el));
    const answer = make("p", { class: "answer" }, make("small", { text: several ? target.name : `${target.name || "class"}, ${kind} of each class` }), String(target.value));
    const set = target.set && make("p", { class: "hint", text: `The set that holds the truth in ${asCoverage(state.answer.coverage)} of cases: ${setText(target.set)}` });
    return make("div", {}, answer, bars, set);
  };

  const factsOf = (row) => {
    const entries = [];
    if (row.novel !== undefined)
      entries.push(["familiarity", row.novel
        ? make("span", { class: "badge warn", text: "unlike anything seen" })
        : make("span", { class: "badge fine", text: "like the training graphs" })]);
    if (row.unseen?.length) entries.push(["never seen", `${row.unseen.join(", ")}: the prediction is a guess`]);
    if (smilesOf(row)) entries.push(["SMILES", make("code", { text: smilesOf(row) })]);
    entries.push(["size", `${plural(row.nodes, "node")}, ${plural(row.edges, "edge")}`]);
    return make("dl", { class: "facts" }, ...entries.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", {}, value)]));
  };

  const nearOf = (row) => {
    if (!row.neighbors?.length) return null;
    const items = row.neighbors.map((one) => make("li", {}, make("span", { text: one.id }), make("span", { text: one.similarity.toFixed(2) })));
    return make("div", {}, make("h4", { text: "Most similar training graphs" }), make("ul", { class: "near" }, ...items));
  };

  const explain = async (row, place, t) => {
    explaining?.abort();
    if (!state.model.explains) return;
    explaining = new AbortController();
    const { signal } = explaining;
    const head = make("h4", { text: "What the prediction depends on" });
    const targets = state.model.targets;
    const select = targets.length > 1 ? make("select", { "aria-label": "Explained target", onchange: () => explain(row, place, select.selectedIndex) }, ...targets.map((one) => make("option", { text: one.name }))) : null;
    if (select) select.selectedIndex = t;
    place.replaceChildren(head, ...(select ? [select] : []), make("p", { class: "muted", role: "status", text: "Explaining…" }));
    const target = targets.length > 1 ? targets[t].name : undefined;
    try {
      const { sent } = state;
      let found;
      if (sent.file) {
        const query = new URLSearchParams({ name: sent.name, row: row.row, ...(target ? { target } : {}) });
        found = await call(`/explain/file?${query}`, { method: "POST", body: sent.file, signal, headers: { "Content-Type": "application/octet-stream" } });
      } else {
        const one = sent.smiles ? { smiles: sent.smiles[row.row] } : { graph: sent.graphs[row.row] };
        found = await call("/explain", { method: "POST", body: JSON.stringify({ ...one, ...(target ? { target } : {}) }), signal, headers: { "Content-Type": "application/json" } });
      }
      place.replaceChildren(head, ...(select ? [select] : []), ...explanationOf(found));
      trim(place.querySelector("svg"));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) return failed(error);
      place.replaceChildren(head, make("p", { class: "muted", text: `Not explained: ${error.message}` }));
    }
  };

  /** Remove the empty space above and below a drawing. */
  const trim = (svg) => {
    if (!svg) return;
    const { x, y, width, height } = svg.viewBox.baseVal;
    const drawn = svg.getBBox();
    const top = Math.max(y, drawn.y - 8);
    const bottom = Math.min(y + height, drawn.y + drawn.height + 8);
    if (bottom <= top) return;
    svg.setAttribute("viewBox", `${x} ${top} ${width} ${bottom - top}`);
    for (const name of ["width", "height"]) svg.removeAttribute(name);
  };

  const explanationOf = (found) => {
    const parts = [];
    if (found.svg) {
      const read = new DOMParser().parseFromString(found.svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"'), "image/svg+xml");
      if (read.documentElement.nodeName === "svg") parts.push(document.importNode(read.documentElement, true));
    } else parts.push(make("p", { class: "muted", text: "Too large to draw." }));
    parts.push(make("p", { class: "key" }, make("span", {}, make("i", { class: "up" }), "raises"), make("span", {}, make("i", { class: "down" }), "lowers"), `the ${found.output}: ${number(found.value)}${state.model.calibrated && state.model.task !== "regression" ? ", before calibration" : ""}`));
    const rows = found.nodes.map((one) => make("tr", {}, make("th", { scope: "row", class: "n", text: String(one.node) }), make("td", { text: one.name }), make("td", { class: "n", text: (one.contribution > 0 ? "+" : "") + number(one.contribution) })));
    const word = state.model.molecules ? "Atom" : "Node";
    const head = make("tr", {}, make("th", { scope: "col", class: "n", text: word }), make("th", { scope: "col", text: state.model.molecules ? "Element" : "Label" }), make("th", { scope: "col", class: "n", text: "Contribution" }));
    parts.push(make("details", { class: "part" }, make("summary", { text: `Contribution of each ${word.toLowerCase()}` }),
      make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Contributions, scrolls" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)))));
    parts.push(make("p", { class: "hint", text: `Method: ${found.method}. Contributions show what the model uses, not what causes the property.` }));
    return parts;
  };

  start();
})();
