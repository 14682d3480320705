// The page, put together of what its data have.

const data = JSON.parse(document.getElementById('data').textContent);
const answer = data.answer;
const drawn = [];

function section(title, id, ...children) {
  return el('section', {id, 'aria-label': title}, el('h2', {}, title), ...children);
}
function figure(title, name, value, text) {
  return el('div', {'data-figure': name, 'data-value': value}, el('dt', {}, title), el('dd', {}, name === 'at' ? breakable(text) : text));
}
function bytesFigure(title, name, value) {
  return value === null || value === undefined ? null : figure(title, name, value, bytesText(value));
}
function chartSection(title, id, lead, chart) {
  drawn.push(chart);
  return section(title, id, lead ? el('p', {class: 'faint'}, lead) : null, chart.element);
}

/** Switches to the colours that are not shown. */
function colourButton() {
  const root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark'
                                          : matchMedia('(prefers-color-scheme: dark)').matches;
  const button = el('button', {type: 'button', id: 'colours', click: () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    name();
  }});
  const name = () => { button.textContent = isDark() ? 'Light colours' : 'Dark colours'; };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', name);
  name();
  return button;
}

function pageHeader() {
  return el('header', {}, el('div', {}, el('h1', {}, data.title),
    el('p', {class: 'faint'}, `on ${data.card}`)), colourButton());
}

function noteList(notes) {
  if (!notes.length) return null;
  return el('ul', {class: 'notes', 'aria-label': 'Warnings and what is assumed or not counted'},
    ...notes.map((note) => el('li', {class: note.severity},
      el('b', {}, note.severity + ': '), note.message, note.hint ? ` (${note.hint})` : '')));
}

/** What the card's memory holds at the peak, from the program's sums. */
function capacityBar() {
  if (!answer.footprint) return null;
  const total = answer.device.total_bytes, available = answer.device.available_bytes;
  const parts = Object.entries(answer.footprint).filter(([, bytes]) => bytes > 0)
    .map(([key, bytes]) => ({key, name: capital(key.replaceAll('_', ' ')), bytes}));
  parts.sort((a, b) => stackOrder.indexOf(a.key) - stackOrder.indexOf(b.key));
  for (const row of answer.runtime_rows) if (row.bytes > 0) parts.push({key: 'runtime', name: row.name, bytes: row.bytes});
  if (total > available) parts.push({key: 'input', name: 'In use or to stay free', bytes: total - available});
  const taken = parts.reduce((sum, part) => sum + part.bytes, 0);
  const whole = Math.max(total, taken);
  let at = 0;
  const bar = svgEl('svg', {class: 'bar', viewBox: '0 0 1000 34', preserveAspectRatio: 'none', role: 'img',
    'aria-label': `${bytesText(taken)} of ${bytesText(total)} are taken`},
    svgEl('rect', {x: 0, y: 0, width: 1000 * total / whole, height: 34, style: {fill: 'var(--free)'}}));
  for (const part of parts) {
    bar.append(svgEl('rect', {class: 'span', x: 1000 * at / whole, width: Math.max(0.5, 1000 * part.bytes / whole - 0.5), y: 0, height: 34,
                              style: {fill: `var(--${part.key})`}}, svgEl('title', {}, `${part.name}: ${bytesText(part.bytes)}`)));
    at += part.bytes;
  }
  if (taken > total) {
    bar.append(svgEl('line', {class: 'limit-line', x1: 1000 * total / whole, x2: 1000 * total / whole, y1: 0, y2: 34}));
  }
  if (total > taken) parts.push({key: 'free', name: 'Free', bytes: total - taken});
  const legend = el('ul', {class: 'legend'}, ...parts.map((part) =>
    el('li', {'data-part': part.name, 'data-bytes': part.bytes}, swatch(part.key), part.name + ' ', el('b', {}, bytesText(part.bytes)))));
  return section("The card's memory at the peak", 'card-memory', bar, legend,
    taken > total ? el('p', {class: 'faint small'}, `The dashed line is the card's end, ${bytesText(total)}.`) : null);
}

function layerTable() {
  const rows = data.layers;
  if (!rows || !rows.length) return null;
  const hasCosts = rows.some((row) => row.flops !== null);
  const columns = [
    {title: 'Layer', cell: (row) => row.name || 'in no layer', value: (row) => row.name},
    {title: 'At the peak', number: true, cell: (row) => bytesText(row.peak_bytes), value: (row) => row.peak_bytes},
    {title: 'Operator', cell: (row) => row.op, value: (row) => row.op},
    {title: 'Output', cell: (row) => row.output.join(' x '), value: (row) => row.output.reduce((a, b) => a * b, 1)},
    {title: 'Parameters', number: true, cell: (row) => countText(row.parameters), value: (row) => row.parameters}];
  if (hasCosts) {
    columns.push(
      {title: 'GFLOPs forward', number: true, cell: (row) => ((row.flops || 0) / 1e9).toFixed(3), value: (row) => row.flops || 0},
      {title: 'Saved', number: true, cell: (row) => bytesText(row.saved_bytes || 0), value: (row) => row.saved_bytes || 0});
  }
  columns.push({title: 'Line', cell: (row) => row.place, value: (row) => row.place});
  return section('Layers', 'layers', el('p', {class: 'faint'}, 'Saved: for backward, that no earlier layer has saved. ' +
    'At the peak: of what is live then, with parameters, gradients and optimizer state.'),
    dataTable(rows, columns, {caption: 'Layers', sortable: true, sortedBy: 1, shown: 25,
      rowAttributes: (row) => ({'data-layer': row.name, 'data-bytes': row.peak_bytes})}));
}

function memorySection() {
  const isPicture = data.command === 'batch';
  const reserves = data.memory.reserved.reduce((most, value, at) => at % 2 ? Math.max(most, value) : most, 0);
  const lead = [isPicture ? `At a batch of ${countText(data.batch)}.` : '',
    data.replicas > 1 ? `Of one of ${data.replicas} virtual GPUs.` : '',
    data.with_evaluation ? 'Of the training step, without the evaluation beside it.' : '',
    'Tensors by class, kernel by kernel, in a steady step.',
    data.room_bytes > 2.2 * reserves ? `The card has room for ${bytesText(data.room_bytes)} in the allocator, far above the chart.` : ''].filter(Boolean).join(' ');
  return chartSection('Memory over the step', 'memory', lead, memoryChart(data.memory, {id: 'step-memory', name: 'Kernels of the step',
    reserved: 'reserved by the allocator', held: 'reserved', limit: 'room for the allocator', room: data.room_bytes}));
}

function curveSection(marks) {
  if (!data.curve || !data.curve.length) {
    return section('Memory over batches', 'batches', el('p', {class: 'faint'}, 'The step was recorded at one batch: its sizes at others are not known.'));
  }
  return chartSection('Memory over batches', 'batches', null, curveChart(data.curve, answer.device.available_bytes, marks, data.card));
}

function checkPage() {
  const fits = answer.verdict === 'fits';
  const peak = answer.peak;
  return [
    el('p', {class: 'verdict ' + (fits ? 'good' : 'bad'), id: 'verdict', 'data-verdict': answer.verdict},
      fits ? `It fits: ${bytesText(answer.device_bytes)} of ${bytesText(answer.device.available_bytes)}, ${bytesText(answer.headroom_bytes)} to spare`
           : answer.headroom_bytes < 0
             ? `It does not fit: ${bytesText(answer.device_bytes)} of ${bytesText(answer.device.available_bytes)}, ${bytesText(-answer.headroom_bytes)} too much`
             : 'It does not fit'),
    el('dl', {class: 'figures'}, bytesFigure('On the device', 'device_bytes', answer.device_bytes),
      bytesFigure('Reserved by the allocator', 'reserved_bytes', peak.reserved_bytes),
      bytesFigure('Tensors at the peak', 'tensor_bytes', peak.tensor_bytes),
      bytesFigure('Available', 'available_bytes', answer.device.available_bytes),
      figure('Peak while', 'at', peak.at, peak.at)),
    noteList(answer.notes), capacityBar(), memorySection(),
    curveSection({'this batch': data.batch}), layerTable()];
}

function batchPage() {
  const none = answer.largest === 0;
  return [
    el('p', {class: 'verdict ' + (none ? 'bad' : 'good'), id: 'verdict', 'data-verdict': answer.verdict},
      none ? 'Not even one sample fits' : `The batch to use: ${countText(answer.recommended)}; the largest that fits: ${countText(answer.largest)}`),
    el('dl', {class: 'figures'}, figure('Recommended', 'recommended', answer.recommended, countText(answer.recommended)),
      figure('Largest', 'largest', answer.largest, countText(answer.largest)),
      bytesFigure('At the recommended', 'recommended_device_bytes', answer.recommended_device_bytes),
      bytesFigure('At the largest', 'largest_device_bytes', answer.largest_device_bytes),
      bytesFigure('Available', 'available_bytes', answer.device.available_bytes)),
    noteList(answer.notes),
    curveSection({recommended: answer.recommended, largest: answer.largest === answer.recommended ? -1 : answer.largest}),
    memorySection(), layerTable()];
}

function planFigures(plan) {
  const isOurs = data.command === 'plan';
  return el('dl', {class: 'figures'},
    figure('Step, simulated', 'step_seconds', plan.step_seconds, secondsText(plan.step_seconds)),
    figure('With all on the GPU', 'all_gpu_step_seconds', plan.all_gpu_step_seconds, secondsText(plan.all_gpu_step_seconds)),
    isOurs ? bytesFigure('GPU arena', 'arena_bytes', plan.arena_bytes)
           : bytesFigure('Reserved by PyTorch', 'peak_reserved_bytes', plan.peak_reserved_bytes),
    bytesFigure('Over PCIe', 'pcie_bytes', plan.pcie_bytes),
    isOurs ? bytesFigure('Pinned host memory', 'host_peak_bytes', plan.host_peak_bytes)
           : bytesFigure('Pinned host memory', 'pinned_bytes', plan.pinned_bytes));
}

function planVerdict(plan) {
  const fits = answer.verdict === 'fits';
  return el('p', {class: 'verdict ' + (fits ? 'good' : 'bad'), id: 'verdict', 'data-verdict': answer.verdict},
    answer.chosen ? `The plan is '${answer.chosen}'` : `No plan is chosen by default: this is '${plan.name}'`);
}

const planColumns = [
  {title: 'Step', number: true, cell: (row) => secondsText(row.step_seconds)},
  {title: 'All on GPU', number: true, cell: (row) => secondsText(row.all_gpu_step_seconds)},
  {title: 'Over PCIe', number: true, cell: (row) => bytesText(row.pcie_bytes)},
  {title: 'At least', number: true, cell: (row) => bytesText(row.pcie_lower_bound_bytes)}];

function planPage() {
  const plan = answer.plans.find((each) => each.name === data.plan);
  const chart = memoryChart(data.memory, {id: 'step-memory', name: 'Kernels of the step', reserved: 'arena', held: 'of arena',
                                          limit: 'budget', room: data.room_bytes});
  const onHost = (memory, title, id) => memory && chartSection(title, id, null,
    memoryChart(Object.assign({}, data.memory, memory), {id: id + '-memory', name: title, reserved: 'arena', held: 'of arena', limit: '', room: 0}));
  return [planVerdict(plan), el('p', {}, capital(plan.in_words) + '.'), planFigures(plan), noteList(answer.notes),
    proposalTable(answer.plans, data.plan, [...planColumns,
      {title: 'Arena', number: true, cell: (row) => bytesText(row.arena_bytes)},
      {title: 'Pinned host', number: true, cell: (row) => bytesText(row.host_peak_bytes)}]),
    chartSection('Memory of the GPU over the step', 'memory', 'Tensors by class in the plan\u2019s arena, kernel by kernel, with copies in flight.', chart),
    chartSection('Lanes', 'lanes', 'What each lane does over the time of the step, as simulated.', lanesChart(data.lanes, chart.memory)),
    placesSection(data.places),
    onHost(data.pinned, 'Pinned memory of the host over the step', 'pinned'),
    onHost(data.pageable, 'Pageable memory of the host over the step', 'pageable'),
    data.frontier && data.frontier.length
      ? chartSection('Frontier', 'frontier', 'The shortest step that was found at each budget; dashed: its bound.', frontierChart(data.frontier, data.room_bytes, data.card))
      : section('Frontier', 'frontier', el('p', {class: 'faint'}, 'The time of the step at other budgets was not asked for: plan --frontier FILE searches it.'))];
}

function pytorchPlanPage() {
  const plan = answer.plans.find((each) => each.name === data.plan);
  const chart = memoryChart(data.memory, {id: 'step-memory', name: 'Kernels of the step', reserved: 'reserved by PyTorch', held: 'reserved',
                                          limit: 'room for the allocator', room: data.room_bytes});
  return [planVerdict(plan), el('p', {}, capital(plan.in_words) + '.'), planFigures(plan), noteList(answer.notes),
    proposalTable(answer.plans, data.plan, [...planColumns,
      {title: 'Reserved', number: true, cell: (row) => bytesText(row.peak_reserved_bytes)},
      {title: 'Pinned host', number: true, cell: (row) => bytesText(row.pinned_bytes)}]),
    chartSection('Memory over the step', 'memory', 'Tensors by class, kernel by kernel, as PyTorch runs the step with the plan.', chart),
    chartSection('Lanes', 'lanes', 'What each lane does over the time of the step, as simulated.' +
      (plan.micro_batches > 1 ? ` Of one of ${plan.micro_batches} micro-batches, with the update.` : ''), lanesChart(data.lanes, chart.memory)),
    decisionsSection(plan)];
}

function noPlanPage() {
  document.getElementById('as-text').open = true;
  return [el('p', {class: 'verdict bad', id: 'verdict', 'data-verdict': answer.verdict}, 'There is no plan: the text below says why.'), noteList(answer.notes)];
}

function buildPage() {
  const pages = {check: checkPage, batch: batchPage, plan: planPage, 'plan-for-pytorch': pytorchPlanPage, 'no-plan': noPlanPage};
  document.getElementById('page').replaceChildren(pageHeader(), ...pages[data.command]().filter(Boolean),
    el('footer', {class: 'faint small'}, `Written by ${data.written_by}. This page is one file and asks for no other.`));
  for (const chart of drawn) chart.redraw();
  document.documentElement.dataset.ready = 'yes';
}
buildPage();

// On paper charts have a width of their own, so that their labels keep their size.
addEventListener('beforeprint', () => { for (const chart of drawn) chart.redraw(700); });
addEventListener('afterprint', () => { for (const chart of drawn) chart.redraw(); });
