/** The rules for pods and tasks that are included as examples: their cases hold, and see every comparison and every negation of the rules. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import { readCases } from '../../src/cli/cases/case-files.ts';
import { objectsIn, reviewObject } from '../../src/cli/scheduling-policy/objects.ts';
import { schemaOfCase } from '../../src/cli/test/any-case.ts';
import { rulesOfFailure } from '../../src/filter/verdict.ts';
import { PodAdmission } from '../../src/kubernetes/admission/pod-admission.ts';
import { PodRules } from '../../src/kubernetes/admission/pod-rules.ts';
import { parsePod } from '../../src/kubernetes/policies/pod.ts';
import { chainOf } from '../policies/helpers.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { mutationsOf } from '../support/mutated-expression.ts';
import { namedIn } from '../support/rule-cases.ts';

type Case = ReturnType<typeof casesOf>[number];
/** The rules that refuse each case; `null` = they break. */
type Refusals = (rulesFile: string, cases: readonly Case[]) => Promise<(readonly string[] | null)[]>;

function casesOf(name: string) {
  const folder = projectFile('etc/rules');
  return readCases(folder, projectFile(`etc/rules/cases/${name}.yaml`), schemaOfCase).map((read) => {
    if (!('case' in read)) {
      throw new Error(read.problems.map(({ message }) => message).join(' '));
    }
    return { id: read.id, ...read.case };
  });
}

const byPods: Refusals = (path, cases) => {
  const admission = new PodAdmission(undefined, { rules: PodRules.read(path) });
  return Promise.all(
    cases.map(async (one) => {
      if (one.kind !== 'pod') {
        throw new Error(`${one.id}: expected a pod`);
      }
      const { pod, namespace = 'default', service_account: account, user, current } = one.written;
      const [object] = objectsIn(YamlDocument.from({ apiVersion: 'v1', kind: 'Pod', ...pod })).objects;
      if (object === undefined) {
        throw new Error(`${one.id}: expected a pod`);
      }
      const judges = { source: undefined, admission, defaultPriorityClass: undefined };
      const as = { account, user, current: current && parsePod(current) };
      try {
        const { decided } = await reviewObject(judges, object, namespace, as);
        return (decided.rules ?? []).map(({ rule }) => rule);
      } catch (thrown) {
        expect(rulesOfFailure(thrown), String(thrown)).toBeDefined();
        return null;
      }
    }),
  );
};

const byTasks: Refusals = async (rules_path, cases) => {
  const { ask } = await chainOf(['RulesPolicy'], { rules_path });
  return Promise.all(
    cases.map(async (one) => {
      if (one.kind !== 'task') {
        throw new Error(`${one.id}: expected a task`);
      }
      const { failed, outcomes } = await ask({ name: 'launch', task: JSON.stringify(one.written.task) });
      return failed ? null : (outcomes[0]?.rules ?? []).map(({ rule }) => rule);
    }),
  );
};

describe.each<[string, Refusals]>([
  ['pods', byPods],
  ['tasks', byTasks],
])('the rules of etc/rules/%s.yaml', (name, refusals) => {
  const file = projectFile(`etc/rules/${name}.yaml`);
  const cases = casesOf(name);
  const expected = cases.map(({ written }) => namedIn(written.expect));

  it('refuse a case if it names them, and otherwise allow it', async () => {
    expect(await refusals(file, cases)).toEqual(expected);
  });

  it('are each held by a case to every operator', async () => {
    const { rules } = YamlDocument.parse(readFileSync(file, 'utf8')).value as {
      rules: readonly Record<string, unknown>[];
    };
    const survivors: string[] = [];
    for (const rule of rules) {
      for (const part of ['match', 'allow'] as const) {
        for (const { text, what } of mutationsOf(String(rule[part] ?? ''))) {
          const path = temporaryFile('rules.yaml', JSON.stringify({ rules: [{ ...rule, [part]: text }] }));
          const now = await refusals(path, cases);
          const isSeen = now.some((one, index) => JSON.stringify(one) !== JSON.stringify(expected[index]));
          if (!isSeen) {
            survivors.push(`${String(rule.name)}: ${part}: ${what}`);
          }
        }
      }
    }
    expect(survivors).toEqual([]);
  });
});
