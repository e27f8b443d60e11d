/** Reviewers and their output: the answer of each policy, and the changes as a diff without secrets. */
import type { Places } from '../../skypilot/config/config-validation.ts';
import type { SkypilotOptions } from '../../skypilot/options.ts';
import type { Review } from '../../skypilot/policies/policy-chain.ts';
import type { ReceivedRequest } from '../../skypilot/request/wire.ts';
import type { PolicyOutcome } from '../../skypilot/review.ts';
import type { SecretValues } from '../../skypilot/secrets.ts';
import { onOneLine, printJson, printTable, unifiedDiff, warn } from '../common/output.ts';
import type { Requested } from './requests.ts';

export interface Reviewer {
  /** Maximum size of a request, in bytes. */
  readonly maxBytes: number;
  /** `[skypilot] config_validation`, for content that belongs to no request. */
  readonly validation: SkypilotOptions['config_validation'];
  /** `places`: where the request was written, for messages. */
  review(request: ReceivedRequest, places?: Places): Promise<Review>;
  close(): Promise<void>;
}

/** `again`: the review of the result, if requested. */
export async function printReview(
  file: string,
  { request, task: part }: Requested,
  reviewed: Review,
  again: Review | null,
  format: 'diff' | 'json',
): Promise<void> {
  const { allowed, message, policy, failed, changed, exempt, warnings, outcomes } = reviewed;
  const diff = await diffsOf(request, reviewed);
  if (format === 'json') {
    const idempotent = again && isIdempotent(again);
    const pipeline = part && { task: part.number, of: part.of, name: part.name };
    printJson({
      file,
      ...(pipeline && { pipeline }),
      allowed,
      message,
      policy,
      failed,
      changed,
      exempt,
      warnings,
      idempotent,
      outcomes,
      diff,
    });
    return;
  }
  // A request that does not match SkyPilot's schema, for example, is refused by no policy.
  const isExplained = allowed || outcomes.some((outcome) => !outcome.allowed && !outcome.audit);
  const refusal = { policy: policy ?? '', message, allowed, failed, changed: false, audit: false };
  await printTable(
    ['POLICY', 'ANSWER', 'MESSAGE'],
    [...outcomes, ...(isExplained ? [] : [refusal])].map((outcome) => [
      outcome.policy,
      answerOf(outcome),
      outcome.message ?? '',
    ]),
  );
  for (const warning of warnings) {
    warn(warning);
  }
  for (const one of [diff.task, diff.skypilot_config]) {
    if (one !== '') {
      process.stdout.write(`\n${one.split('\n').map(onOneLine).join('\n')}`);
    }
  }
  if (again !== null && !isIdempotent(again)) {
    process.stderr.write(`error: ${onOneLine(whyNotIdempotent(again))}\n`);
  }
}

/** The changes as unified diffs without secrets; empty if there are none. */
async function diffsOf(
  request: ReceivedRequest,
  reviewed: Review,
): Promise<{ task: string; skypilot_config: string }> {
  const { SecretValues } = await import('../../skypilot/secrets.ts');
  const after = reviewed.skypilotConfig.toDict();
  // A secret found in one text is masked in all of them.
  const secrets = SecretValues.of(request.task.value, request.skypilotConfig.value, reviewed.task, after);
  return {
    task: await changes('task', request.task, reviewed.task, secrets),
    skypilot_config: await changes('skypilot_config', request.skypilotConfig, after, secrets),
  };
}

async function changes(
  name: string,
  before: ReceivedRequest['task'],
  after: unknown,
  secrets: SecretValues,
): Promise<string> {
  const changed = before.with(after);
  if (changed === before) {
    return '';
  }
  const [from, to] = [before, changed].map((one) => one.with(secrets.withoutSecrets(one.value)).format());
  const names = [name, `${name} (changed by policies)`] as const;
  const diff = await unifiedDiff(names, from ?? '', to ?? '');
  return from === to ? `${diff}(the changed values are hidden)\n` : diff;
}

export function isIdempotent(again: Review): boolean {
  return again.allowed && !again.changed;
}

/** SkyPilot calls the policies several times for one command, each time with the previous result. */
export function whyNotIdempotent({ allowed, failed, policy, message, outcomes }: Review): string {
  if (failed) {
    return `${policy} failed when called with its own result`;
  }
  if (!allowed) {
    return `not idempotent: ${policy} rejects the result: ${message}`;
  }
  const changing = outcomes
    .filter(({ changed, audit }) => changed && !audit)
    .map((outcome) => outcome.policy);
  return `not idempotent: the result is changed again by ${changing.join(', ')}`;
}

function answerOf({
  allowed,
  failed,
  changed,
  audit,
}: Pick<PolicyOutcome, 'allowed' | 'failed' | 'changed' | 'audit'>): string {
  const answer = failed ? 'failed' : !allowed ? 'rejected' : changed ? 'changed' : 'allowed';
  return audit ? `${answer} (tried, not enforced)` : answer;
}
