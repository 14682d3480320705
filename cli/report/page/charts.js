// What all charts share: their frame, axes, the part that is in view, the pointer and the keys.

const narrow = () => window.innerWidth < 720;

/** The frame of a chart in `width` by `height`, with room for its axes. */
function frame(width, height, margins) {
  const m = Object.assign({left: 68, right: 14, top: 26, bottom: 34}, margins);
  return {width, height, left: m.left, right: width - m.right, top: m.top, bottom: height - m.bottom,
          plotWidth: width - m.left - m.right, plotHeight: height - m.top - m.bottom};
}

/** Horizontal lines with their labels. */
function sizeGrid(box, most, y, unit, count) {
  return roundTicks(most, unit[0], count).flatMap((value) => [
    svgEl('line', {class: 'grid', x1: box.left, x2: box.right, y1: y(value), y2: y(value)}),
    svgEl('text', {x: box.left - 8, y: y(value) + 4, 'text-anchor': 'end'}, tickText(value, unit))]);
}

/** A label at (x, y) that stays within the chart. */
function label(box, text, x, y, attributes) {
  const half = text.length * 3.6;
  let anchor = 'middle';
  if (x - half < 2) { anchor = 'start'; x = Math.max(x - half, 2); }
  if (x + half > box.width - 2) { anchor = 'end'; x = Math.min(x + half, box.width - 2); }
  return svgEl('text', Object.assign({x, y, 'text-anchor': anchor}, attributes), text);
}

/** The part of a row of positions [0, total) that is in view. */
class View {
  constructor(total) { this.total = total; this.begin = 0; this.end = total; }
  get length() { return this.end - this.begin; }
  zoom(factor, around) {
    const length = Math.min(this.total, Math.max(this.least || 8, this.length * factor));
    const share = (around - this.begin) / this.length;
    this.begin = Math.min(Math.max(0, around - share * length), this.total - length);
    this.end = this.begin + length;
  }
  all() { this.begin = 0; this.end = this.total; }
  /** Moves so that the position is in view. */
  reach(position) {
    const length = this.length;
    if (position < this.begin) this.begin = position;
    else if (position >= this.end) this.begin = position - length * (1 - 1e-9);
    else return;
    this.begin = Math.min(Math.max(0, this.begin), this.total - length);
    this.end = this.begin + length;
  }
}

/** A surface that is drawn again where its width changes, and whose slider takes keys.
 * `draw(width)`: an svg; `keys`: by name of the key, a function; `point(x, y)`: the pointer is there, in
 * the svg's units; `leave()`. */
function surface(attributes, draw, keys, point, leave) {
  const holder = el('div', Object.assign({class: 'surface', tabindex: '0'}, attributes));
  const chart = el('div', {class: 'chart'}, holder);
  const tip = el('div', {class: 'tip', 'aria-hidden': 'true'});
  tip.hidden = true;
  chart.append(tip);
  let width = 0;
  const redraw = (forced) => {
    width = forced || Math.max(300, Math.round(chart.clientWidth || 1100));
    holder.replaceChildren(draw(width));
  };
  holder.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  const inUnits = (event) => {
    const at = holder.getBoundingClientRect();
    return [(event.clientX - at.left) * width / at.width, (event.clientY - at.top) * width / at.width];
  };
  holder.addEventListener('pointermove', (event) => point(...inUnits(event)));
  holder.addEventListener('pointerdown', (event) => point(...inUnits(event)));
  holder.addEventListener('pointerleave', () => { tip.hidden = true; if (leave) leave(); });
  let timer = 0;
  new ResizeObserver(() => {
    if (Math.abs(chart.clientWidth - width) < 2) return;
    clearTimeout(timer);
    timer = setTimeout(() => redraw(), 60);
  }).observe(chart);
  /** Shows lines beside the pointer, on the side that has room. */
  const say = (x, y, lines) => {
    tip.replaceChildren(...lines.filter(Boolean).map((line) => el('div', {}, ...[].concat(line))));
    tip.hidden = false;
    const scale = chart.clientWidth / width;
    const left = x * scale > chart.clientWidth / 2 ? x * scale - tip.offsetWidth - 14 : x * scale + 14;
    tip.style.left = Math.min(Math.max(0, left), Math.max(0, chart.clientWidth - tip.offsetWidth)) + 'px';
    tip.style.top = Math.max(0, y * scale - tip.offsetHeight - 8) + 'px';
  };
  return {chart, holder, redraw, say, hush: () => { tip.hidden = true; }};
}

/** Buttons that show more or less of a row. */
function zoomTools(view, around, redraw, ...others) {
  const button = (text, title, action) =>
    el('button', {type: 'button', title, 'aria-label': title, click: action}, text);
  return el('div', {class: 'tools'},
    button('+', 'Closer', () => { view.zoom(0.5, around()); redraw(); }),
    button('\u2212', 'Further', () => { view.zoom(2, around()); redraw(); }),
    button('All', 'All of it', () => { view.all(); redraw(); }), ...others);
}

/** Memory of the device over batches, with the line of the card. */
function curveChart(points, available, marks, card) {
  const most = Math.max(available, ...points.map((point) => point.device_bytes));
  const largest = Math.max(...points.map((point) => point.batch));
  let chosen = points.length - 1;
  const draw = (width) => {
    const height = narrow() ? 240 : 280;
    const box = frame(width, height, {right: 30, bottom: 42});
    const unit = sizeUnit(most);
    const x = (batch) => box.left + box.plotWidth * batch / largest;
    const y = (bytes) => box.bottom - box.plotHeight * bytes / (most * 1.06);
    const svg = svgEl('svg', {viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'},
      ...sizeGrid(box, most * 1.06, y, unit, narrow() ? 4 : 6));
    for (const batch of roundTicks(largest, 1, narrow() ? 4 : 8)) {
      svg.append(label(box, countText(batch), x(batch), box.bottom + 17, {}));
    }
    svg.append(label(box, 'batch', (box.left + box.right) / 2, box.bottom + 35, {}));
    svg.append(svgEl('polyline', {class: 'curve-line',
      points: points.map((point) => x(point.batch) + ',' + y(point.device_bytes)).join(' ')}));
    svg.append(svgEl('line', {class: 'limit-line', x1: box.left, x2: box.right, y1: y(available), y2: y(available)}));
    svg.append(svgEl('text', {class: 'limit halo', x: box.left + 6, y: y(available) - 7},
                     'available: ' + bytesText(available)));
    for (const point of points) {
      svg.append(svgEl('circle', {class: point.device_bytes > available ? 'dot over' : 'dot', r: 5,
                                  cx: x(point.batch), cy: y(point.device_bytes)}));
    }
    for (const [word, batch] of Object.entries(marks)) {
      const point = points.find((each) => each.batch === batch);
      if (point) svg.append(label(box, word, x(batch), y(point.device_bytes) + 20, {class: 'strong halo'}));
    }
    return svg;
  };
  const tell = (index) => {
    chosen = Math.min(Math.max(0, index), points.length - 1);
    const point = points[chosen];
    shown.holder.setAttribute('aria-valuenow', chosen);
    shown.holder.setAttribute('aria-valuetext',
      `batch ${countText(point.batch)}: ${bytesText(point.device_bytes)}`);
    return point;
  };
  const say = (index) => {
    const point = tell(index);
    const width = shown.chart.clientWidth;
    const box = frame(width, narrow() ? 240 : 280, {right: 30, bottom: 42});
    shown.say(box.left + box.plotWidth * point.batch / largest,
              box.bottom - box.plotHeight * point.device_bytes / (most * 1.06),
              [`batch ${countText(point.batch)}`, `${bytesText(point.device_bytes)} on the device`,
               point.device_bytes > available ? bytesText(point.device_bytes - available) + ' too much'
                                              : bytesText(available - point.device_bytes) + ' to spare']);
  };
  const shown = surface(
    {role: 'slider', 'aria-label': 'Batches', 'aria-valuemin': '0', 'aria-valuemax': String(points.length - 1)}, draw,
    {ArrowLeft: () => say(chosen - 1), ArrowRight: () => say(chosen + 1), Home: () => say(0),
     End: () => say(points.length - 1)},
    (x) => {
      const box = frame(shown.chart.clientWidth, 280, {right: 30, bottom: 42});
      const batch = (x - box.left) / box.plotWidth * largest;
      let nearest = 0;
      points.forEach((point, index) => {
        if (Math.abs(point.batch - batch) < Math.abs(points[nearest].batch - batch)) nearest = index;
      });
      say(nearest);
    });
  shown.holder.addEventListener('blur', shown.hush);
  tell(chosen);
  const table = dataTable(points, [
    {title: 'Batch', number: true, cell: (row) => countText(row.batch)},
    {title: 'On the device', number: true, cell: (row) => bytesText(row.device_bytes)},
    {title: '', cell: (row) => row.device_bytes > available ? 'too much' : 'fits'}],
    {caption: 'Memory of the device by batch',
     rowAttributes: (row) => ({'data-batch': row.batch, 'data-bytes': row.device_bytes})});
  return {element: el('div', {class: 'side', id: 'curve'}, shown.chart, table), redraw: shown.redraw};
}
