/** Compares the answer of the policies with the expectation of a case. */
import { isDeepStrictEqual } from 'node:util';
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, type Mapping, valueAt } from '../../base/yaml/tree.ts';
import type { Review } from '../../skypilot/policies/policy-chain.ts';
import { taskAsSent } from '../../skypilot/request/sent-request.ts';
import { SecretValues } from '../../skypilot/secrets.ts';
import { differences, expectsRejection, pathOf, plain } from '../cases/expected.ts';
import { jsonText, unifiedDiff } from '../common/output.ts';
import type { TaskExpectation } from '../test/any-case.ts';
import { isIdempotent, whyNotIdempotent } from './review-output.ts';

/** Differences as sentences and diffs. Empty if the answer is as expected. */
export interface Differences {
  readonly reasons: readonly string[];
  readonly diff: string;
}

/** `again`: the review of the result; `null` after a rejection. */
export async function differencesOf(
  expected: TaskExpectation,
  reviewed: Review,
  again: Review | null,
): Promise<Differences> {
  const { task, task_paths, skypilot_config, skypilot_config_paths, idempotent = true } = expected;
  const { outcomes, policy: by } = reviewed;
  const rules = outcomes.flatMap(({ audit, rules = [] }) =>
    rules.flatMap((one) => (audit || one.audit ? [] : [one.rule])),
  );
  const changing = outcomes.filter(({ changed, audit }) => changed && !audit);
  const changedBy = changing.map(({ policy }) => policy);
  const reasons = differences(expected, { ...reviewed, by, rules, changedBy });
  if (!reviewed.allowed || expectsRejection(expected)) {
    return { reasons, diff: '' };
  }
  const config = reviewed.skypilotConfig.toDict();
  if (again !== null && isIdempotent(again) !== idempotent) {
    reasons.push(idempotent ? whyNotIdempotent(again) : 'expected it not to be idempotent, but it is');
  }
  const secrets = SecretValues.of(reviewed.task, config, task, skypilot_config);
  let diff = '';
  const compare = async (name: string, wanted: Mapping, got: Mapping) => {
    if (!isDeepStrictEqual(plain(wanted), plain(got))) {
      reasons.push(`the ${name} differs`);
      diff += await diffOf(name, wanted, got, secrets);
    }
  };
  if (task !== undefined) {
    await compare('task', comparable(task), comparable(reviewed.task));
  }
  if (skypilot_config !== undefined) {
    await compare('skypilot_config', { active_workspace: 'default', ...skypilot_config }, config);
  }
  reasons.push(
    ...paths('task', task_paths, [reviewed.task, comparable(reviewed.task)], secrets),
    ...paths('skypilot_config', skypilot_config_paths, [config], secrets),
  );
  return { reasons, diff };
}

/** As read by SkyPilot, without the copy of the original: two spellings of one task are equal. */
function comparable(task: Mapping): Mapping {
  const { _user_specified_yaml: _, ...sent } = taskAsSent(YamlDocument.from(task)).task;
  return sent;
}

async function diffOf(name: string, expected: Mapping, got: Mapping, secrets: SecretValues): Promise<string> {
  const [from = '', to = ''] = [expected, got].map((one) =>
    YamlDocument.from(sorted(secrets.withoutSecrets(one))).toString(),
  );
  const diff = await unifiedDiff([`${name} (expected)`, `${name} (got)`], from, to);
  return from === to ? `${diff}(the values that differ are hidden)\n` : diff;
}

/** `got`: forms of the same value, of which one must be equal. `null` also means missing. */
function paths(
  name: string,
  expected: Mapping | undefined,
  got: readonly Mapping[],
  secrets: SecretValues,
): string[] {
  return Object.entries(expected ?? {}).flatMap(([path, value]) => {
    const values = got.map((one) => valueAt(one, pathOf(path)) ?? null);
    if (values.some((one) => isDeepStrictEqual(plain(one), plain(value)))) {
      return [];
    }
    // The last name of the path decides whether the value is secret.
    const last = String(
      pathOf(path)
        .filter((step) => typeof step === 'string')
        .at(-1),
    );
    const shown = (one: unknown) => jsonText((secrets.withoutSecrets({ [last]: one }) as Mapping)[last]);
    return [`${name}: ${path}: expected ${shown(value)}, got ${shown(values[0])}`];
  });
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  return isMapping(value)
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, one]) => [name, sorted(one)]),
      )
    : value;
}
