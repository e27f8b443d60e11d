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
// A browser that goes back fills in what differs from its default: the version, too, must be the one that was seen then.
for (const etag of document.querySelectorAll<HTMLInputElement>('input[name=etag]')) {
  const { value } = etag;
  etag.value = value;
  etag.defaultValue = '';
}
if (document.querySelector('[data-live]') !== null) {
  const { keepUpToDate } = await import('./live.js');
  keepUpToDate();
}

export {};
