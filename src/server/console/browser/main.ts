/** Runs on every page, after its HTML. Rarely needed scripts are loaded on demand. */

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
// "Back" restores inputs that differ from their defaults: restore the ETag that the user saw then, too.
for (const etag of document.querySelectorAll<HTMLInputElement>('input[name=etag]')) {
  const { value } = etag;
  etag.value = value;
  etag.defaultValue = '';
}
if (document.querySelector('[data-live]') !== null) {
  const { LiveParts } = await import('./live.js');
  new LiveParts().start();
}

export {};
