// What a plan adds to a page: its proposals, its lanes, what lies where, the frontier.

const laneKinds = [['gpu', 'GPU'], ['cpu', 'CPU'], ['to_host', 'GPU to host'], ['to_gpu', 'Host to GPU']];
const phaseColours = {forward: 'activation', loss: 'saved_auxiliary', backward: 'activation_gradient', update: 'optimizer_state'};

/** All proposals, the shown one marked. */
function proposalTable(plans, shown, columns) {
  return section('Plans', 'plans', dataTable(plans, [
    {title: 'Plan', cell: (row) => row.name}, ...columns,
    {title: 'What it does', prose: true, cell: (row) => row.in_words + (row.remarks.length ? '; ' + row.remarks.join('; ') : '')}],
    {caption: 'Plans', rowAttributes: (row) => ({'data-plan': row.name, class: row.name === shown ? 'chosen' : null})}));
}

/** Four rows of spans over the time of the step. `memory`: the StepMemory of the step's kernels. */
function lanesChart(lanes, memory) {
  const unit = lanes.unit_seconds;
  const rows = laneKinds.map(([key, name]) => {
    const spans = lanes[key].map((row) => {
      // A kernel by its number in the step or by its name; a copy, or an update on the CPU, by its storage.
      const isNumbered = typeof row[0] === 'number', begin = row[1], end = row[2];
      const phase = isNumbered ? memory.phaseOf(row[0]) : row.length === 4 ? row[3] : null;
      return phase
        ? {name: isNumbered ? memory.names[row[0]] : row[0], begin, end, colour: phaseColours[phase], what: phase}
        : {name: row[0], begin, end, bytes: row[3], colour: row[4], what: row[4].replaceAll('_', ' ')};
    });
    spans.sort((a, b) => a.begin - b.begin || a.end - b.end);
    const busy = spans.reduce((sum, span) => sum + span.end - span.begin, 0);
    return {key, name, spans, busy};
  });
  const whole = Math.max(lanes.step, 1);
  const view = new View(whole);
  view.least = Math.max(1, whole / 5000);
  let row = 0, index = 0, box = null, marks = null;
  const rowHeight = 34, gap = 14;
  const x = (time) => box.left + box.plotWidth * (time - view.begin) / view.length;
  const top = (at) => box.top + at * (rowHeight + gap);
  const height = 26 + rows.length * (rowHeight + gap) + 26;
  /** Neighbours that would fall in one pixel become one shape. */
  const shapes = (lane, at) => {
    const paths = {};
    let last = -1;
    for (const span of lane.spans) {
      if (span.end < view.begin || span.begin > view.end) continue;
      const from = Math.max(x(span.begin), box.left), to = Math.min(Math.max(x(span.end), x(span.begin) + 0.6), box.right);
      if (to <= last + 0.3) continue;
      const begin = Math.max(from, last);
      paths[span.colour] = (paths[span.colour] || '') + `M${begin.toFixed(2)},${top(at)}H${to.toFixed(2)}v${rowHeight}H${begin.toFixed(2)}Z`;
      last = to;
    }
    return Object.entries(paths).map(([colour, path]) => svgEl('path', {class: 'span', d: path, style: {fill: `var(--${colour})`}}));
  };
  const cursor = () => {
    const span = rows[row].spans[index];
    if (!span || span.end < view.begin || span.begin > view.end) return [];
    const from = Math.max(x(span.begin), box.left), to = Math.min(x(span.end), box.right);
    return [svgEl('rect', {x: from - 1, y: top(row) - 2, width: Math.max(3, to - from + 2), height: rowHeight + 4, fill: 'none', class: 'cursor-line'})];
  };
  const draw = (width) => {
    box = frame(width, height, {left: narrow() ? 14 : 110, top: narrow() ? 22 : 8, bottom: 28});
    const ticks = timeUnit(view.length * unit);
    const step = roundTicks(view.length * unit, ticks[0], narrow() ? 3 : 8)[1] || view.length * unit;
    marks = svgEl('g', {}, ...cursor());
    const svg = svgEl('svg', {viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'});
    const bottom = top(rows.length - 1) + rowHeight;
    for (let value = Math.ceil(view.begin * unit / step) * step; value <= view.end * unit * (1 + 1e-9); value += step) {
      const at = x(value / unit);
      svg.append(svgEl('line', {class: 'grid', x1: at, x2: at, y1: box.top, y2: bottom + 6}),
                 label(box, tickText(value, ticks), at, bottom + 21, {}));
    }
    rows.forEach((lane, at) => {
      svg.append(svgEl('rect', {class: 'lane', x: box.left, y: top(at), width: box.plotWidth, height: rowHeight}),
        ...shapes(lane, at),
        narrow() ? svgEl('text', {class: 'halo', x: box.left, y: top(at) - 2}, lane.name)
                 : svgEl('text', {x: box.left - 10, y: top(at) + 14, 'text-anchor': 'end', class: 'strong'}, lane.name));
      if (!narrow()) svg.append(svgEl('text', {x: box.left - 10, y: top(at) + 29, 'text-anchor': 'end'}, `busy ${shareText(lane.busy, whole)}`));
    });
    svg.append(marks);
    return svg;
  };
  const about = el('p', {class: 'at small'});
  const linesOf = (lane, span) => [[el('b', {}, span.name)],
    [swatch(span.colour), `${lane.name}: ${span.what}` + (span.bytes ? `, ${bytesText(span.bytes)}` : '')],
    `${secondsText(span.begin * unit)} to ${secondsText(span.end * unit)}, ${secondsText((span.end - span.begin) * unit)}`];
  const tell = () => {
    const lane = rows[row], span = lane.spans[index];
    const text = span ? `${lane.name}: ${span.name}` + (span.bytes ? `, ${bytesText(span.bytes)}` : '') +
      `, from ${secondsText(span.begin * unit)} to ${secondsText(span.end * unit)}` : `${lane.name}: nothing`;
    about.textContent = text;
    shown.holder.setAttribute('aria-valuenow', span ? Math.round(span.begin) : 0);
    shown.holder.setAttribute('aria-valuetext', text);
    if (marks && box) marks.replaceChildren(...cursor());
  };
  const goTo = (lane, at) => {
    row = lane;
    index = Math.min(Math.max(0, at), Math.max(0, rows[row].spans.length - 1));
    const span = rows[row].spans[index];
    if (span) {
      const before = view.begin;
      view.reach(span.begin);
      if (view.begin !== before) shown.redraw();
    }
    tell();
  };
  const changeLane = (by) => {
    const span = rows[row].spans[index];
    const to = Math.min(Math.max(0, row + by), rows.length - 1);
    const at = rows[to].spans.findIndex((other) => !span || other.end > span.begin);
    goTo(to, at < 0 ? rows[to].spans.length - 1 : at);
  };
  const around = () => (rows[row].spans[index] || {begin: view.begin}).begin;
  const zoom = (factor) => () => { view.zoom(factor, around()); shown.redraw(); };
  const shown = surface(
    {role: 'slider', id: 'lanes-chart', 'aria-label': 'Lanes of the step', 'aria-valuemin': '0', 'aria-valuemax': String(whole)}, draw,
    {ArrowLeft: () => goTo(row, index - 1), ArrowRight: () => goTo(row, index + 1), ArrowUp: () => changeLane(-1),
     ArrowDown: () => changeLane(1), Home: () => goTo(row, 0), End: () => goTo(row, rows[row].spans.length - 1),
     '+': zoom(0.5), '-': zoom(2), 0: () => { view.all(); shown.redraw(); }},
    (px, py) => {
      const lane = Math.floor((py - box.top) / (rowHeight + gap));
      const time = view.begin + (px - box.left) / box.plotWidth * view.length;
      if (lane < 0 || lane >= rows.length || time < view.begin || time > view.end) return shown.hush();
      const slack = view.length / box.plotWidth;
      const at = rows[lane].spans.findIndex((span) => span.begin - slack <= time && time <= span.end + slack);
      if (at < 0) return shown.hush();
      row = lane;
      index = at;
      tell();
      shown.say(px, py, linesOf(rows[lane], rows[lane].spans[at]));
    });
  const legend = el('ul', {class: 'legend'}, ...Object.entries(phaseColours).filter(([phase]) => memory.phases.some((each) => each.name === phase))
    .map(([phase, colour]) => el('li', {}, swatch(colour), 'Kernels: ' + phase)), el('li', {class: 'faint'}, 'Copies have the colours of their classes, as above'));
  const tools = zoomTools(view, around, shown.redraw,
    el('span', {class: 'faint small'}, 'Point at a kernel or a copy; or arrow keys (left and right: in a lane, up and down: lanes)'));
  tell();
  return {element: el('div', {'data-step': lanes.step * unit}, el('div', {class: 'kept'}, legend, shown.chart), tools, about), redraw: shown.redraw};
}

const whereWords = {gpu: 'GPU', both_sides: 'moves', host: 'host'};

function placesSection(places) {
  const sums = dataTable(places.by_class, [
    {title: 'Class', cell: (row) => el('span', {}, swatch(row.key), capital(row.name))},
    {title: 'On the GPU alone', number: true, cell: (row) => bytesText(row.gpu_bytes)},
    {title: 'Moves in the step', number: true, cell: (row) => bytesText(row.both_sides_bytes)},
    {title: 'On the host alone', number: true, cell: (row) => bytesText(row.host_bytes)}],
    {caption: 'Bytes by class and side', rowAttributes: (row) => ({'data-class': row.key})});
  const rows = places.storages.map((row) => ({name: row[0], key: row[1], layer: row[2], bytes: row[3], where: row[4], down: row[5], up: row[6]}));
  const moved = rows.filter((row) => row.where !== 'gpu');
  const list = dataTable(moved.length ? moved : rows, [
    {title: 'Storage', cell: (row) => el('span', {}, swatch(row.key), breakable(row.name)), value: (row) => row.name},
    {title: 'Layer', cell: (row) => row.layer, value: (row) => row.layer},
    {title: 'Size', number: true, cell: (row) => bytesText(row.bytes), value: (row) => row.bytes},
    {title: 'Where', cell: (row) => whereWords[row.where], value: (row) => row.where},
    {title: 'To the host', number: true, cell: (row) => row.down ? row.down + ' x' : '', value: (row) => row.down},
    {title: 'To the GPU', number: true, cell: (row) => row.up ? row.up + ' x' : '', value: (row) => row.up}],
    {caption: 'Storages', sortable: true, sortedBy: 2, shown: 20});
  return section('What lies where', 'places', sums, el('p', {class: 'faint'}, moved.length
    ? 'What leaves the GPU, or is never there:' : 'All of it is on the GPU:'), list);
}

/** The step's time over budgets, with the line of what the card leaves. */
function frontierChart(points, budget, card) {
  const mostBytes = Math.max(budget, ...points.map((point) => point.budget_bytes));
  const mostSeconds = 1.08 * Math.max(...points.map((point) => point.step_seconds));
  const draw = (width) => {
    const height = 280;
    const box = frame(width, height, {right: 34, bottom: 42, left: 74});
    const x = (bytes) => box.left + box.plotWidth * bytes / mostBytes;
    const y = (seconds) => box.bottom - box.plotHeight * seconds / mostSeconds;
    const svg = svgEl('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Time of the step by budget'},
                      ...sizeGrid(box, mostSeconds, y, timeUnit(mostSeconds)));
    const unit = sizeUnit(mostBytes);
    for (const bytes of roundTicks(mostBytes, unit[0], narrow() ? 3 : 7)) svg.append(label(box, tickText(bytes, unit), x(bytes), box.bottom + 17, {}));
    svg.append(label(box, 'budget of the GPU arena', (box.left + box.right) / 2, box.bottom + 35, {}));
    const line = (kind, value) => {
      const path = points.filter((point) => value(point) !== null).map((point) => x(point.budget_bytes) + ',' + y(value(point))).join(' ');
      svg.append(svgEl('polyline', {class: kind, points: path}));
    };
    line('bound-line', (point) => point.step_lower_bound_seconds);
    line('curve-line', (point) => point.step_seconds);
    for (const point of points) svg.append(svgEl('circle', {class: 'dot', r: 5, cx: x(point.budget_bytes), cy: y(point.step_seconds)},
      svgEl('title', {}, `${point.plan}: ${bytesText(point.budget_bytes)}, ${secondsText(point.step_seconds)}`)));
    if (budget > 0 && budget <= mostBytes) {
      svg.append(svgEl('line', {class: 'limit-line', x1: x(budget), x2: x(budget), y1: box.top, y2: box.bottom}),
        label(box, `${card}: ${bytesText(budget)}`, x(budget), box.top - 8, {class: 'limit'}));
    }
    return svg;
  };
  const shown = surface({tabindex: '-1'}, draw, {}, () => {});
  const table = dataTable(points, [
    {title: 'Budget', number: true, cell: (row) => bytesText(row.budget_bytes)},
    {title: 'Step', number: true, cell: (row) => secondsText(row.step_seconds)},
    {title: 'At least', number: true, cell: (row) => row.step_lower_bound_seconds === null ? '' : secondsText(row.step_lower_bound_seconds)},
    {title: 'Plan', cell: (row) => row.plan}],
    {caption: 'Time of the step by budget', rowAttributes: (row) => ({'data-budget': row.budget_bytes, 'data-seconds': row.step_seconds})});
  return {element: el('div', {class: 'side'}, shown.chart, table), redraw: shown.redraw};
}

const most_listed = 12;  // more are folded

/** Decisions of a plan for PyTorch. */
function decisionsSection(plan) {
  const parts = [];
  const list = (title, words) => {
    if (words.length > most_listed) {
      parts.push(el('details', {}, el('summary', {}, `${title}: ${words.length}`), el('p', {}, words.join(', '))));
    } else if (words.length) {
      parts.push(el('p', {}, el('b', {}, title + ': '), words.join(', ')));
    }
  };
  list('Run again in backward', plan.checkpoint);
  list('Parameters streamed', plan.streamed);
  if (plan.optimizer_on_cpu) list('Updated on the CPU', plan.cpu_parameters.length ? plan.cpu_parameters : ['all parameters']);
  if (plan.early_updates) parts.push(el('p', {}, 'Each parameter is updated as soon as its gradient is whole.'));
  if (data.offload.length) {
    parts.push(dataTable(data.offload, [
      {title: 'Saved tensor, by key', cell: (row) => row.keys, value: (row) => row.keys},
      {title: 'Size', number: true, cell: (row) => bytesText(row.bytes), value: (row) => row.bytes},
      {title: 'Copied from', cell: (row) => row.start, value: (row) => row.start},
      {title: 'Let go at', cell: (row) => row.release || 'the end of forward', value: (row) => row.release},
      {title: 'Fetched at', cell: (row) => row.fetch || 'its first use', value: (row) => row.fetch}],
      {caption: 'Offloaded storages', sortable: true, sortedBy: 1, shown: 20, rowAttributes: (row) => ({'data-bytes': row.bytes})}));
  }
  return parts.length ? section('What leaves the GPU, and when', 'decisions', ...parts) : null;
}
