/** `scheduling-policy check`: what the policies make of a pod. */
import { isMapping } from '../config/tree.ts';
import { YamlDocument } from '../config/yaml/document.ts';
import { YamlError } from '../config/yaml/error.ts';
import { InvalidRequestError } from '../errors.ts';
import { serviceAccount } from '../kubernetes/access.ts';
import { type Pod, parsePod, serviceAccountName } from '../kubernetes/pod.ts';
import { formatReason } from '../kubernetes/rules/reason.ts';
import { SchedulingPolicies } from '../kubernetes/scheduling-policies.ts';
import { readText, shownName } from './input.ts';
import { ExitCode, onOneLine, printJson, printTable, printWarnings, UsageError } from './output.ts';
import type { CheckFlags } from './scheduling-policy.ts';
import { unifiedDiff } from './unified-diff.ts';

/** The API server takes no larger request. */
const MAX_BYTES = 3 * 1024 * 1024;

export async function checkPod(file: string, flags: CheckFlags): Promise<void> {
  const { policies, warnings } = SchedulingPolicies.read(flags.policies, { strategy: flags.mergeStrategy });
  printWarnings(warnings);
  const { document, pod } = await readPod(file);
  const account = serviceAccount(
    namespaceOf(pod, file, flags),
    flags.serviceAccount ?? serviceAccountName(pod),
  );
  const effective = policies.effectiveFor(account);
  const { allowed, pod: reviewed, reasons } = effective.review(pod, { addDefaults: true });
  if (allowed && !effective.review(withScheduler(reviewed), { addDefaults: true }).allowed) {
    process.stderr.write(
      'warning: the pod names no scheduler; the API server fills in default-scheduler, which these policies refuse\n',
    );
  }

  const after = document.with(reviewed);
  const names = [shownName(file), 'as the policies leave it'] as const;
  const diff = after === document ? '' : await unifiedDiff(names, document.format(), after.format());
  if (flags.format === 'json') {
    const shown = reasons.map((reason) => ({ ...reason, message: formatReason(reason) }));
    printJson({ file, user: account.user, policies: effective.policies, allowed, reasons: shown, diff });
  } else {
    process.stdout.write(`${allowed ? 'allowed' : 'rejected'} for ${onOneLine(account.user)}\n`);
    if (reasons.length > 0) {
      await printTable(
        ['FIELD', 'REASON', 'POLICIES'],
        reasons.map(({ field, expectation, policies: whose }) => [field, expectation, whose.join(', ')]),
      );
    }
    if (diff !== '') {
      process.stdout.write(`\n${diff.split('\n').map(onOneLine).join('\n')}`);
    }
  }
  process.exitCode = allowed ? ExitCode.ok : ExitCode.rejected;
}

async function readPod(file: string): Promise<{ document: YamlDocument; pod: Pod }> {
  const text = await readText(file, MAX_BYTES);
  try {
    const [document, ...others] = YamlDocument.parseAll(text);
    const value = document?.value;
    if (document === undefined || others.length > 0 || !isMapping(value) || value.kind !== 'Pod') {
      throw new UsageError(`${shownName(file)}: expected one object of kind Pod`);
    }
    return { document, pod: parsePod(value) };
  } catch (thrown) {
    if (thrown instanceof YamlError || thrown instanceof InvalidRequestError) {
      throw new UsageError(`${shownName(file)}: ${thrown.message}`);
    }
    throw thrown;
  }
}

function namespaceOf({ metadata }: Pod, file: string, { namespace }: CheckFlags): string {
  const own = metadata?.namespace || undefined;
  if (namespace !== undefined && own !== undefined && namespace !== own) {
    throw new UsageError(
      `${shownName(file)}: expected a pod in ${namespace}, as --namespace says, got one in ${own}`,
    );
  }
  return namespace ?? own ?? 'default';
}

/** As the webhook sees it. */
function withScheduler(pod: Pod): Pod {
  const { schedulerName } = pod.spec;
  return schedulerName ? pod : { ...pod, spec: { ...pod.spec, schedulerName: 'default-scheduler' } };
}
