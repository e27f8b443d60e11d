/** An API server limits how many requests of one client it handles at once. */
const AT_ONCE = 8;

/** Does some work for each item, a few at a time. Rejects with the first error. */
export async function sideBySide<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = items.entries();
  let hasFailed = false;
  const worker = async () => {
    for (const [index, item] of left) {
      if (hasFailed) {
        return;
      }
      try {
        results[index] = await work(item);
      } catch (thrown) {
        hasFailed = true;
        throw thrown;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  return results;
}
