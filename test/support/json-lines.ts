/** The values of a text that has one on each line, as JSON. */
export function jsonLines(text: string) {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}
