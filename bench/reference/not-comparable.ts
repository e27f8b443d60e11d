/** Why another commit's package could not be measured, from its process's output, without local paths. */
export function whyNotComparable(folder: string, thrown: unknown): string {
  const printed =
    thrown instanceof Error ? `${thrown.message}\n${String(thrown.cause ?? '')}` : String(thrown);
  const missing = /Cannot find (module|package) '([^']+)'/.exec(printed);
  if (missing?.[1] !== undefined && missing[2] !== undefined) {
    return `no such ${missing[1]}: ${withoutFolder(folder, missing[2])}`;
  }
  const unexported = /module '([^']+)' does not provide an export named '([^']+)'/.exec(printed);
  if (unexported !== null) {
    return `no such export: ${unexported[2]} of ${unexported[1]?.replace(/^(\.\.?\/)+/, '')}`;
  }
  return 'it failed there';
}

function withoutFolder(folder: string, path: string): string {
  const at = path.indexOf(`${folder}/`);
  return at < 0 ? path : path.slice(at + folder.length + 1).replace(/^dist\//, '');
}
