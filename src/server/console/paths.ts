/** Addresses within the console. */

/** A path with parameters; those that are empty are left out. */
export function pathWith(
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
  fragment = '',
): string {
  const given = Object.entries(parameters).filter((one): one is [string, string] => !!one[1]);
  const query = String(new URLSearchParams(given));
  return `${path}${query === '' ? '' : `?${query}`}${fragment === '' ? '' : `#${fragment}`}`;
}

/** Of a project or another thing with an id of any characters. */
export function projectPath(projectId: string): string {
  return `/projects/${encodeURIComponent(projectId)}`;
}
