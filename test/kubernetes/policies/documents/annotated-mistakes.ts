/**
 * YAML in which each mistake is written where it stands: `#!` below its line, `#?` where it is a warning. `@Kind {name: a}` stands for
 * the first lines of an object.
 */
import { expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import { readPolicyDocuments } from '../../../../src/kubernetes/policies/documents/documents.ts';
import { temporaryFile } from '../../../support/files.ts';

const POLICY = 'kind: SchedulingPolicy\nspec:\n';
const RBAC = 'apiVersion: rbac.authorization.k8s.io/v1';

/** One test for each text that begins with `== its name`; with `=s its name`, it is the spec of a policy. */
export function testMistakes(cases: string): void {
  const texts = [...cases.matchAll(/^=([=s]) (.*)\n((?:(?!=[=s] ).*\n)*)/gm)];
  it.each(texts.map(([, mark, name = '', text = '']) => [name, mark === 's' ? `${POLICY}${text}` : text]))(
    '%s',
    (_, written) => {
      const text = written.replace(/^@(\w+) (.*)$/gm, (_all, kind: string, metadata: string) =>
        kind === 'SchedulingPolicy'
          ? `kind: ${kind}\nmetadata: ${metadata}`
          : `${RBAC}\nkind: ${kind}\nmetadata: ${metadata}`,
      );
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
