/** What PyYAML has written, and read: recorded, so that every change is held against it without a Python. */
import { expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { corpus } from '../../base/yaml/scripts.ts';
import { chainOf, inside, received } from '../../support/skypilot.ts';

it('a script of the corpus is returned unchanged', async () => {
  const { review } = await chainOf({ NodePolicy: 'task.num_nodes = 2;' });
  expect(corpus().length).toBeGreaterThan(100);
  for (const { text, source, changed, written } of corpus()) {
    const { task, answer } = await review(received({ task: source }));
    expect({ source, run: task.run }).toEqual({ source, run: text });
    expect({ source, task: inside(answer ?? '').task }).toEqual({ source, task: changed });
    expect({ text, written: YamlDocument.from({ run: text }).toString() }).toEqual({ text, written });
  }
});
