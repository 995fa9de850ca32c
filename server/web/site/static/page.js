// What the page does in a browser besides htmx: times in the reader's time zone, copying, details of
// points, zooming, brushing, saving pictures, the theme, and word of a lost connection. Every view also works without it.
'use strict';
(() => {
  // each calls a function for the elements in a part of the document, the part itself included.
  const each = (root, selector, f) => {
    if (root.matches?.(selector)) f(root);
    root.querySelectorAll(selector).forEach(f);
  };

  const localTime = (element) => {
    const at = new Date(element.dateTime);
    element.title = element.dateTime;
    element.textContent = at.toLocaleString(undefined, { year: at.getFullYear() == new Date().getFullYear() ? undefined : 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: element.closest('.trials') ? undefined : 'short' });
  };

  // What was opened stays open when it is drawn again.
  const opened = new Set();
  document.addEventListener('toggle', ({ target }) => { if (target.id) opened[target.open ? 'add' : 'delete'](target.id); }, true);

  const kept = new Map(); // boxes that were ticked or not, by id
  document.addEventListener('change', ({ target }) => {
    if (target.matches('[data-layer], [data-keep]')) kept.set(target.id, target.checked);
    const form = target.closest('form[data-auto]');
    if (form && (!target.checkValidity || target.checkValidity())) form.requestSubmit();
  });

  const ready = (root) => {
    each(root, 'details[id]', (element) => { element.open ||= opened.has(element.id); });
    each(root, 'time[datetime]', localTime);
    each(root, '[data-layer], [data-keep]', (element) => { if (kept.has(element.id)) element.checked = kept.get(element.id); });
    each(root, '[hidden][data-scripted]', (element) => { element.hidden = false; });
    // One stop of Tab for a chart: arrow keys go on from there.
    each(root, 'svg.chart', (chart) => [...chart.querySelectorAll('.mark')].forEach((mark, i) => { if (i) mark.setAttribute('tabindex', -1); }));
    each(root, '[data-axis]', (axis) => {
      axis.tabIndex = 0;
      axis.setAttribute('role', 'slider');
      axis.setAttribute('aria-orientation', 'vertical');
      keep(axis, 0, 1);
    });
    each(root, 'a[data-query]', (element) => { element.search = location.search; });
  };
  document.addEventListener('htmx:load', (event) => ready(event.detail.elt));
  if (document.readyState !== 'loading') ready(document.body);
  else document.addEventListener('DOMContentLoaded', () => ready(document.body));

  // What a point of a chart means is shown on a card beside it, for the pointer and the keyboard. The card
  // stays while the pointer is on it; Esc closes it.
  let card;
  const close = () => { card?.remove(); card = undefined; };
  const describe = ({ target }) => {
    const mark = target.closest?.('.mark');
    const figure = mark?.closest('figure');
    if (!figure || card?.mark === mark) return;
    close();
    card = document.createElement('div');
    card.className = 'card';
    card.mark = mark;
    card.setAttribute('aria-hidden', true); // the point itself says all of it
    const [title, ...lines] = (mark.dataset.card ?? mark.getAttribute('aria-label') ?? '').split('\n');
    card.appendChild(document.createElement('b')).textContent = title;
    const list = card.appendChild(document.createElement('dl'));
    lines.forEach((line) => line.split('\t').forEach((text, i) => { list.appendChild(document.createElement(i ? 'dd' : 'dt')).textContent = text; }));
    figure.append(card);
    // The card goes beside the point where it hides the fewest others: above or below, right or left of it.
    const at = mark.querySelector('.target').getBoundingClientRect(), box = figure.getBoundingClientRect();
    const places = [...mark.closest('svg').querySelectorAll('.mark .target')].map((target) => target.getBoundingClientRect());
    const [width, height] = [card.offsetWidth, card.offsetHeight];
    const keep = (v, most) => Math.max(0, Math.min(v, most));
    let best;
    for (const top of [at.top - box.top - height, at.bottom - box.top, at.top - box.top - 40]) {
      for (const left of [at.right - box.left, at.left - box.left - width, at.left - box.left - width / 2]) {
        const x = keep(left, box.width - width), y = keep(top, box.height - height);
        const hidden = places.filter((p) => p.right - box.left > x && p.left - box.left < x + width && p.bottom - box.top > y && p.top - box.top < y + height).length;
        if (!best || hidden < best.hidden) best = { x, y, hidden };
      }
    }
    card.style.setProperty('left', `${best.x}px`);
    card.style.setProperty('top', `${best.y}px`);
  };
  window.addEventListener('resize', close);
  document.addEventListener('focusin', (event) => (event.target.closest?.('.mark') ? describe(event) : close()));
  document.addEventListener('pointerover', (event) => {
    if (event.target.closest?.('.mark')) describe(event);
    else if (card && !event.target.closest?.('figure')) close();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { close(); document.querySelectorAll('.menu[open], .help[open]').forEach((menu) => { menu.open = false; menu.firstElementChild.focus(); }); }
    const mark = event.target.closest?.('.mark'), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!mark || !step) return;
    const marks = [...mark.closest('svg').querySelectorAll('.mark')].sort((a, b) => a.getBoundingClientRect().x - b.getBoundingClientRect().x);
    marks[marks.indexOf(mark) + step]?.focus();
    event.preventDefault();
  });
  // A click beside a menu closes it.
  document.addEventListener('click', ({ target }) => document.querySelectorAll('.menu[open], .help[open]').forEach((menu) => { if (!menu.contains(target)) menu.open = false; }));

  // Dragging over a chart in a figure with data-zoom enlarges that area: it fills the form with that id
  // and sends it. data-chart has the corners of the plane, and for each axis its scale and its ends.
  let drag;
  const to = [(v) => v, Math.log10, (v) => Math.log10(v / (1 - v))];
  const from = [(t) => t, (t) => 10 ** t, (t) => 1 / (1 + 10 ** -t)];
  const place = ({ matrix, plane: [x0, y0, x1, y1] }, { clientX, clientY }) => {
    const p = new DOMPoint(clientX, clientY).matrixTransform(matrix);
    return [Math.min(x1, Math.max(x0, p.x)), Math.min(y1, Math.max(y0, p.y))];
  };
  document.addEventListener('pointerdown', (event) => {
    const svg = event.target.closest?.('[data-zoom] svg[data-chart]');
    const form = document.getElementById(svg?.closest('[data-zoom]').dataset.zoom);
    if (!form?.elements.x_min || event.button || event.pointerType === 'touch' || event.target.closest('.mark')) return;
    drag = { svg, form, matrix: svg.getScreenCTM().inverse(), plane: svg.dataset.chart.split(' ').map(Number) };
    drag.start = place(drag, event);
    drag.box = svg.appendChild(document.createElementNS(svg.namespaceURI, 'rect'));
    drag.box.setAttribute('class', 'zoom');
  });
  document.addEventListener('pointermove', (event) => {
    if (!drag) return;
    const end = place(drag, event);
    ['x', 'y'].forEach((name, i) => drag.box.setAttribute(name, Math.min(drag.start[i], end[i])));
    ['width', 'height'].forEach((name, i) => drag.box.setAttribute(name, Math.abs(drag.start[i] - end[i])));
  });
  document.addEventListener('pointercancel', () => {
    drag?.box.remove();
    drag = undefined;
  });
  document.addEventListener('pointerup', (event) => {
    if (!drag) return;
    const { start, box, form, plane: [x0, y0, x1, y1, xScale, xMin, xMax, yScale, yMin, yMax] } = drag;
    const end = place(drag, event);
    box.remove();
    drag = undefined;
    if (Math.abs(start[0] - end[0]) < 8 || Math.abs(start[1] - end[1]) < 8) return;
    const set = (name, scale, low, high, share) => {
      const t = to[scale](low) + share * (to[scale](high) - to[scale](low));
      form.elements[name].value = Number(from[scale](t).toPrecision(5));
    };
    [['min', Math.min], ['max', Math.max]].forEach(([name, pick]) => {
      set(`x_${name}`, xScale, xMin, xMax, (pick(start[0], end[0]) - x0) / (x1 - x0));
      const other = pick === Math.min ? Math.max : Math.min;
      set(`y_${name}`, yScale, yMin, yMax, (y1 - other(start[1], end[1])) / (y1 - y0));
    });
    form.requestSubmit();
  });

  // A slider moves the number field that data-twin names from data-low to data-high on the scale of
  // data-scale; the field is what the form sends, and moves the slider.
  const twin = (event) => {
    const element = event.target;
    const slider = element.dataset?.twin ? element : element.id && document.querySelector(`[data-twin="${element.id}"]`);
    if (!slider) return;
    const number = document.getElementById(slider.dataset.twin);
    const scale = (v) => to[slider.dataset.scale](+v);
    const low = scale(slider.dataset.low), room = scale(slider.dataset.high) - low;
    if (slider === element) {
      number.value = Number(from[slider.dataset.scale](low + room * slider.value / 1000).toPrecision(4));
    } else slider.value = Math.round(1000 * (scale(number.value) - low) / room);
    slider.setAttribute('aria-valuetext', number.value);
  };
  document.addEventListener('input', twin, true);

  // An axis of parallel coordinates keeps the lines that cross it in a range, chosen by dragging along it or by
  // keys: data-values of a line are its places on the axes, between 0 and 1.
  function height(svg) {
    const [, y0, , y1, , , , , low, high] = svg.dataset.chart.split(' ').map(Number);
    return { place: (y) => low + (y1 - y) / (y1 - y0) * (high - low), y: (v) => y1 - (v - low) / (high - low) * (y1 - y0) };
  }
  function keep(axis, low, high) {
    const svg = axis.closest('svg'), n = axis.dataset.axis, { y } = height(svg);
    svg.brushes ??= new Map();
    svg.querySelector(`[data-box="${n}"]`)?.remove();
    if (high - low < 0.01 || low <= 0 && high >= 1) svg.brushes.delete(n);
    else {
      svg.brushes.set(n, [low, high]);
      const box = axis.parentNode.insertBefore(document.createElementNS(svg.namespaceURI, 'rect'), axis);
      box.dataset.box = n;
      Object.entries({ class: 'brush', x: axis.dataset.x - 8, width: 16, y: y(high), height: y(low) - y(high) }).forEach(([name, value]) => box.setAttribute(name, value));
    }
    const lines = [...svg.querySelectorAll('[data-values]')];
    const kept = lines.filter((line) => {
      const at = line.dataset.values.split(' ').map(Number);
      const out = [...svg.brushes].some(([i, [from, to]]) => !(at[i] >= from && at[i] <= to));
      line.classList.toggle('dim', out);
      return !out;
    });
    svg.querySelectorAll('[data-axis]').forEach((other) => {
      const [from, to] = svg.brushes.get(other.dataset.axis) ?? [0, 1];
      other.setAttribute('aria-valuenow', Math.round(100 * from));
      other.setAttribute('aria-valuetext', `from ${Math.round(100 * from)} to ${Math.round(100 * to)} % of the axis: ${kept.length} of ${lines.length} lines kept`);
    });
  }
  let brush;
  document.addEventListener('pointerdown', (event) => {
    const axis = event.target.closest?.('[data-axis]');
    if (!axis) return;
    const svg = axis.closest('svg'), matrix = svg.getScreenCTM().inverse(), { place } = height(svg);
    const at = (e) => Math.max(0, Math.min(1, place(new DOMPoint(e.clientX, e.clientY).matrixTransform(matrix).y)));
    brush = { axis, at, start: at(event) };
    axis.setPointerCapture?.(event.pointerId);
    event.preventDefault();
  });
  const extend = (event) => { if (brush) keep(brush.axis, ...[brush.start, brush.at(event)].sort((a, b) => a - b)); };
  document.addEventListener('pointermove', extend);
  document.addEventListener('pointerup', (event) => {
    extend(event);
    brush = undefined;
  });
  document.addEventListener('pointercancel', () => { brush = undefined; });
  document.addEventListener('keydown', (event) => {
    const axis = event.target.closest?.('[data-axis]');
    const step = { ArrowUp: 0.05, ArrowRight: 0.05, ArrowDown: -0.05, ArrowLeft: -0.05, Delete: 1 }[event.key];
    if (!axis || !step) return;
    let [low, high] = axis.closest('svg').brushes?.get(axis.dataset.axis) ?? [0, 1];
    if (event.key === 'Delete') [low, high] = [0, 1];
    else if (event.shiftKey) high = Math.max(low + 0.05, Math.min(1, high + step));
    else low = Math.min(high - 0.05, Math.max(0, low + step));
    keep(axis, low, high);
    event.preventDefault();
  });

  // <button data-png="PATH"> saves the picture there as PNG, twice as large as on the screen.
  document.addEventListener('click', (event) => {
    const button = event.target.closest?.('[data-png]');
    if (!button) return;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      const link = document.createElement('a');
      link.href = canvas.toDataURL('image/png');
      link.download = `${document.title.split(' ')[2]}-front.png`;
      link.click();
      say('Saved as PNG');
    };
    image.onerror = () => say('The picture cannot be drawn');
    image.src = button.dataset.png + location.search;
  });

  // say shows a word for a moment.
  const say = (text) => {
    const toast = document.body.appendChild(document.createElement('div'));
    toast.className = 'toast';
    toast.setAttribute('role', 'status');
    toast.textContent = text;
    setTimeout(() => toast.remove(), 4000);
  };

  // The theme follows the system until the reader chooses one.
  const theme = document.getElementById('theme'), root = document.documentElement;
  const themes = ['', 'light', 'dark'];
  const name = () => { theme.textContent = `Theme: ${root.dataset.theme || 'system'}`; };
  if (theme) {
    theme.hidden = false;
    name();
    theme.addEventListener('click', () => {
      root.dataset.theme = themes[(themes.indexOf(root.dataset.theme || '') + 1) % 3];
      try { localStorage.setItem('theme', root.dataset.theme); } catch { /* it lasts until the page is left */ }
      name();
    });
  }

  // <button data-copy="ID"> copies the text of an element.
  document.addEventListener('click', async (event) => {
    const button = event.target.closest?.('[data-copy]');
    if (!button) return;
    const text = document.getElementById(button.dataset.copy).textContent;
    let word = 'Copied';
    try { await navigator.clipboard.writeText(text); } catch { word = 'Select the text and copy it'; }
    const before = button.dataset.label ??= button.textContent;
    button.textContent = word;
    setTimeout(() => { button.textContent = before; }, 2000);
  });

  const connection = document.getElementById('connection');
  document.addEventListener('htmx:sseError', () => { connection.textContent = 'The server does not answer; trying again.'; });
  document.addEventListener('htmx:sseOpen', () => { connection.textContent = ''; });
})();
