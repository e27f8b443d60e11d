/** What a part of a rule lists; `undefined` = any, as where it is absent or empty. */
export type Listed = readonly string[] | undefined;

export function listedOf(values: readonly string[] | undefined): Listed {
  return values === undefined || values.length === 0 ? undefined : values;
}
