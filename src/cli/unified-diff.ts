/** What was changed in a text, as `diff -u` shows it. `names`: of the text before and after. */
export async function unifiedDiff(
  names: readonly [string, string],
  before: string,
  after: string,
): Promise<string> {
  const { createTwoFilesPatch } = await import('diff');
  const patch = createTwoFilesPatch(...names, before, after, undefined, undefined, { context: 3 });
  // Without the line that stands for the head of a mail.
  return patch.replace(/^=+\n/, '');
}
