/** Begins on every page, once its HTML is there. What few pages need is loaded by those alone. */

if (document.querySelector('[data-chart]') !== null) {
  const { drawCharts } = await import('./chart.js');
  drawCharts(document);
}
if (document.querySelector('[data-file-into]') !== null) {
  const { readFilesIntoFields } = await import('./files.js');
  readFilesIntoFields();
}
if (document.querySelector('.timeline') !== null) {
  const { moveTimelines } = await import('./timeline.js');
  moveTimelines();
}
if (document.querySelector('time, input[type=datetime-local]') !== null) {
  const { showLocalTimes, takeLocalTimes } = await import('./times.js');
  showLocalTimes();
  takeLocalTimes();
}
if (document.querySelector('[data-live]') !== null) {
  const { keepUpToDate } = await import('./live.js');
  keepUpToDate();
}

export {};
