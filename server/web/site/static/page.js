// What the page does in a browser besides htmx: times in the reader's time zone, copying, details of
// points, series drawn by uPlot, and word of a lost connection. Every view also works without it.
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
    element.textContent = at.toLocaleString();
  };

  // A series is <div class="series" data-series='{"x": [...], "lines": [{"label", "y"}], ...}'>. Its table
  // twin, which follows it, is for everybody else.
  const drawn = new Set();
  // Parts that were swapped out take their series with them.
  const tidy = () => drawn.forEach((d) => {
    if (!d.element.isConnected) { d.plot.destroy(); drawn.delete(d); }
  });
  const series = (element) => {
    tidy();
    if (element.firstElementChild) return;
    const data = JSON.parse(element.dataset.series);
    const style = getComputedStyle(document.documentElement);
    const colours = ['--accent', '--second', '--third', '--fourth'].map((name) => style.getPropertyValue(name));
    const dashes = [[], [7, 4], [2, 4], [10, 3, 2, 3]];
    const axis = { stroke: style.getPropertyValue('--quiet'), grid: { stroke: style.getPropertyValue('--edge'), width: 0.5 } };
    const plot = new uPlot({
      width: element.clientWidth, height: element.clientHeight - 60, title: data.title,
      scales: { x: { time: false, distr: data.logX ? 3 : 1 }, y: { distr: data.logY ? 3 : 1 } },
      axes: [{ ...axis, label: data.xLabel }, { ...axis, label: data.yLabel, size: 70 }],
      series: [{ label: data.xLabel }, ...data.lines.map((line, i) => ({
        label: line.label, stroke: colours[i % 4], dash: dashes[(i + (i >> 2)) % 4], width: 2, spanGaps: true,
        paths: line.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
    }, [data.x, ...data.lines.map((line) => line.y)], element);
    drawn.add({ element, plot });
  };
  addEventListener('resize', () => {
    tidy();
    drawn.forEach(({ element, plot }) => plot.setSize({ width: element.clientWidth, height: element.clientHeight - 60 }));
  });

  // What was opened stays open when it is drawn again.
  const opened = new Set();
  document.addEventListener('toggle', ({ target }) => { if (target.id) opened[target.open ? 'add' : 'delete'](target.id); }, true);

  const ready = (root) => {
    each(root, 'details[id]', (element) => { element.open ||= opened.has(element.id); });
    each(root, 'time[datetime]', localTime);
    each(root, '.series[data-series]', series);
  };
  document.addEventListener('htmx:load', (event) => ready(event.detail.elt));
  if (document.readyState !== 'loading') ready(document.body);
  else document.addEventListener('DOMContentLoaded', () => ready(document.body));

  // What a point of a chart means is shown in the .detail after the chart, for the pointer and the keyboard.
  const describe = (event) => {
    const mark = event.target.closest?.('.mark');
    const detail = mark?.closest('figure')?.querySelector('.detail');
    if (detail) detail.textContent = mark.getAttribute('aria-label');
  };
  document.addEventListener('focusin', describe);
  document.addEventListener('pointerover', describe);

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

  // A slider moves the number field that data-twin names from data-low to data-high; the field is what
  // the form sends, and moves the slider.
  const twin = (event) => {
    const element = event.target;
    const slider = element.dataset?.twin ? element : element.id && document.querySelector(`[data-twin="${element.id}"]`);
    if (!slider) return;
    const number = document.getElementById(slider.dataset.twin);
    const scale = (v) => 'log' in slider.dataset ? Math.log(v) : +v;
    const low = scale(slider.dataset.low), room = scale(slider.dataset.high) - low;
    if (slider === element) {
      const v = low + room * slider.value / 1000;
      number.value = Number(('log' in slider.dataset ? Math.exp(v) : v).toPrecision(4));
    } else slider.value = Math.round(1000 * (scale(number.value) - low) / room);
    slider.setAttribute('aria-valuetext', number.value);
  };
  document.addEventListener('input', twin, true);

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
