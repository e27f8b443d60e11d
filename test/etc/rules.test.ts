/** The rules that are included as examples: their cases hold, and see every comparison and every negation of the rules. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import { caseFolder } from '../../src/cli/test/suites.ts';
import { type Environments, leaseEnvironment, readRules } from '../../src/rules/index.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { mutationsOf } from '../support/mutated-expression.ts';
import { answersOf, ruleCases } from '../support/rule-cases.ts';

const FILES = ['dates', 'gpus', 'lengths', 'shares', 'sizes'];
const folder = projectFile('etc/rules');
const environments: Environments = {
  create: leaseEnvironment('create'),
  update: leaseEnvironment('update'),
};
const cases = ruleCases(folder, caseFolder(folder, 'named').files);
const { rules, problems } = readRules(folder, environments);
const judged = cases.map((one) => ({ ...one, answers: answersOf(rules[one.parts.operation], one.parts) }));

/** The window of a maintenance has an end: that it is over by now is no mistake. */
const mistakesIn = (found: typeof problems) =>
  found.filter(({ message }) => !message.includes('it has ended at'));

describe('the rules of etc/rules', () => {
  it('have no mistake', () => {
    expect(mistakesIn(problems)).toEqual([]);
    expect(new Set([...rules.create, ...rules.update].map(({ name }) => name)).size).toBe(13);
  });

  it('refuse a case if it names them, and otherwise allow it', () => {
    const different = judged.flatMap(({ id, named, answers }) => {
      const refusing = [...answers].flatMap(([name, said]) =>
        said === 'allowed' || said === 'skipped' ? [] : [name],
      );
      return named === undefined || refusing.sort().join() === [...named].sort().join()
        ? []
        : [`${id}: ${refusing.join(', ')}`];
    });
    expect(different).toEqual([]);
    expect(judged.length).toBeGreaterThan(100);
  });

  it('are each seen to allow and to refuse', () => {
    for (const { name } of [...rules.create, ...rules.update]) {
      const seen = new Set(judged.map(({ answers }) => answers.get(name)));
      expect([name, seen.has('allowed'), seen.has('refused')]).toEqual([name, true, true]);
    }
  });

  it.each(FILES)('of %s.yaml are each held by a case to every operator', (file) => {
    const text = readFileSync(projectFile(`etc/rules/${file}.yaml`), 'utf8');
    const { rules: written } = YamlDocument.parse(text).value as {
      rules: readonly Record<string, unknown>[];
    };
    const survivors: string[] = [];
    for (const rule of written) {
      for (const part of ['match', 'allow'] as const) {
        for (const { text: mutated, what } of mutationsOf(String(rule[part] ?? ''))) {
          const path = temporaryFile('rules.yaml', JSON.stringify({ rules: [{ ...rule, [part]: mutated }] }));
          const broken = readRules(path, environments);
          expect([what, mistakesIn(broken.problems)]).toEqual([what, []]);
          const name = String(rule.name);
          const isSeen = judged.some(
            ({ named, parts, answers }) =>
              named !== undefined &&
              refuses(answersOf(broken.rules[parts.operation], parts).get(name)) !==
                refuses(answers.get(name)),
          );
          if (!isSeen) {
            survivors.push(`${name}: ${part}: ${what}`);
          }
        }
      }
    }
    expect(survivors).toEqual([]);
  });
});

function refuses(said: string | undefined): boolean {
  return said === 'refused' || said === 'failed';
}
