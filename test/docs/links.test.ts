import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchors, isProjectPath, PAGES, pageNamed, relativeLinks } from './markdown.ts';

describe.each(PAGES)('$name', (page) => {
  it('links to nothing that is not there', () => {
    const broken = relativeLinks(page).filter(({ target }) => {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page.name : join(dirname(page.name), path);
      return !isProjectPath(file) || (anchor !== undefined && !anchors(pageNamed(file)).includes(anchor));
    });
    expect(broken).toEqual([]);
  });

  // Nobody links into the diary of releases, where each one has the same headings.
  it.skipIf(page.name === 'CHANGELOG.md')('has one heading of each name', () => {
    const all = anchors(page);
    expect(all.filter((anchor, index) => all.indexOf(anchor) !== index)).toEqual([]);
  });
});

it('README.md and docs/README.md lead to every page', () => {
  const targets = ['README.md', 'docs/README.md'].flatMap((name) =>
    relativeLinks(pageNamed(name)).map(({ target }) => join(dirname(name), target)),
  );
  expect(
    PAGES.map(({ name }) => name).filter((name) => name !== 'README.md' && !targets.includes(name)),
  ).toEqual([]);
});
