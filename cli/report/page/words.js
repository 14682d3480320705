'use strict';
// Words and elements. No text ever becomes markup: every name goes through createTextNode.

/** An element; `attributes` may have `class`, `data-...`, on... handlers are given as functions. */
function el(tag, attributes, ...children) {
  return filledElement(document.createElement(tag), attributes, children);
}
function svgEl(tag, attributes, ...children) {
  return filledElement(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}
function filledElement(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (name === 'style') Object.assign(element.style, value);
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** As the program prints sizes: "11.0 GiB". */
function bytesText(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  if (Math.abs(count) < 1024) return count + ' B';
  let value = count, unit = 0;
  while (Math.abs(value) >= 1023.95 && unit + 1 < units.length) { value /= 1024; ++unit; }
  return value.toFixed(1) + ' ' + units[unit];
}
function secondsText(seconds) {
  if (seconds >= 1) return seconds.toFixed(2) + ' s';
  if (seconds >= 1e-3) return (seconds * 1e3).toFixed(2) + ' ms';
  return (seconds * 1e6).toFixed(1) + ' us';
}
function countText(value) { return value.toLocaleString('en-US'); }
function shareText(part, whole) { return whole > 0 ? (100 * part / whole).toFixed(1) + ' %' : ''; }

/** A list of changes (a position, the value from there on, ...) as a value for each position. */
function expanded(changes, length) {
  const values = new Float64Array(length);
  for (let i = 0; i < changes.length; i += 2) {
    values.fill(changes[i + 1], changes[i], i + 2 < changes.length ? changes[i + 2] : length);
  }
  return values;
}

/** Values from 0 to `most` that are read at a glance: 1, 2 or 5 times a power of ten of `unit`. */
function roundTicks(most, unit, count) {
  if (!(most > 0)) return [0];
  const least = most / unit / (count || 6);
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= least * (1 - 1e-9));
  const ticks = [];
  for (let i = 0; i * step * unit <= most * (1 + 1e-9); ++i) ticks.push(i * step * unit);
  return ticks;
}
function sizeUnit(most) {
  if (most >= 2 ** 30) return [2 ** 30, 'GiB'];
  return most >= 2 ** 20 ? [2 ** 20, 'MiB'] : [2 ** 10, 'KiB'];
}
function timeUnit(most) {
  if (most >= 1) return [1, 's'];
  return most >= 1e-3 ? [1e-3, 'ms'] : [1e-6, 'us'];
}
function tickText(value, unit) { return String(+(value / unit[0]).toPrecision(6)) + ' ' + unit[1]; }

function swatch(key) {
  return el('span', {class: 'swatch', style: {background: 'var(--' + key + ')'}, 'aria-hidden': 'true'});
}
/** A name that may go on in the next line behind its dots and lines. */
function breakable(name) {
  const parts = document.createDocumentFragment();
  for (const piece of name.split(/(?<=[._#/:,-])/)) parts.append(piece, document.createElement('wbr'));
  return parts;
}
function capital(text) { return text.charAt(0).toUpperCase() + text.slice(1); }

function tableCell(column, content) {
  const kind = column.number ? 'number' : column.prose ? 'prose' : 'name';
  return el('td', {class: kind}, kind === 'name' && typeof content === 'string' ? breakable(content) : content);
}
/** A table. Columns: {title, number, prose, cell(row) -> text or element, value(row)}; `sortable`: a click
 * on a title sorts. `shown`: so many rows at first, the rest behind a button. */
function dataTable(rows, columns, options) {
  const settings = Object.assign({caption: '', sortable: false, shown: Infinity, sum: null}, options);
  let sorted = {column: settings.sortedBy, down: true};
  let all = false;
  const body = el('tbody');
  const titles = columns.map((column, index) => {
    const title = settings.sortable
      ? el('button', {type: 'button', click: () => sortBy(index)}, column.title) : column.title;
    return el('th', {scope: 'col', class: column.number ? 'number' : null}, title);
  });
  const more = el('button', {type: 'button', class: 'on-screen', click: () => { all = true; fill(); }});
  const table = el('table', {}, el('caption', {class: 'hidden'}, settings.caption),
                   el('thead', {}, el('tr', {}, ...titles)), body);
  function sortBy(index) {
    sorted = {column: index, down: sorted.column === index ? !sorted.down : !!columns[index].number};
    fill();
  }
  function order() {
    if (sorted.column === undefined) return rows;
    const value = columns[sorted.column].value;
    const sign = sorted.down ? -1 : 1;
    return [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return sign * (typeof x === 'number' ? x - y : String(x).localeCompare(String(y)));
    });
  }
  function fill() {
    titles.forEach((title, index) => {
      if (!settings.sortable) return;
      title.setAttribute('aria-sort', sorted.column !== index ? 'none'
                                      : sorted.down ? 'descending' : 'ascending');
      title.firstChild.textContent = columns[index].title +
          (sorted.column === index ? (sorted.down ? ' \u2193' : ' \u2191') : '');
    });
    const shown = all ? order() : order().slice(0, settings.shown);
    body.replaceChildren(...shown.map((row) => el('tr', settings.rowAttributes ? settings.rowAttributes(row) : {},
      ...columns.map((column) => tableCell(column, column.cell(row))))));
    if (settings.sum) {
      body.append(el('tr', {class: 'sum'}, ...settings.sum.map(
        (text, index) => el('td', {class: columns[index].number ? 'number' : 'name'}, text))));
    }
    more.hidden = shown.length === rows.length;
    more.textContent = 'Show all ' + countText(rows.length);
  }
  fill();
  return el('div', {}, el('div', {class: 'scroll'}, table), more);
}
