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

const MAX_LENGTH = 2000;
/** Any origin will do: it must still be the same when the path has been read. */
const HERE = 'http://here.invalid';

/** The path with its query and fragment, or `/` for anything that could lead elsewhere. */
export function returnPath(asked: string | null | undefined): string {
  // Browsers read a backslash as a slash, and drop controls: `/\t/elsewhere` is `//elsewhere` to them.
  if (!asked || asked.length > MAX_LENGTH || !/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(asked)) {
    return '/';
  }
  const url = URL.canParse(asked, HERE) ? new URL(asked, HERE) : undefined;
  // The login leads to itself otherwise. The parser may have made `//elsewhere` of `/.//elsewhere`.
  return url?.origin === HERE && !/^\/(\/|log(in|out)(\/|$))/.test(url.pathname)
    ? url.pathname + url.search + url.hash
    : '/';
}
