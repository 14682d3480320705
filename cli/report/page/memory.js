// Memory over the step: classes stacked over the kernels, and all tensors of the kernel that is pointed at.

/** From the bottom of the stack upwards: what is kept first. */
const stackOrder = ['parameter', 'parameter_copy', 'buffer', 'optimizer_state', 'gradient', 'kv_cache', 'input',
  'augmented_input', 'activation', 'saved_auxiliary', 'activation_gradient', 'temporary', 'workspace'];
const tensorsShown = 12;

class StepMemory {
  constructor(data) {
    this.names = data.node_names;
    this.count = data.node_names.length;
    this.nodeLayers = data.node_layers;
    this.layers = data.layers;
    this.peak = data.peak;
    this.notListed = data.tensors_not_listed;
    this.phases = [];
    for (let i = 0; i < data.phases.length; i += 2) {
      this.phases.push({name: data.phases[i + 1], begin: data.phases[i],
                        end: i + 2 < data.phases.length ? data.phases[i + 2] : this.count});
    }
    this.classes = data.classes.map((each, index) => ({name: each.name, key: each.key, index,
                                                       bytes: expanded(each.bytes, this.count)}));
    this.stack = [...this.classes].sort((a, b) => stackOrder.indexOf(a.key) - stackOrder.indexOf(b.key));
    this.reserved = expanded(data.reserved, this.count);
    this.live = new Float64Array(this.count);
    for (const each of this.classes) each.bytes.forEach((bytes, node) => { this.live[node] += bytes; });
    this.tensors = data.tensors.map((row, index) => ({name: row[0], of: row[1], layer: row[2], begin: row[3],
                                                      end: row[4], bytes: row[5], index}));
    this.mostReserved = this.reserved.reduce((a, b) => Math.max(a, b), 0);
    this.mostLive = this.live.reduce((a, b) => Math.max(a, b), 0);
  }
  /** The phases as they are labelled: short ones in a row, as updates between gradients, are one. */
  bands() {
    const bands = [];
    for (const phase of this.phases) {
      const isShort = phase.end - phase.begin < this.count / 40;
      const last = bands[bands.length - 1];
      if (last && last.isShort && isShort) {
        last.end = phase.end;
        last.names.add(phase.name);
      } else {
        bands.push({names: new Set([phase.name]), begin: phase.begin, end: phase.end, isShort});
      }
    }
    return bands.map((band) => ({name: [...band.names].join(', '), begin: band.begin, end: band.end}));
  }
  phaseOf(node) { return this.phases.find((phase) => phase.begin <= node && node < phase.end).name; }
  at(node) { return this.tensors.filter((tensor) => tensor.begin <= node && node < tensor.end); }
  layerOf(index) { return index < 0 ? '' : this.layers[index][0]; }
  placeOf(index) { return index < 0 ? '' : this.layers[index][1]; }
  /** The tensor that lies at so many bytes from the ground at the node; null: one of those not listed. */
  tensorAt(node, bytes) {
    const live = this.at(node);
    for (const each of this.stack) {
      if (bytes >= each.bytes[node]) { bytes -= each.bytes[node]; continue; }
      for (const tensor of live) {
        if (tensor.of !== each.index) continue;
        if (bytes < tensor.bytes) return {tensor, kind: each};
        bytes -= tensor.bytes;
      }
      return {tensor: null, kind: each};
    }
    return null;
  }
}

/** The node of each column in view: every node, or of several in one column the one with most. */
function memoryColumns(memory, view, plotWidth) {
  const begin = Math.floor(view.begin), end = Math.min(memory.count, Math.ceil(view.end));
  const columns = [];
  if (end - begin <= plotWidth) {
    for (let node = begin; node < end; ++node) columns.push({node, begin: node, end: node + 1});
    return columns;
  }
  const step = (end - begin) / Math.floor(plotWidth);
  for (let at = begin; at < end - 1e-9; at += step) {
    const first = Math.floor(at), last = Math.min(end, Math.max(first + 1, Math.floor(at + step)));
    let node = first;
    for (let other = first + 1; other < last; ++other) if (memory.live[other] > memory.live[node]) node = other;
    columns.push({node, begin: at, end: Math.min(at + step, end)});
  }
  return columns;
}

/** A line of steps over the columns. */
function stepped(columns, x, y, value) {
  let path = '';
  columns.forEach((column, index) => {
    path += (index ? 'V' : 'M' + x(column.begin).toFixed(1) + ',') + y(value(column.node)).toFixed(1) +
            'H' + x(column.end).toFixed(1);
  });
  return path;
}

/** `words`: {name, reserved, room}: what the lines are called; `room`: the most bytes there may be. */
function memoryChart(data, words) {
  const memory = new StepMemory(data);
  const view = new View(memory.count);
  view.least = Math.min(8, memory.count);
  let node = memory.peak, chosen = null;
  let box = null, most = 0;
  const showsRoom = words.room > 0 && words.room < 2.2 * Math.max(memory.mostLive, memory.mostReserved);
  most = 1.08 * Math.max(1, memory.mostLive, memory.mostReserved, showsRoom ? words.room : 0);
  const x = (at) => box.left + box.plotWidth * (at - view.begin) / view.length;
  const y = (bytes) => box.bottom - box.plotHeight * bytes / most;
  const inView = (at) => at >= view.begin && at <= view.end;

  const areas = (columns) => {
    const below = new Float64Array(columns.length);
    return memory.stack.map((each) => {
      let path = '';
      columns.forEach((column, index) => {
        path += (index ? 'V' : 'M' + x(column.begin).toFixed(1) + ',') +
                y(below[index] + each.bytes[column.node]).toFixed(1) + 'H' + x(column.end).toFixed(1);
      });
      for (let index = columns.length - 1; index >= 0; --index) {
        path += 'V' + y(below[index]).toFixed(1) + 'H' + x(columns[index].begin).toFixed(1);
        below[index] += each.bytes[columns[index].node];
      }
      return svgEl('path', {class: 'area', d: path + 'Z', style: {fill: 'var(--' + each.key + ')'}});
    });
  };
  const phases = () => memory.bands().flatMap((phase) => {
    const begin = Math.max(phase.begin, view.begin), end = Math.min(phase.end, view.end);
    if (begin >= end) return [];
    const wide = x(end) - x(begin);
    const parts = [svgEl('line', {class: 'axis', x1: x(begin), x2: x(begin), y1: box.bottom, y2: box.bottom + 8})];
    if (wide > phase.name.length * 7) {
      parts.push(svgEl('text', {x: (x(begin) + x(end)) / 2, y: box.bottom + 22, 'text-anchor': 'middle'}, phase.name));
    }
    return parts;
  });
  const lines = (columns) => {
    const drawn = [svgEl('path', {class: 'reserved-line', d: stepped(columns, x, y, (at) => memory.reserved[at])})];
    const top = memory.reserved[columns[0].node];
    const close = showsRoom && Math.abs(y(words.room) - y(top)) < 20;
    drawn.push(svgEl('text', {class: 'reserved halo', x: box.left + 6, y: y(top) + (close && words.room > top ? 15 : -6)},
                     `${words.reserved}: ${bytesText(memory.mostReserved)}`));
    if (!showsRoom) return drawn;
    drawn.push(svgEl('line', {class: 'limit-line', x1: box.left, x2: box.right, y1: y(words.room), y2: y(words.room)}),
      svgEl('text', {class: 'limit halo', x: box.right - 4, y: y(words.room) + (close && words.room < memory.mostReserved ? 16 : -7),
                     'text-anchor': 'end'}, `${words.limit}: ${bytesText(words.room)}`));
    return drawn;
  };
  const peakLabel = (at, height) => {
    const isLeft = at > (box.left + box.right) / 2;
    return svgEl('text', {class: 'strong halo', x: at + (isLeft ? -8 : 8), y: height, 'text-anchor': isLeft ? 'end' : 'start'},
                 `peak ${bytesText(memory.live[memory.peak])}`);
  };
  const peak = () => {
    const at = memory.peak + 0.5;
    if (!inView(at)) return [];
    const top = y(memory.live[memory.peak]);
    return [svgEl('line', {class: 'peak-line', x1: x(at), x2: x(at), y1: top, y2: box.bottom}),
            svgEl('path', {class: 'peak-mark', d: `M${x(at)},${top}l-5,-8h10Z`}),
            peakLabel(x(at), (top + box.bottom) / 2)];
  };
  const cursor = () => {
    const parts = [];
    if (inView(node + 0.5)) {
      parts.push(svgEl('line', {class: 'cursor-line', x1: x(node + 0.5), x2: x(node + 0.5), y1: box.top, y2: box.bottom}));
    }
    if (chosen) {
      const begin = Math.max(chosen.begin, view.begin), end = Math.min(chosen.end, view.end);
      if (begin < end) {
        parts.push(svgEl('rect', {x: x(begin), width: Math.max(2, x(end) - x(begin)), y: box.bottom + 1, height: 6,
                                  style: {fill: 'var(--' + memory.classes[chosen.of].key + ')'}}));
      }
    }
    return parts;
  };
  let marks = null;
  const draw = (width) => {
    const height = narrow() ? 280 : 380;
    box = frame(width, height, {bottom: 32});
    const columns = memoryColumns(memory, view, box.plotWidth);
    marks = svgEl('g', {}, ...cursor());
    return svgEl('svg', {viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'},
      ...sizeGrid(box, most, y, sizeUnit(most), narrow() ? 4 : 6), ...areas(columns),
      svgEl('line', {class: 'axis', x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom}),
      ...phases(), ...lines(columns), marks, ...peak());
  };

  const about = el('div', {class: 'at'});
  const lifeText = (tensor) =>
    tensor.begin === 0 && tensor.end === memory.count ? 'the whole step'
      : `kernels ${countText(tensor.begin + 1)} to ${countText(tensor.end)}`;
  const describe = () => {
    const layer = memory.nodeLayers[node];
    const kinds = memory.stack.filter((each) => each.bytes[node] > 0).reverse();
    const live = memory.at(node).sort((a, b) => b.bytes - a.bytes || a.index - b.index);
    const shownTensors = live.slice(0, tensorsShown);
    if (chosen && !shownTensors.includes(chosen) && live.includes(chosen)) shownTensors.push(chosen);
    const rest = memory.live[node] - shownTensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const head = el('p', {}, el('b', {}, memory.names[node]), ` (kernel ${countText(node + 1)} of ` +
      `${countText(memory.count)}, ${memory.phaseOf(node)}` + (layer < 0 ? '' : `, layer ${memory.layerOf(layer)}`) +
      (memory.placeOf(layer) ? `, ${memory.placeOf(layer)}` : '') + ')');
    const sums = dataTable(kinds, [
      {title: 'Class', cell: (row) => el('span', {}, swatch(row.key), capital(row.name))},
      {title: 'Live', number: true, cell: (row) => bytesText(row.bytes[node])}],
      {caption: 'Live by class', rowAttributes: (row) => ({'data-class': row.key, 'data-bytes': row.bytes[node]}),
       sum: ['All', bytesText(memory.live[node])]});
    const tensors = dataTable(shownTensors, [
      {title: 'Largest tensors', cell: (row) => el('span', {}, swatch(memory.classes[row.of].key), breakable(row.name))},
      {title: 'Size', number: true, cell: (row) => bytesText(row.bytes)},
      {title: 'Layer', cell: (row) => memory.layerOf(row.layer)},
      {title: 'Line', cell: (row) => memory.placeOf(row.layer)},
      {title: 'Lives in', cell: lifeText}],
      {caption: 'Largest tensors', rowAttributes: (row) => ({'data-bytes': row.bytes, class: row === chosen ? 'chosen' : null}),
       sum: rest > 0 ? ['others', bytesText(rest), '', '', ''] : null});
    about.replaceChildren(head, el('div', {class: 'columns'}, sums, tensors));
    about.dataset.node = node;
    about.dataset.live = memory.live[node];
    shown.holder.setAttribute('aria-valuenow', node + 1);
    shown.holder.setAttribute('aria-valuetext', `${memory.names[node]}: ${bytesText(memory.live[node])} live`);
  };
  const refresh = () => { if (marks) marks.replaceChildren(...cursor()); describe(); };
  const goTo = (target, tensor) => {
    node = Math.min(Math.max(0, target), memory.count - 1);
    chosen = tensor || null;
    const before = view.begin;
    view.reach(node + 0.5);
    if (view.begin !== before) shown.redraw();
    refresh();
  };
  const chooseNext = (by) => {
    const live = memory.at(node).sort((a, b) => b.bytes - a.bytes || a.index - b.index).slice(0, tensorsShown);
    const at = live.indexOf(chosen);
    goTo(node, live[Math.min(Math.max(0, at < 0 ? 0 : at + by), live.length - 1)]);
  };
  const page = () => Math.max(1, Math.round(view.length / 10));
  const zoom = (factor) => () => { view.zoom(factor, node + 0.5); shown.redraw(); };
  const shown = surface(
    {role: 'slider', id: words.id, 'aria-label': words.name, 'aria-valuemin': '1', 'aria-valuemax': String(memory.count)},
    draw,
    {ArrowLeft: () => goTo(node - 1), ArrowRight: () => goTo(node + 1), ArrowDown: () => chooseNext(1),
     ArrowUp: () => chooseNext(-1), PageUp: () => goTo(node - page()), PageDown: () => goTo(node + page()),
     Home: () => goTo(0), End: () => goTo(memory.count - 1), p: () => goTo(memory.peak),
     '+': zoom(0.5), '-': zoom(2), 0: () => { view.all(); shown.redraw(); }},
    (px, py) => {
      if (px < box.left || px > box.right) return;
      const at = Math.floor(view.begin + (px - box.left) / box.plotWidth * view.length);
      const found = py <= box.bottom ? memory.tensorAt(Math.min(at, memory.count - 1), (box.bottom - py) / box.plotHeight * most) : null;
      goTo(at, found && found.tensor);
      const tensor = found && found.tensor;
      const where = tensor && [memory.layerOf(tensor.layer), memory.placeOf(tensor.layer)].filter(Boolean).join(', ');
      shown.say(px, py, [[el('b', {}, memory.names[node])], `${bytesText(memory.live[node])} live, ` +
        `${bytesText(memory.reserved[node])} ${words.held}`,
        tensor && [swatch(found.kind.key), `${tensor.name}: ${bytesText(tensor.bytes)}`],
        tensor && `${found.kind.name}${where ? ', ' + where : ''}`, tensor && lifeText(tensor),
        found && !tensor && [swatch(found.kind.key), `${found.kind.name}: smaller tensors together`]]);
    });
  const peakButton = el('button', {type: 'button', title: 'To the peak', click: () => goTo(memory.peak)}, 'Peak');
  const tools = zoomTools(view, () => node + 0.5, shown.redraw, peakButton,
    el('span', {class: 'faint small'}, 'Point at a tensor; or arrow keys (kernel by kernel, up and down: tensors), p: peak'));
  const legend = el('ul', {class: 'legend'}, ...[...memory.stack].reverse().map(
    (each) => el('li', {}, swatch(each.key), capital(each.name))));
  const folded = memory.notListed > 0
    ? el('p', {class: 'faint small'}, `${countText(memory.notListed)} smaller tensors are in the sums and not listed by name.`) : null;
  describe();
  return {element: el('div', {}, el('div', {class: 'kept'}, legend, shown.chart), tools, about, folded), redraw: shown.redraw, memory};
}
