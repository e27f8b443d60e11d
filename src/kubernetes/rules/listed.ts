/** The items of a rule; `undefined` = any, for a missing or empty list. */
export type Listed = readonly string[] | undefined;

export function listedOf(values: readonly string[] | undefined): Listed {
  return values === undefined || values.length === 0 ? undefined : values;
}
