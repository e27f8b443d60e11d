/** What was changed in a text, as `diff -u` shows it. `names`: of the text before and after. */
export async function unifiedDiff(
  names: readonly [string, string],
  before: string,
  after: string,
): Promise<string> {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff');
  const options = { context: 3, headerOptions: FILE_HEADERS_ONLY };
  return createTwoFilesPatch(...names, before, after, undefined, undefined, options);
}
