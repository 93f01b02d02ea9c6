"use strict";
// The viewer of executions. The page has each execution as the differences between its states; the viewer reconstructs the states and
// draws the selected one. It creates elements and text nodes only: no string ever becomes markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_CHIPS = 24; // of a longer buffer, the middle is left out
  const RELATIONS = ["program order", "reads from", "coherence", "from-read"];
  // In a panel of an editor, reports the selected line to the editor.
  const editor = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi() : undefined;
  const arrows = (words) => words.replace(/ -> /g, " → ");
  const className = (relation) => "rel-" + relation.replace(/ /g, "-");

  // Creates an element with attributes and children; a string becomes a text node.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function draw(tag, attributes) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  // All states, starting with the initial one. A state shares the parts that a step does not change with the previous state.
  function statesOf(execution) {
    const { memory, values, places } = execution;
    let state = { memory, issued: memory, values, places, buffers: execution.threads.map(() => []), lock: "" };
    const states = [state];
    const changed = (list, changes) => {
      if (!changes) return list;
      const copy = list.slice();
      for (const [n, value] of changes) copy[n] = value;
      return copy;
    };
    for (const step of execution.steps) {
      const buffers = state.buffers.slice();
      for (const [thread, at, gone, come] of step.buffers || []) {
        buffers[thread] = buffers[thread].slice();
        buffers[thread].splice(at, gone, ...come);
      }
      const registers = state.values.slice();
      for (const [thread, register, value] of step.values || []) {
        if (registers[thread] === state.values[thread]) registers[thread] = registers[thread].slice();
        registers[thread][register] = value;
      }
      state = {
        memory: changed(state.memory, step.memory),
        issued: changed(state.issued, step.issued),
        places: changed(state.places, step.places),
        values: registers,
        buffers,
        lock: step.lock === undefined ? state.lock : step.lock,
      };
      states.push(state);
    }
    return states;
  }

  class Viewer {
    constructor(host) {
      const { program, execution } = data.executions[Number(host.dataset.execution)];
      this.execution = execution;
      this.program = data.programs[program];
      this.states = statesOf(execution);
      this.relaxed = execution.model !== "sc";
      // The index of each step by its number, because steps may be left out.
      this.positions = new Map(execution.steps.map((step, n) => [step.n, n + 1]));
      this.host = host;
      this.build();
      this.show(0);
    }

    get last() {
      return this.execution.steps.length;
    }

    build() {
      const { execution } = this;
      const button = (label, title, action) => {
        const element = make("button", { type: "button", title, "aria-label": title }, label);
        element.addEventListener("click", () => action());
        return element;
      };
      this.slider = make("input", { type: "range", min: "0", max: String(this.last), value: "0", "aria-label": "step" });
      this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
      this.count = make("output", { class: "count" });
      this.arrows = make("select", { "aria-label": "which arrows are drawn" });
      for (const [value, label] of [["cycle", "arrows: the cycle, this step"], ["all", "arrows: all"], ["none", "arrows: none"]]) {
        this.arrows.append(make("option", { value }, label));
      }
      this.arrows.addEventListener("change", () => this.drawArrows());
      const bar = make("div", { class: "bar" },
        button("|◀", "the start (Home)", () => this.show(0)),
        button("◀", "one step back (left arrow)", () => this.show(this.step - 1)),
        this.slider,
        button("▶", "one step on (right arrow)", () => this.show(this.step + 1)),
        button("▶|", "the end (End)", () => this.show(this.last)),
        this.count);
      const departure = execution.steps.findIndex((step) => step.sc);
      if (departure >= 0) bar.append(button("≠ SC", "where it departs from SC first", () => this.show(departure + 1)));
      if (execution.relations.length > 0) bar.append(this.arrows);
      this.now = make("div", { class: "now", "aria-live": "polite" });
      this.machine = make("div", { class: "machine" });
      this.source = make("div", { class: "source" });
      this.buildLanes();
      this.buildSource();
      this.viewer = make("div", { class: "viewer", tabindex: "0", role: "group", "aria-label": "An execution: the arrow keys go from step to step" },
        bar, this.now,
        make("div", { class: this.moving > 2 ? "panes many" : "panes" }, make("div", { class: "time" }, this.lanes, this.legend()), make("div", { class: "side" }, this.machine, this.source)),
        this.why());
      this.viewer.addEventListener("keydown", (event) => this.key(event));
      this.host.replaceChildren(this.viewer);
      for (const text of execution.left_out) this.viewer.append(make("p", { class: "left-out" }, text));
      new ResizeObserver(() => this.layOut()).observe(this.grid);
    }

    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
      const to = {
        ArrowRight: this.step + 1, ArrowDown: this.step + 1, ArrowLeft: this.step - 1, ArrowUp: this.step - 1,
        PageDown: this.step + 10, PageUp: this.step - 10, Home: 0, End: this.last,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.show(to);
    }

    // One row per step and one column per thread; time runs downwards.
    buildLanes() {
      const { execution } = this;
      this.grid = make("div", { class: "grid", role: "listbox", "aria-label": "steps" });
      // A thread that never moves gets only its name.
      const moving = new Set(execution.steps.map((step) => step.thread).filter((thread) => thread !== undefined));
      this.moving = moving.size;
      const widths = execution.threads.map((_, thread) => (moving.has(thread) ? "minmax(10.5rem, 1fr)" : "4rem"));
      this.grid.style.setProperty("--columns", `3.2rem ${widths.join(" ")} minmax(6.5rem, .4fr)`);
      this.grid.style.setProperty("--width", `${3.2 + 6.5 + 10.5 * moving.size + 4 * (widths.length - moving.size)}rem`);
      const head = make("div", { class: "row head" }, make("span", { class: "number" }, "step"));
      execution.threads.forEach((name, thread) => head.append(make("span", { class: `lane t${thread % 6}` }, name)));
      head.append(make("span", { class: "changes" }, "memory"));
      this.grid.append(head);
      const cycle = new Set(execution.cycle.map((link) => link.step));
      this.called = [];
      this.rows = [this.row(0, null, false)];
      execution.steps.forEach((step, n) => this.rows.push(this.row(n + 1, step, cycle.has(step.n))));
      this.grid.append(...this.rows);
      if (execution.conclusion) this.grid.append(make("div", { class: "end" }, execution.conclusion));
      this.svg = draw("svg", { class: "arrows", "aria-hidden": "true" });
      this.grid.append(this.svg);
      this.lanes = make("div", { class: "lanes" }, this.grid);
    }

    row(n, step, isInCycle) {
      const row = make("div", { class: "row", role: "option", "aria-selected": "false" });
      row.addEventListener("click", () => this.show(n));
      row.append(make("span", { class: "number" }, step && step.kind !== "gap" ? String(step.n) : ""));
      if (!step || step.kind === "gap") {
        row.classList.add(step ? "gap" : "initial");
        row.append(make("span", { class: "across" }, step ? step.words : "initially"));
        return row;
      }
      const event = make("div", { class: `event ${step.kind}` });
      if (step.kind === "flush") {
        event.append(make("span", { class: "what" }, arrows(step.words)));
      } else {
        event.append(make("code", {}, step.statement));
        if (step.words) event.append(make("span", { class: "what" }, arrows(step.words)));
        // The call stack is shown where it changes.
        if (step.calls && step.calls !== this.called[step.thread]) event.append(make("span", { class: "calls" }, step.calls));
        this.called[step.thread] = step.calls;
      }
      if (isInCycle) event.classList.add("in-cycle");
      if (step.sc) event.append(make("span", { class: "departs" }, "≠ SC"));
      if (step.thread === undefined) {
        // Threads without a lane share one.
        event.prepend(make("span", { class: "calls" }, step.hidden));
        event.style.gridColumn = "2 / -2";
      } else {
        event.classList.add(`t${step.thread % 6}`);
        event.style.gridColumn = String(step.thread + 2);
      }
      row.append(event);
      const changes = (step.memory || []).map(([cell, value]) => `${this.execution.cells[cell]} = ${value}`);
      if (changes.length > 0) row.append(make("span", { class: "changes" }, changes.slice(0, 6).join(", ") + (changes.length > 6 ? ", …" : "")));
      return row;
    }

    legend() {
      const items = [];
      if (this.execution.relations.length > 0) {
        for (const relation of RELATIONS) items.push(make("span", { class: `key ${className(relation)}` }, relation));
      }
      if (this.relaxed) items.push(make("span", { class: "key in-buffer" }, "a store in its buffer"));
      return make("p", { class: "legend" }, ...items);
    }

    // Why this is not an SC execution, or that it is one.
    why() {
      const { execution } = this;
      if (execution.cycle.length === 0) return make("p", { class: "because" }, execution.because);
      const list = make("ol", { class: "cycle" });
      for (const link of execution.cycle) {
        const go = make("button", { type: "button" }, `${link.step}  ${link.words}`);
        go.addEventListener("click", () => this.show(this.positions.get(link.step) ?? this.step));
        const about = link.cell ? ` (${link.cell})` : "";
        list.append(make("li", {}, go, make("span", { class: `key ${className(link.relation)}` }, link.relation + about)));
      }
      return make("div", { class: "because" }, make("h4", {}, "The happens-before cycle"), make("p", {}, execution.because), list);
    }

    buildSource() {
      this.files = this.program.files.map((file) => {
        const pane = make("div", { class: "lines" });
        const lines = new Map();
        file.parts.forEach(([first, texts], part) => {
          if (part > 0 || first > 1) pane.append(make("div", { class: "skipped" }, "…"));
          texts.forEach((text, n) => {
            const tags = make("span", { class: "tags" });
            const line = make("div", { class: "line" }, make("span", { class: "number" }, String(first + n)), tags, make("code", {}, text || " "));
            lines.set(first + n, { line, tags });
            pane.append(line);
          });
        });
        if (file.left_out > 0) pane.append(make("div", { class: "skipped" }, `… ${file.left_out} lines of this file are left out`));
        return { id: file.id, name: file.name, pane, lines };
      });
      this.fileName = make("p", { class: "name" });
      this.source.append(this.fileName);
      this.marked = [];
    }

    // Shows the state after this step.
    show(step) {
      const next = Math.max(0, Math.min(this.last, step));
      if (this.step !== undefined) this.rows[this.step].setAttribute("aria-selected", "false");
      this.step = next;
      const row = this.rows[next];
      row.setAttribute("aria-selected", "true");
      this.viewer.dataset.step = String(next);
      this.slider.value = String(next);
      this.count.textContent = `${next} / ${this.last}`;
      this.showNow();
      this.showMachine();
      this.showSource();
      reveal(this.lanes, row, this.grid.firstChild.offsetHeight);
      if (this.ready) this.drawArrows();
    }

    showNow() {
      const step = this.execution.steps[this.step - 1];
      const parts = [];
      if (!step) {
        parts.push(make("p", {}, make("b", {}, "At the start"), " nothing has happened and all buffers are empty."));
      } else {
        const who = step.thread === undefined ? step.hidden || "" : this.execution.threads[step.thread];
        const words = make("p", {}, make("b", {}, `${step.n}. ${who}`), " ");
        if (step.statement) words.append(make("code", {}, step.statement), " ");
        words.append(arrows(step.words));
        parts.push(words);
        for (const text of step.sc || []) parts.push(make("p", { class: "under-sc" }, text));
        if (this.step === this.last && this.execution.conclusion) parts.push(make("p", { class: "conclusion" }, this.execution.conclusion));
      }
      this.now.replaceChildren(...parts);
    }

    // Threads with their registers and buffers on the left, memory on the right.
    showMachine() {
      const { execution } = this;
      const state = this.states[this.step];
      const step = this.execution.steps[this.step - 1];
      const threads = make("div", { class: "threads" });
      execution.threads.forEach((name, thread) => {
        const moves = step && step.thread === thread;
        const box = make("div", { class: `thread t${thread % 6}${moves ? " moves" : ""}`, "data-thread": name }, make("b", {}, name));
        const registers = execution.registers[thread].map((register, n) => `${register} = ${state.values[thread][n]}`);
        const place = state.places[thread];
        const at = Array.isArray(place) ? `line ${place[1]}` : place;
        box.append(make("span", { class: "registers" }, [at, ...registers].filter((text) => text).join("   ")));
        if (state.lock === name) box.append(make("span", { class: "lock" }, "holds the lock"));
        if (this.relaxed) box.append(this.buffer(thread, state.buffers[thread], step));
        threads.append(box);
      });
      const body = make("tbody");
      const changed = new Set((step && step.memory || []).map(([cell]) => cell));
      execution.cells.forEach((cell, n) => {
        const row = make("tr", { "data-cell": cell }, make("th", { scope: "row" }, cell), make("td", { class: changed.has(n) ? "changed" : "" }, state.memory[n]));
        if (this.relaxed) row.append(make("td", { class: state.issued[n] === state.memory[n] ? "sc" : "sc differs" }, state.issued[n]));
        body.append(row);
      });
      const head = make("tr", {}, make("th", {}, ""), make("th", {}, "memory"));
      if (this.relaxed) head.append(make("th", { title: "what memory would hold if every store had reached it at once" }, "under SC"));
      const memory = make("table", { class: "memory" }, make("thead", {}, head), body);
      this.machine.replaceChildren(threads, make("div", { class: "cells" }, memory));
    }

    // A buffer is drawn as a pipe: stores enter on the left and leave for memory on the right. A store that leaves in this step is still drawn.
    buffer(thread, entries, step) {
      const chips = entries.map((text) => make("span", { class: text === "|" ? "chip barrier" : "chip" }, text));
      const [, at, gone, come] = (step && step.buffers || []).find(([owner]) => owner === thread) || [0, 0, 0, []];
      for (let n = at; n < at + come.length; n++) chips[n].classList.add("entering");
      if (gone > 0 && step.kind !== "gap") {
        const before = this.states[this.step - 1].buffers[thread];
        const ghosts = before.slice(at, at + gone).map((text) => make("span", { class: "chip leaving" }, text));
        chips.splice(at, 0, ...ghosts);
      }
      if (chips.length > MOST_CHIPS) {
        const more = chips.length - MOST_CHIPS;
        chips.splice(MOST_CHIPS / 2, more, make("span", { class: "chip more" }, `… ${more} more …`));
      }
      const label = entries.length === 0 ? "buffer: empty" : `buffer, oldest first: ${entries.length} entries`;
      return make("div", { class: "pipe", role: "img", "aria-label": label, "data-count": String(entries.length) }, ...chips);
    }

    showSource() {
      const step = this.execution.steps[this.step - 1];
      for (const { line, tags } of this.marked) {
        line.classList.remove("current");
        tags.replaceChildren();
      }
      this.marked = [];
      const mark = (place) => {
        const found = Array.isArray(place) ? this.files[place[0]].lines.get(place[1]) : undefined;
        if (found) this.marked.push(found);
        return found;
      };
      const state = this.states[this.step];
      state.places.forEach((place, thread) => {
        const found = mark(place);
        if (found) found.tags.append(make("span", { class: `tag t${thread % 6}`, title: `${this.execution.threads[thread]} is here` }, this.execution.threads[thread]));
      });
      const at = step && step.at ? step.at : Array.isArray(state.places[0]) && !step ? state.places[0] : this.at;
      this.at = at;
      if (editor) editor.postMessage(step && step.at ? { file: this.files[at[0]].id, line: at[1] } : {});
      if (!at) return;
      const file = this.files[at[0]];
      this.fileName.textContent = file.name;
      if (file.pane.parentNode !== this.source) this.source.replaceChildren(this.fileName, file.pane);
      const current = step && step.at ? mark(at) : undefined;
      if (current) current.line.classList.add("current");
      const shown = file.lines.get(at[1]);
      if (shown) reveal(file.pane, shown.line, 0);
    }

    // Measures the positions of events, and draws the arrows between them.
    layOut() {
      const box = (row) => {
        const event = row.querySelector(".event");
        if (!event) return null;
        const { offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height } = event;
        return { left, right: left + width, top, bottom: top + height, middle: top + height / 2 };
      };
      this.boxes = this.rows.map(box);
      this.ready = true;
      this.svg.setAttribute("width", String(this.grid.scrollWidth));
      this.svg.setAttribute("height", String(this.grid.scrollHeight));
      this.fixed = draw("g", {});
      const heads = draw("defs", {});
      for (const relation of RELATIONS) {
        const id = `arrow-${this.host.dataset.execution}-${className(relation)}`;
        const head = draw("marker", { id, viewBox: "0 0 8 8", refX: "7", refY: "4", markerWidth: "9", markerHeight: "9", markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" });
        head.append(draw("path", { d: "M0 0L8 4L0 8z", class: className(relation) }));
        heads.append(head);
      }
      this.changing = draw("g", {});
      this.svg.replaceChildren(heads, this.fixed, this.changing);
      this.drawn = "";
      this.drawBuffered();
      this.drawArrows();
    }

    // A line beside the lane while a store is in the thread's buffer.
    drawBuffered() {
      const { steps } = this.execution;
      const left = new Map();
      steps.forEach((step, n) => {
        if (step.store) left.set(step.store, n + 1);
        for (const store of step.flushed || []) left.set(store, n + 1);
      });
      const slots = this.execution.threads.map(() => []);
      steps.forEach((step, n) => {
        const came = (step.buffers || []).find(([thread]) => thread === step.thread);
        if (step.kind === "gap" || !came || came[3].length === 0 || came[3][0] === "|") return;
        const to = left.get(step.n);
        const from = this.boxes[n + 1];
        if (!from) return;
        const free = slots[step.thread];
        let slot = free.findIndex((until) => until <= n);
        if (slot < 0) slot = free.length;
        free[slot] = to === undefined ? Infinity : to;
        const x = from.right + 4 + 4 * Math.min(slot, 4);
        // Steps that are left out have no box: the line ends among them.
        const row = this.rows[to === undefined ? this.last : to];
        const box = to === undefined ? null : this.boxes[to];
        const end = box ? box.middle : row.offsetTop + (to === undefined ? row.offsetHeight : row.offsetHeight / 2);
        this.fixed.append(draw("path", { class: `buffered t${step.thread % 6}${to === undefined ? " stays" : ""}`, d: `M${from.right} ${from.middle}H${x}V${end}${box ? `H${from.right}` : ""}` }));
      });
    }

    drawArrows() {
      const { execution } = this;
      const which = this.arrows.value;
      // If all arrows are drawn, they do not depend on the step.
      if (!this.ready || (which === "all" && this.drawn === "all")) return;
      this.drawn = which;
      const current = this.step > 0 ? execution.steps[this.step - 1].n : 0;
      const paths = [];
      if (which !== "none") {
        const cycle = execution.cycle;
        const inCycle = new Set();
        cycle.forEach((link, n) => {
          const next = cycle[(n + 1) % cycle.length];
          inCycle.add(`${link.step} ${next.step}`);
          paths.push(this.arrow(link.step, link.relation, next.step, "strong"));
        });
        for (const [from, relation, to] of execution.relations) {
          if (inCycle.has(`${from} ${to}`)) continue;
          if (which === "all" || from === current || to === current) paths.push(this.arrow(from, relation, to, which === "all" ? "weak" : ""));
        }
      }
      this.changing.replaceChildren(...paths.filter((path) => path));
    }

    arrow(from, relation, to, strength) {
      const a = this.boxes[this.positions.get(from)];
      const b = this.boxes[this.positions.get(to)];
      if (!a || !b) return null;
      let d;
      if (a.left !== b.left) {
        const right = b.left > a.left;
        const [x, y] = right ? [a.right, b.left] : [a.left, b.right];
        const bend = Math.max(24, Math.abs(y - x) / 2) * (right ? 1 : -1);
        d = `M${x} ${a.middle}C${x + bend} ${a.middle} ${y - bend} ${b.middle} ${y} ${b.middle}`;
      } else if (relation === "program order") {
        d = `M${a.left} ${a.middle}h-8V${b.middle}h7`;
      } else {
        const bend = Math.min(24, 12 + Math.abs(b.middle - a.middle) / 8);
        d = `M${a.left} ${a.middle}C${a.left - bend} ${a.middle} ${b.left - bend} ${b.middle} ${b.left} ${b.middle}`;
      }
      return draw("path", { class: `arrow ${className(relation)} ${strength}`, d, "marker-end": `url(#arrow-${this.host.dataset.execution}-${className(relation)})` });
    }
  }

  // Scrolls a box, but not the page, until a part of it is visible.
  function reveal(box, part, above) {
    const top = part.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    const bottom = top + part.offsetHeight;
    if (top - above < box.scrollTop + 4) box.scrollTop = top - above - box.clientHeight / 4;
    else if (bottom > box.scrollTop + box.clientHeight - 4) box.scrollTop = bottom - box.clientHeight * 0.7;
  }

  // A viewer is created when it comes near the visible part of the page, or when the page is printed.
  const waiting = new Map();
  function begin(host) {
    if (!waiting.delete(host)) return;
    watching.unobserve(host);
    new Viewer(host);
  }
  const watching = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) begin(entry.target);
  }, { rootMargin: "600px" });
  for (const host of document.querySelectorAll(".execution")) {
    waiting.set(host, true);
    watching.observe(host);
  }
  addEventListener("beforeprint", () => {
    for (const host of [...waiting.keys()]) if (!host.closest("details:not([open])")) begin(host);
  });

  // Opens the details that a link points to, such as the reason for a fence.
  function open() {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  }
  addEventListener("hashchange", open);
  open();

  // A single answer is opened at once.
  const first = document.querySelector(".execution");
  if (first && !first.closest("details") && document.querySelectorAll(".answer").length === 1) {
    begin(first);
    first.querySelector(".viewer").focus({ preventScroll: true });
  }
})();
