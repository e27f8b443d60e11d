/** Begins on every page, once its HTML is there. What few pages need is loaded by those alone. */

if (document.querySelector('[data-chart]') !== null) {
  const { drawCharts } = await import('./chart.js');
  drawCharts(document);
}
if (document.querySelector('[data-live]') !== null) {
  const { keepUpToDate } = await import('./live.js');
  keepUpToDate();
}

export {};
