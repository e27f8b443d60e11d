import { isMapping, type Path } from '../yaml/tree.ts';

/** The path of a key of this name, wherever it is in a value of JSON. Schemas drop `__proto__` without a word, and a rule with it. */
export function pathTo(name: string, value: unknown): Path | undefined {
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : isMapping(value)
      ? Object.entries(value)
      : [];
  for (const [step, below] of entries) {
    const path = step === name ? [] : pathTo(name, below);
    if (path !== undefined) {
      return [step, ...path];
    }
  }
  return undefined;
}
