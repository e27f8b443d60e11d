/**
 * Scans the pods of a cluster for those that would be refused if they were created now: what a rollout of
 * policies would break. Memory holds one page of pods and one finding per owner.
 */
import { InvalidRequestError } from '../../../base/errors.ts';
import { valueAt } from '../../../base/yaml/tree.ts';
import { PodAdmission } from '../../admission/pod-admission.ts';
import { asAdmitted, POD_KINDS } from '../../admission/pod-kinds.ts';
import {
  type Account,
  type AccountPolicies,
  type PolicySource,
  serviceAccount,
} from '../../policies/access.ts';
import type { ClusterOptions } from '../../policies/cluster-settings.ts';
import { type Pod, parsePod, serviceAccountName } from '../../policies/pod.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import { sideBySide } from '../snapshot/cluster-snapshot.ts';
import { Findings, type Judged } from './findings.ts';
import {
  asAskedFor,
  creatorOf,
  FORMER_PATHS,
  isMirror,
  type Owner,
  ownerOf,
  type ScannedKind,
  type ScannedObject,
  type Selection,
  scannedObjects,
  TEMPLATE_KINDS,
} from './scanned-objects.ts';

interface ScanOptions {
  /** Empty = all. */
  readonly namespaces: readonly string[];
  /** Namespaces that the webhooks ignore. */
  readonly exempt: ReadonlySet<string>;
  readonly selector?: string | undefined;
  /** Also the templates of Deployments, CronJobs and the like, which may have no pods now. */
  readonly workloads: boolean;
  /** What the API server fills in. */
  readonly settings: ClusterOptions;
  /** As `Date.now()`. */
  readonly now: number;
  /** Called after each page, with the number so far. */
  readonly progress?: ((seen: number) => void) | undefined;
}

export interface ScanResult {
  readonly findings: Findings;
  /** Seen, but not checked. */
  readonly skipped: { exempt: number; mirror: number };
  /** Accounts whose policies were read. */
  accounts: number;
}

/** @throws ApiError @throws ApiUnreachableError, and the errors of the source */
export async function scan(
  client: ApiClient,
  source: PolicySource,
  options: ScanOptions,
): Promise<ScanResult> {
  const result: ScanResult = { findings: new Findings(), skipped: { exempt: 0, mirror: 0 }, accounts: 0 };
  // Without audit mode: to find what it would refuse.
  const admission = new PodAdmission(source);
  const accounts = new Map<string, AccountPolicies>();
  const { namespaces, selector } = options;
  const selections: Selection[] =
    namespaces.length === 0 ? [{ selector }] : namespaces.map((namespace) => ({ namespace, selector }));
  let seen = 0;
  for (const kind of ['Pod', ...(options.workloads ? TEMPLATE_KINDS : [])] as const) {
    for (const selection of selections) {
      for await (const page of pagesOfKind(client, kind, selection)) {
        await add(page);
        seen += page.length;
        options.progress?.(seen);
      }
    }
  }
  result.accounts = accounts.size;
  return result;

  async function add(page: readonly ScannedObject[]): Promise<void> {
    const read = page.flatMap((object) => {
      const one = readObject(object, options, result.skipped);
      return one === undefined ? [] : [one];
    });
    const unknown = new Map(
      read
        .map(({ account }) => account)
        .filter(({ user }) => !accounts.has(user))
        .map((account) => [account.user, account]),
    );
    await sideBySide([...unknown.values()], async (account) => {
      accounts.set(account.user, await source.policiesOf(account));
    });
    for (const one of read) {
      const policies = accounts.get(one.account.user);
      if (policies !== undefined) {
        result.findings.add(judged(one, policies, admission, options));
      }
    }
  }
}

async function* pagesOfKind(client: ApiClient, kind: ScannedKind, selection: Selection) {
  try {
    yield* scannedObjects(client, kind, selection);
  } catch (thrown) {
    const former = FORMER_PATHS[kind];
    if (!(thrown instanceof ApiError && thrown.status === 404 && former !== undefined)) {
      throw thrown;
    }
    yield* scannedObjects(client, kind, selection, former);
  }
}

interface Read {
  readonly object: ScannedObject;
  readonly owner: Owner | undefined;
  readonly account: Account;
  /** As requested; a text = why it cannot be read. */
  readonly pod: Pod | string;
}

function readObject(
  object: ScannedObject,
  { exempt, now }: ScanOptions,
  skipped: ScanResult['skipped'],
): Read | undefined {
  const { kind, namespace, name, metadata, value } = object;
  if (exempt.has(namespace)) {
    skipped.exempt += 1;
    return undefined;
  }
  const owner = kind === 'Pod' ? ownerOf(metadata, now) : { kind, name };
  const path = POD_KINDS[kind]?.path ?? [];
  let pod: Pod;
  try {
    pod = parsePod(valueAt(value, path), path.join('.'));
  } catch (thrown) {
    if (!(thrown instanceof InvalidRequestError)) {
      throw thrown;
    }
    return { object, owner, account: serviceAccount(namespace, 'default'), pod: thrown.message };
  }
  if (kind === 'Pod' && isMirror(pod)) {
    skipped.mirror += 1;
    return undefined;
  }
  const account = serviceAccount(namespace, serviceAccountName(pod));
  return { object, owner, account, pod: kind === 'Pod' ? asAskedFor(pod) : pod };
}

function judged(
  { object: { kind, namespace, name }, owner, account, pod }: Read,
  policies: AccountPolicies,
  admission: PodAdmission,
  { settings }: ScanOptions,
): Judged {
  const common = {
    source: kind === 'Pod' ? ('pod' as const) : ('template' as const),
    namespace,
    name,
    owner,
    user: account.user,
    policies: policies.names,
  };
  if (typeof pod === 'string') {
    return { ...common, reasons: [{ field: '', expectation: `it cannot be read: ${pod}`, policies: [] }] };
  }
  const isTemplate = kind === 'DaemonSet';
  const { reasons } = admission.review(
    {
      kind: isTemplate ? 'template' : 'pod',
      uid: '',
      name,
      namespace,
      current: undefined,
      isUpdate: false,
      dryRun: true,
      pod: asAdmitted(pod, isTemplate, settings),
      ...(kind === 'Pod' ? creatorOf(pod) : { username: undefined, groups: [] }),
    },
    policies,
    { addDefaults: true },
  );
  return { ...common, reasons };
}
