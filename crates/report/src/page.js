"use strict";
// Draws the charts of a Fairpace report with uPlot. The data stand in the element #data; the places for
// the charts are <figure data-chart="id">. Everything that is text is in the page already.
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const look = (key) => DATA.colours[key] || { light: "#4a5560", dark: "#a9b4bf", dash: [], mark: "circle" };
  const colour = (key) => (isDark() ? look(key).dark : look(key).light);
  const dpr = () => window.devicePixelRatio || 1;
  const FONT = "system-ui, sans-serif";
  const font = (px, weight) => `${weight || 400} ${px * dpr()}px ${FONT}`;

  // ---- numbers ----------------------------------------------------------------------------------
  const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const power = (e) => "10" + [...String(e)].map((c) => SUPERSCRIPT[c]).join("");
  const grouped = (v, digits) => v.toLocaleString("en-US", { maximumFractionDigits: digits }).replace(/-/g, "−");
  function number(v) {
    if (v == null) return "";
    if (v === 0) return "0";
    const size = Math.abs(v);
    if (size < 1e-3 || size >= 1e9) return v.toExponential(2).replace(/-/g, "−");
    return grouped(v, Math.max(0, 3 - Math.floor(Math.log10(size))));
  }
  // Ticks: as many digits as the step between them needs.
  const ticks = (axis) => (u, values) => {
    if (axis.log) {
      const far = values.some((v) => v != null && (v < 0.01 || v >= 1e5));
      return values.map((v) => {
        if (v == null) return "";
        const e = Math.log10(v);
        return far && Math.abs(e - Math.round(e)) < 1e-9 ? power(Math.round(e)) : number(v);
      });
    }
    const steps = values.slice(1).map((v, i) => v - values[i]);
    const step = steps.length ? Math.min(...steps) : 1;
    let digits = 0;
    while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
    return values.map((v) => (v == null ? "" : grouped(v, digits)));
  };
  // Places of a logarithmic axis: whole multiples of powers of ten, or even steps where an axis has fewer than two of them. uPlot's own
  // count on from the axis's end, and for ever where that rounds to a step beyond nine.
  function powers(u, axis, min, max) {
    const found = [];
    for (let e = Math.floor(Math.log10(min)); 10 ** e <= max; e++)
      for (let m = 1; m < 10; m++) {
        const v = Number(`${m}e${e}`);
        if (v >= min && v <= max) found.push(v);
      }
    if (found.length > 1 || !(max > min)) return found;
    const e = Math.floor(Math.log10((max - min) / 2));
    for (let k = Math.ceil(min / 10 ** e); k * 10 ** e <= max; k++) found.push(Number(`${k}e${e}`));
    return [...new Set(found)].sort((a, b) => a - b);
  }
  const named = (axis) => (axis.unit ? `${axis.label} (${axis.unit})` : axis.label);

  // ---- patterns: a look that does not rest on colour ----------------------------------------------
  function pattern(ctx, kind, ink) {
    const size = Math.round(8 * dpr());
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const t = tile.getContext("2d");
    t.strokeStyle = t.fillStyle = ink;
    t.lineWidth = 1.6 * dpr();
    if (kind === "dots") {
      t.beginPath();
      t.arc(size / 2, size / 2, 1.3 * dpr(), 0, 7);
      t.fill();
    } else {
      const up = kind === "up";
      for (const shift of [-size, 0, size]) {
        t.beginPath();
        t.moveTo(shift, up ? size : 0);
        t.lineTo(shift + size, up ? 0 : size);
        t.stroke();
      }
    }
    return ctx.createPattern(tile, "repeat");
  }
  // How a state is filled: [opacity of the plain fill, pattern or null].
  const STATES = {
    steady: [0.2, null], initial: [0.08, "dots"], detected: [0.95, null], backoff: [0.1, "up"],
    stopped: [1, "ink"], idle: [0.03, null], waiting: [0.03, null], adapting: [0.2, null], fixed: [0.2, null],
  };
  const EXTRA = [[0.2, null], [0.08, "dots"], [0.1, "down"], [0.5, null]];
  function fillState(ctx, x, y, w, h, label, key, states) {
    const [alpha, kind] = STATES[label.toLowerCase()] || EXTRA[states.indexOf(label) % EXTRA.length];
    const base = kind === "ink" ? css("--ink") : colour(key);
    ctx.globalAlpha = alpha;
    ctx.fillStyle = base;
    ctx.fillRect(x, y, w, h);
    ctx.globalAlpha = 1;
    if (kind && kind !== "ink") {
      ctx.fillStyle = pattern(ctx, kind, base);
      ctx.fillRect(x, y, w, h);
    }
    ctx.strokeStyle = base;
    ctx.lineWidth = dpr();
    ctx.strokeRect(x + 0.5, y + 0.5, Math.max(0, w - 1), h - 1);
    return alpha > 0.6 ? css("--surface") : css("--ink");
  }

  function mark(ctx, shape, x, y, r, ink) {
    ctx.beginPath();
    if (shape === "square") ctx.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else if (shape === "triangle") { ctx.moveTo(x, y - r * 1.15); ctx.lineTo(x + r * 1.1, y + r * 0.85); ctx.lineTo(x - r * 1.1, y + r * 0.85); ctx.closePath(); }
    else if (shape === "diamond") { ctx.moveTo(x, y - r * 1.3); ctx.lineTo(x + r * 1.2, y); ctx.lineTo(x, y + r * 1.3); ctx.lineTo(x - r * 1.2, y); ctx.closePath(); }
    else if (shape === "cross" || shape === "plus") {
      const d = shape === "cross" ? r * 0.9 : r * 1.2;
      const [a, b] = shape === "cross" ? [[-d, -d, d, d], [-d, d, d, -d]] : [[-d, 0, d, 0], [0, -d, 0, d]];
      for (const [x0, y0, x1, y1] of [a, b]) { ctx.moveTo(x + x0, y + y0); ctx.lineTo(x + x1, y + y1); }
      ctx.strokeStyle = ink;
      ctx.lineWidth = 2 * dpr();
      ctx.stroke();
      return;
    } else ctx.arc(x, y, r, 0, 7);
    ctx.fillStyle = ink;
    ctx.fill();
  }

  // ---- one chart --------------------------------------------------------------------------------
  const usable = (v, log) => v != null && (!log || v > 0);
  const lookup = (s, x, stepped) => {
    // The point at or before x; for lines the nearer of the two neighbours.
    let lo = 0, hi = s.x.length - 1;
    if (hi < 0 || x == null) return -1;
    while (lo < hi) { const m = (lo + hi + 1) >> 1; if (s.x[m] <= x) lo = m; else hi = m - 1; }
    if (s.x[lo] > x && stepped) return -1;
    if (!stepped && lo + 1 < s.x.length && s.x[lo + 1] - x < x - s.x[lo]) lo += 1;
    return lo;
  };

  function clean(chart) {
    for (const s of chart.series) {
      if (chart.x.log) {
        const keep = s.x.map((x) => usable(x, true));
        for (const c of ["x", "y", "lo", "hi"]) if (s[c]) s[c] = s[c].filter((_, i) => keep[i]);
      }
      if (chart.y.log) for (const c of ["y", "lo", "hi"]) if (s[c]) s[c] = s[c].map((v) => (usable(v, true) ? v : null));
    }
  }

  // Charts over one x axis begin at the same place: as far right as the longest lane's name asks.
  const short = (name) => (name.length > 18 ? name.slice(0, 17) + "…" : name);
  const LABEL = 17;
  function axisWidth(chart) {
    const together = chart.sync ? Object.values(DATA.charts).filter((c) => c.sync === chart.sync) : [chart];
    const letters = Math.max(0, ...together.flatMap((c) => c.lanes.map((l) => short(l.name).length)));
    return Math.max(64 + LABEL, 14 + 7.3 * letters);
  }

  function draw(figure, id) {
    const chart = DATA.charts[id];
    const left = axisWidth(chart);
    const place = figure.querySelector(".plot");
    const legend = figure.querySelector(".legend");
    clean(chart);
    const lanes = chart.lanes.length > 0;
    const states = [...new Set(chart.lanes.flatMap((l) => l.spans.map((s) => s.label)))];
    const series = lanes ? [] : chart.series;
    const ends = lanes
      ? chart.lanes.flatMap((l) => l.spans.flatMap((s) => [s.from, s.to]))
      : series.flatMap((s) => [s.x[0], s.x[s.x.length - 1]]);
    const finite = ends.filter((v) => usable(v, chart.x.log));
    const x0 = finite.length ? Math.min(...finite) : chart.x.log ? 1 : 0;
    const x1 = finite.length ? Math.max(...finite) : chart.x.log ? 10 : 1;
    const tables = series.filter((s) => s.x.length).map((s) => [s.x, s.y]);
    let data;
    if (tables.length) {
      data = uPlot.join(tables, tables.map((t) => t.map(() => 1)));
      let k = 1; // a series without points has no table of its own
      data = [data[0], ...series.map((s) => (s.x.length ? data[k++] : data[0].map(() => undefined)))];
    } else data = [[x0, x1], ...series.map(() => [null, null])];
    if (lanes) data = [[...new Set([x0, ...finite, x1])].sort((a, b) => a - b), []];
    if (lanes) data[1] = data[0].map(() => null);

    function rangeX(u, min, max) {
      if (min == null) return chart.x.log ? [1, 10] : [0, 1];
      if (min !== data[0][0] || max !== data[0][data[0].length - 1]) return [min, max]; // zoomed
      const lo = chart.x.min ?? (chart.x.log ? x0 / 1.15 : x0);
      const hi = chart.x.max ?? (chart.x.log ? x1 * 1.15 : x1);
      if (lo === hi) return chart.x.log ? [lo / 2, hi * 2] : [lo - 0.5, hi + 0.5];
      // Marks must not be cut in half by the edge.
      const pad = series.some((s) => s.style.endsWith("points")) && !chart.x.log && chart.x.min == null ? (hi - lo) * 0.02 : 0;
      return [lo - pad, hi + pad];
    }
    function rangeY(u) {
      if (lanes) return [0, chart.lanes.length];
      const [min, max] = [u.scales.x.min, u.scales.x.max];
      let lo = Infinity, hi = -Infinity;
      series.forEach((s, i) => {
        if (u.series[i + 1] && !u.series[i + 1].show) return;
        s.x.forEach((x, j) => {
          if (min != null && (x < min || x > max)) return;
          for (const v of [s.y[j], s.lo && s.lo[j], s.hi && s.hi[j]]) if (v != null) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
        });
      });
      if (lo > hi) [lo, hi] = chart.y.log ? [1, 10] : [0, 1];
      if (chart.y.log) [lo, hi] = [10 ** Math.floor(Math.log10(lo) + 1e-9), 10 ** Math.ceil(Math.log10(hi) - 1e-9)];
      else {
        const pad = (hi - Math.min(0, lo) || 1) * 0.07;
        [lo, hi] = [lo >= 0 ? 0 : lo - pad, hi <= 0 && lo < 0 ? 0 : hi + pad];
      }
      lo = chart.y.min ?? lo;
      hi = chart.y.max ?? hi;
      if (chart.y.log && lo === hi) hi = lo * 10;
      return lo < hi ? [lo, hi] : [lo - 0.5, lo + 0.5];
    }

    // Under the lines: shaded stretches, and intervals as bands or whiskers.
    function under(u) {
      const { ctx, bbox } = u;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const b of chart.bands) {
        const [a, z] = [u.valToPos(b.from, "x", true), u.valToPos(b.to, "x", true)];
        const ink = css("--band");
        ctx.globalAlpha = b.kind === "outage" ? 0.1 : 0.09;
        ctx.fillStyle = ink;
        ctx.fillRect(a, bbox.top, z - a, bbox.height);
        ctx.globalAlpha = 0.35;
        if (b.kind === "outage") { ctx.fillStyle = pattern(ctx, "up", ink); ctx.fillRect(a, bbox.top, z - a, bbox.height); }
        ctx.fillStyle = ink;
        for (const edge of [a, z]) ctx.fillRect(Math.round(edge), bbox.top, dpr(), bbox.height);
        ctx.globalAlpha = 1;
      }
      ctx.restore();
    }
    function over(u) {
      const { ctx, bbox } = u;
      ctx.save();
      // Labels of the stretches stand above the plot, each as far as the next one lets it.
      ctx.font = font(11.5, 600);
      ctx.textAlign = "left";
      ctx.textBaseline = "bottom";
      let free = bbox.left;
      for (const b of [...chart.bands].sort((a, z) => a.from - z.from)) {
        const at = Math.max(free, u.valToPos(b.from, "x", true), bbox.left);
        const width = ctx.measureText(b.label).width;
        if (u.valToPos(b.to, "x", true) < bbox.left || u.valToPos(b.from, "x", true) > bbox.left + bbox.width) continue;
        const left = Math.min(at, bbox.left + bbox.width - width);
        if (left + 1 < free || left < bbox.left) continue;
        ctx.fillStyle = css("--ink-2");
        ctx.fillText(b.label, left, bbox.top - 3 * dpr());
        free = left + width + 8 * dpr();
      }
      if (!lanes && !series.some((s) => s.y.some((v) => v != null))) {
        ctx.textAlign = "center";
        ctx.fillStyle = css("--ink-2");
        ctx.fillText("no values", bbox.left + bbox.width / 2, bbox.top + bbox.height / 2);
      }
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top - 4 * dpr(), bbox.width, bbox.height + 8 * dpr());
      ctx.clip();
      if (lanes) drawLanes(u);
      else series.forEach((s, i) => u.series[i + 1].show && drawMarks(u, s));
      ctx.restore();
    }
    function drawLanes(u) {
      const { ctx, bbox } = u;
      ctx.font = font(11.5, 600);
      ctx.textBaseline = "middle";
      const n = chart.lanes.length;
      chart.lanes.forEach((lane, i) => {
        const top = bbox.top + (bbox.height * i) / n + 4 * dpr();
        const height = bbox.height / n - 8 * dpr();
        for (const s of lane.spans) {
          const a = Math.max(bbox.left, u.valToPos(s.from, "x", true));
          const z = Math.min(bbox.left + bbox.width, u.valToPos(s.to, "x", true));
          if (z <= a) continue;
          const ink = fillState(ctx, a, top, z - a, height, s.label, lane.key, states);
          const width = ctx.measureText(s.label).width;
          if (width + 10 * dpr() > z - a) continue;
          const busy = (STATES[s.label.toLowerCase()] || [])[1];
          const at = a + 6 * dpr();
          if (busy && busy !== "ink") { ctx.fillStyle = css("--surface"); ctx.fillRect(at - 3 * dpr(), top + height / 2 - 8 * dpr(), width + 6 * dpr(), 16 * dpr()); }
          ctx.fillStyle = ink;
          ctx.fillText(s.label, at, top + height / 2 + dpr());
        }
      });
    }
    function drawMarks(u, s) {
      const { ctx } = u;
      const ink = colour(s.key);
      const points = s.style.endsWith("points");
      const at = (j, v) => [u.valToPos(s.x[j], "x", true), u.valToPos(v, "y", true)];
      if (s.lo && s.hi && !points) {
        ctx.globalAlpha = 0.16;
        ctx.fillStyle = ink;
        ctx.beginPath();
        const ok = s.x.map((_, j) => j).filter((j) => s.lo[j] != null && s.hi[j] != null);
        ok.forEach((j, k) => (k ? ctx.lineTo(...at(j, s.hi[j])) : ctx.moveTo(...at(j, s.hi[j]))));
        ok.reverse().forEach((j) => ctx.lineTo(...at(j, s.lo[j])));
        ctx.fill();
        ctx.globalAlpha = 1;
      }
      if (!points) return;
      s.x.forEach((_, j) => {
        if (s.y[j] == null) return;
        const [x, y] = at(j, s.y[j]);
        if (s.lo && s.hi && s.lo[j] != null && s.hi[j] != null) {
          const [a, z] = [at(j, s.lo[j])[1], at(j, s.hi[j])[1]];
          const cap = 4 * dpr();
          ctx.strokeStyle = ink;
          ctx.lineWidth = 1.4 * dpr();
          ctx.beginPath();
          ctx.moveTo(x, a); ctx.lineTo(x, z);
          for (const end of [a, z]) { ctx.moveTo(x - cap, end); ctx.lineTo(x + cap, end); }
          ctx.stroke();
        }
        mark(ctx, look(s.key).mark, x, y, 3.6 * dpr(), ink);
      });
    }

    const axis = (extra) => ({
      stroke: () => css("--ink-2"), font: `12px ${FONT}`, labelFont: `12px ${FONT}`, labelGap: 0, labelSize: LABEL, gap: 4,
      grid: { stroke: () => css("--grid"), width: 1 }, ticks: { stroke: () => css("--rule"), width: 1, size: 5 },
      ...extra,
    });
    const height = chart.height || (lanes ? 66 + 34 * chart.lanes.length : chart.sync ? 200 : 290);
    const options = {
      width: Math.max(200, place.clientWidth), height, legend: { show: false },
      padding: [chart.bands.length ? 20 : 10, 14, 0, 0],
      cursor: {
        y: !lanes && !chart.sync, drag: { x: true, y: false, setScale: true }, focus: { prox: -1 },
        points: { size: 7, width: 2 },
        dataIdx: (u, i, idx) => {
          // The lines do not share their abscissae: go to the nearest point that this line has.
          const d = u.data[i];
          if (i === 0 || d[idx] != null) return idx;
          for (let k = 1; k < d.length; k++) {
            if (d[idx - k] != null) return idx - k;
            if (d[idx + k] != null) return idx + k;
            if (k > 400) break;
          }
          return null;
        },
        sync: chart.sync ? { key: chart.sync, setSeries: false, scales: ["x", null] } : undefined,
      },
      scales: {
        x: { time: false, distr: chart.x.log ? 3 : 1, range: rangeX },
        y: { distr: chart.y.log && !lanes ? 3 : 1, range: rangeY },
      },
      axes: [
        axis({ label: named(chart.x), values: ticks(chart.x), size: 25, space: chart.x.log ? 28 : 72, splits: chart.x.log ? powers : undefined }),
        lanes
          ? axis({ size: left, label: undefined, labelSize: 0, grid: { show: false }, ticks: { show: false }, font: `600 12.5px ${FONT}`,
              splits: () => chart.lanes.map((_, i) => chart.lanes.length - i - 0.5), values: () => chart.lanes.map((l) => short(l.name)) })
          : axis({ size: left - LABEL, label: named(chart.y), values: ticks(chart.y), space: 34 }),
      ],
      series: [{}, ...(lanes ? [{ show: true, paths: () => null, points: { show: false } }] : series.map((s) => ({
        label: s.name, show: !s.hidden, stroke: () => colour(s.key), width: s.reference ? 1.2 : 2,
        dash: s.reference ? [5, 4] : look(s.key).dash,
        paths: s.style === "points" ? () => null : s.style === "stepped" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
        points: { show: false },
      })))],
      hooks: { drawClear: [under], draw: [over], setCursor: [(u) => update(u)] },
    };

    // ---- legend: names that toggle, and the values under the cursor ----
    const values = [];
    let plot = null;
    const where = document.createElement("span");
    where.className = "at";
    function swatch(paint) {
      const c = document.createElement("canvas");
      c.width = 26 * dpr();
      c.height = 12 * dpr();
      c.setAttribute("aria-hidden", "true");
      c.repaint = () => { const g = c.getContext("2d"); g.clearRect(0, 0, c.width, c.height); paint(g, c.width, c.height); };
      c.repaint();
      return c;
    }
    function sample(s) {
      return swatch((g, w, h) => {
        const ink = colour(s.key);
        g.strokeStyle = ink;
        g.lineWidth = (s.reference ? 1.4 : 2.2) * dpr();
        g.setLineDash((s.reference ? [5, 4] : look(s.key).dash).map((d) => d * dpr()));
        g.beginPath();
        if (s.style !== "points") { g.moveTo(0, h / 2); g.lineTo(w, h / 2); g.stroke(); }
        g.setLineDash([]);
        if (s.style.endsWith("points")) mark(g, look(s.key).mark, w / 2, h / 2, 3.6 * dpr(), ink);
      });
    }
    const items = lanes ? chart.lanes : series;
    items.forEach((s, i) => {
      const button = document.createElement(lanes ? "span" : "button");
      if (lanes) button.className = "static";
      else {
        button.type = "button";
        button.title = "Show or hide this line";
        button.setAttribute("aria-pressed", String(!s.hidden));
        button.append(sample(s));
        button.onclick = () => {
          const show = !plot.series[i + 1].show;
          plot.setSeries(i + 1, { show });
          button.setAttribute("aria-pressed", String(show));
        };
      }
      const value = document.createElement("span");
      value.className = "value";
      values.push(value);
      if (lanes) button.hidden = true;
      button.append(lanes ? s.name + ": " : s.name, value);
      legend.append(button);
    });
    for (const state of states) {
      const key = document.createElement("span");
      key.className = "static";
      const owner = chart.lanes.find((l) => l.spans.some((s) => s.label === state)).key;
      const neutral = chart.lanes.length > 1 ? "" : owner;
      key.append(swatch((g, w, h) => fillState(g, 0, 0, w, h, state, neutral, states)), state);
      legend.append(key);
    }
    legend.append(where);
    function update(u) {
      const x = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null;
      where.textContent = x == null ? "" : `${chart.x.label} ${number(x)} ${chart.x.unit}`;
      items.forEach((s, i) => {
        if (lanes) {
          const span = x == null ? null : s.spans.find((p) => p.from <= x && x < p.to);
          values[i].textContent = span ? span.label : "";
          values[i].parentNode.hidden = !span;
          return;
        }
        const j = x == null ? -1 : lookup(s, x, s.style === "stepped");
        values[i].textContent = j >= 0 && s.y[j] != null ? number(s.y[j]) : "";
      });
    }

    plot = new uPlot(options, data, place);
    if (chart.sync) uPlot.sync(chart.sync).sub(plot);
    let width = options.width;
    new ResizeObserver(() => {
      const now = place.clientWidth;
      if (now && now !== width) plot.setSize({ width: (width = now), height });
    }).observe(place);
    return { redraw: () => { plot.redraw(false, true); legend.querySelectorAll("canvas").forEach((c) => c.repaint()); } };
  }

  // ---- long tables, built when they are opened --------------------------------------------------
  function rows(chart) {
    const head = [named(chart.x)];
    for (const s of chart.series) {
      head.push(chart.y.unit ? `${s.name} (${chart.y.unit})` : s.name);
      if (s.lo && s.hi) head.push(`${s.name} low`, `${s.name} high`);
    }
    const at = new Map();
    let column = 1;
    for (const s of chart.series) {
      s.x.forEach((x, j) => {
        if (!at.has(x)) at.set(x, Array(head.length).fill(""));
        const row = at.get(x);
        row[0] = x;
        row[column] = s.y[j] ?? "";
        if (s.lo && s.hi) { row[column + 1] = s.lo[j] ?? ""; row[column + 2] = s.hi[j] ?? ""; }
      });
      column += s.lo && s.hi ? 3 : 1;
    }
    return [head, [...at.values()].sort((a, b) => a[0] - b[0])];
  }
  function fill(figure, chart) {
    const details = figure.querySelector("details");
    const place = figure.querySelector("[data-lazy]");
    const [head, body] = rows(chart);
    if (body.length) {
      const link = document.createElement("a");
      link.className = "csv";
      link.href = "#";
      link.textContent = "Save as CSV";
      link.download = figure.dataset.chart + ".csv";
      link.onclick = () => {
        const quote = (c) => (/[",\n]/.test(c) ? `"${String(c).replace(/"/g, '""')}"` : c);
        const text = [head, ...body].map((r) => r.map(quote).join(",")).join("\n") + "\n";
        link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      };
      details.insertBefore(link, details.querySelector(".numbers"));
    }
    if (!place) return;
    const table = document.createElement("table");
    const line = (cells, tag) => {
      const tr = document.createElement("tr");
      for (const c of cells) {
        const cell = document.createElement(tag);
        cell.className = "num";
        cell.textContent = typeof c === "number" ? number(c) : c;
        tr.append(cell);
      }
      return tr;
    };
    table.createTHead().append(line(head, "th"));
    table.createTBody().append(...body.map((r) => line(r, "td")));
    place.append(table);
  }

  // ---- the page ---------------------------------------------------------------------------------
  const drawn = [];
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const id = figure.dataset.chart;
    drawn.push(draw(figure, id));
    figure.querySelector("details").addEventListener("toggle", () => fill(figure, DATA.charts[id]), { once: true });
  }
  const redraw = () => drawn.forEach((d) => d.redraw());
  systemDark.addEventListener("change", redraw);
  const button = document.getElementById("theme");
  button.hidden = false;
  button.onclick = () => { root.dataset.theme = isDark() ? "light" : "dark"; redraw(); };
  // Paper is white, whatever the screen is.
  let before;
  addEventListener("beforeprint", () => { before = root.dataset.theme; root.dataset.theme = "light"; redraw(); });
  addEventListener("afterprint", () => { if (before) root.dataset.theme = before; else delete root.dataset.theme; redraw(); });
  root.dataset.drawn = drawn.length;
})();
