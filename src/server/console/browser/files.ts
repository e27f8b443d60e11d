/** Reads a chosen file into a text area, without an upload. Without script, users paste the text. */

/** In bytes: the maximum form size of the service. */
const LONGEST = 2_000_000;

export function readFilesIntoFields(): void {
  for (const place of document.querySelectorAll<HTMLElement>('[data-file-into]')) {
    const area = document.getElementById(place.dataset.fileInto ?? '');
    if (!(area instanceof HTMLTextAreaElement)) {
      continue;
    }
    const label = document.createElement('label');
    const input = document.createElement('input');
    const said = document.createElement('p');
    label.htmlFor = 'file';
    label.textContent = 'Or choose a file';
    input.type = 'file';
    input.id = 'file';
    input.accept = '.csv,text/csv';
    said.setAttribute('role', 'status');
    input.addEventListener('change', async () => {
      const [file] = input.files ?? [];
      if (file === undefined) {
        return;
      }
      if (file.size > LONGEST) {
        said.textContent = `Expected a file of at most ${LONGEST} bytes, got ${file.size}.`;
        return;
      }
      area.value = await file.text();
      said.textContent = `Read ${file.name}: continue with the preview.`;
    });
    place.replaceChildren(label, input, said);
  }
}
