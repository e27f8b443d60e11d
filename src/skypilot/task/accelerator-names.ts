/**
 * What SkyPilot takes the name of an accelerator for. It completes a part of a name, in any case, and reads it as a regular
 * expression: `H20` may become `H200`. Policies see the name before that. Source: SkyPilot 0.13, `canonicalize_accelerator_name`.
 */

/** Of SkyPilot's catalogs. One of these names is never completed to another. */
const KNOWN =
  `a10 a10g a100 a100-80gb a100-80gb-sxm a30 a40 a6000 b200 gb200 gb300 gh200 h100 h100-mega-80gb h100-nvl h100-sxm h200
h200-sxm inferentia inferentia2 k80 l4 l40 l40s m60 mi300x p100 p4 rtx3090 rtx4090 rtx5090 rtx6000 rtx6000-ada rtxa4000 rtxa5000
rtxa6000 rtxpro6000 t4 t4g trainium trainium2 v100 v100-32gb`.split(/\s+/);
const EXACT: ReadonlySet<string> = new Set(KNOWN);

/** A name that is no pattern but for its dots. */
const PLAIN = /^[a-z0-9][\w. -]{0,99}$/i;

/** Whether a name stands for itself or for names that contain it, and is no other regular expression. */
export function isPlainAccelerator(name: string): boolean {
  return PLAIN.test(name);
}

/**
 * The names, in lower case, that SkyPilot may take a plain name for: its own first, then those of its catalogs and of `listed` that
 * contain it.
 */
export function readingsOfAccelerator(name: string, listed: readonly string[]): readonly string[] {
  const own = name.trim().toLowerCase();
  if (EXACT.has(own) || own.startsWith('tpu-') || own === '') {
    return [own];
  }
  const contains = containing(own);
  const others = [...KNOWN, ...listed.map((one) => one.toLowerCase())].filter(contains);
  return [...new Set([own, ...others])];
}

/** A dot stands for any character. */
function containing(part: string): (name: string) => boolean {
  const [first = '', ...rest] = part.split('.');
  if (rest.length === 0) {
    return (name) => name.includes(part);
  }
  const pattern = new RegExp(
    [first, ...rest].map((text) => text.replaceAll(/[^a-z0-9]/g, String.raw`\$&`)).join('.'),
  );
  return (name) => pattern.test(name);
}
