/** The rules that are included as examples: their cases hold, and see every comparison and every negation of the rules. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import { readCases } from '../../src/cli/cases/case-files.ts';
import { objectsIn, reviewObject } from '../../src/cli/scheduling-policy/objects.ts';
import { type AnyCase, schemaOfCase } from '../../src/cli/test/any-case.ts';
import { rulesOfFailure } from '../../src/filter/verdict.ts';
import { PodAdmission } from '../../src/kubernetes/admission/pod-admission.ts';
import { PodRules } from '../../src/kubernetes/admission/pod-rules.ts';
import { parsePod } from '../../src/kubernetes/policies/pod.ts';
import { type Environments, leaseEnvironment, readRules } from '../../src/rules/index.ts';
import { chainOf } from '../policies/helpers.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { mutationsOf } from '../support/mutated-expression.ts';
import { namedIn, refusingRules } from '../support/rule-cases.ts';

type Written<Kind extends AnyCase['kind']> = Extract<AnyCase, { kind: Kind }>['written'];
/** The rules of a file that refuse a case; `null` = they break. */
type Refusals = (rulesFile: string, cases: readonly AnyCase[]) => Promise<(readonly string[] | null)[]>;

const FOLDER = projectFile('etc/rules');
const environments: Environments = {
  create: leaseEnvironment('create'),
  update: leaseEnvironment('update'),
};

/** The cases of a kind; without those that are about something else than rules. */
function casesIn(name: string): AnyCase[] {
  return readCases(FOLDER, `${FOLDER}/cases/${name}.yaml`, schemaOfCase).flatMap((read) => {
    if (!('case' in read)) {
      throw new Error(read.problems.map(({ message }) => message).join(' '));
    }
    return namedIn(read.case.written.expect) === undefined ? [] : [read.case];
  });
}

const byLeases: Refusals = async (path, cases) => {
  const { rules } = readRules(path, environments);
  return cases.map(({ written }) => refusingRules(rules, written as Written<'lease'>));
};

const byPods: Refusals = (path, cases) => {
  const admission = new PodAdmission(undefined, { rules: PodRules.read(path) });
  const judges = { source: undefined, admission, settings: {} };
  return Promise.all(
    cases.map(async ({ written }) => {
      const {
        pod,
        namespace = 'default',
        service_account: account,
        user,
        current,
      } = written as Written<'pod'>;
      const documents = objectsIn(YamlDocument.from({ apiVersion: 'v1', kind: 'Pod', ...pod }));
      const as = { account, user, current: current && parsePod(current) };
      try {
        const [object] = documents.objects.map((one) => reviewObject(judges, one, namespace, as));
        return ((await object)?.decided.rules ?? []).map(({ rule }) => rule);
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
    cases.map(async ({ written }) => {
      const task = JSON.stringify((written as Written<'task'>).task);
      const { failed, outcomes } = await ask({ name: 'launch', task });
      return failed ? null : (outcomes[0]?.rules ?? []).map(({ rule }) => rule);
    }),
  );
};

const LEASES = ['dates', 'gpus', 'lengths', 'shares', 'sizes'];
const ofLeases = LEASES.flatMap(casesIn);

describe.each<[string, Refusals, readonly AnyCase[]]>([
  ...LEASES.map((name): [string, Refusals, readonly AnyCase[]] => [name, byLeases, ofLeases]),
  ['pods', byPods, casesIn('pods')],
  ['tasks', byTasks, casesIn('tasks')],
])('the rules of etc/rules/%s.yaml', (name, refusals, cases) => {
  const file = `${FOLDER}/${name}.yaml`;
  const { rules } = YamlDocument.parse(readFileSync(file, 'utf8')).value as {
    rules: readonly Record<string, unknown>[];
  };

  it('refuse a case if it names them, and otherwise allow it', async () => {
    const own = rules.map((rule) => String(rule.name));
    const expected = cases.map(({ written }) =>
      (namedIn(written.expect) ?? []).filter((one) => own.includes(one)),
    );
    const found = await refusals(file, cases);
    expect(found.map((one) => one && [...one].sort())).toEqual(expected.map((one) => one.sort()));
  });

  it('are each held by a case to every operator', async () => {
    const survivors: string[] = [];
    for (const rule of rules) {
      const refusalsWith = (changes: object) =>
        refusals(temporaryFile('rules.yaml', JSON.stringify({ rules: [{ ...rule, ...changes }] })), cases);
      const before = JSON.stringify(await refusalsWith({}));
      for (const part of ['match', 'allow'] as const) {
        for (const { text, what } of mutationsOf(String(rule[part] ?? ''))) {
          if (JSON.stringify(await refusalsWith({ [part]: text })) === before) {
            survivors.push(`${String(rule.name)}: ${part}: ${what}`);
          }
        }
      }
    }
    expect(survivors).toEqual([]);
  });
});
