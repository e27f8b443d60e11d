/** YAML in which each mistake is written where it stands: `#!` below its line, `#?` where it is a warning. */
import { expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import { readPolicyDocuments } from '../../../../src/kubernetes/policies/documents/documents.ts';
import { temporaryFile } from '../../../support/files.ts';

/** One test for each text that begins with `== its name`. */
export function testMistakes(cases: string): void {
  const texts = cases.split(/^== /m).slice(1);
  it.each(texts.map((text) => [text.slice(0, text.indexOf('\n')), text.slice(text.indexOf('\n') + 1)]))(
    '%s',
    (_, text) => {
      const file = temporaryFile('p.yaml', text);
      const { problems } = readPolicyDocuments([file]);
      const found = problems.map((problem) => {
        const mark = problem.severity === 'error' ? '#!' : '#?';
        return `${mark} ${formatProblem(problem).replaceAll(file, 'p.yaml')}`;
      });
      expect(found.sort()).toEqual(writtenIn(text).sort());
    },
  );
}

function writtenIn(text: string): string[] {
  let line = 0;
  return text.split('\n').flatMap((content, index) => {
    const [, mark, message] = /^(#[!?]) (.*)$/.exec(content) ?? [];
    if (mark === undefined) {
      line = index + 1;
      return [];
    }
    return [`${mark} p.yaml:${line}: ${message}`];
  });
}
