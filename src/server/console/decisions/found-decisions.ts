/** Decisions of all replicas if they are stored; otherwise recent ones of this process. */

import { LedgerUnavailableError } from '../../../base/errors.ts';
import {
  type DecisionOutcome,
  type DecisionRecord,
  decisionRecordSchema,
} from '../../../decisions/record.ts';
import { isSelected, REFUSED } from '../../../decisions/selection.ts';
import type { DecisionsQuery } from '../../../decisions/store/contract.ts';
import { memberView } from '../../../decisions/store/member-view.ts';
import type { PageOf, PageQuery } from '../../../ledger/reports/pages.ts';
import type { FoundDecision } from '../../leases/lease-history.ts';
import { visibleProjects } from '../../users/caller.ts';
import type { PageRequest } from '../page.ts';

export interface FoundDecisions extends PageOf<FoundDecision> {
  /** `process`: only this process, without a store; `away`: likewise, since the database does not answer. */
  readonly of: 'all' | 'process' | 'away';
}

export const AWAY =
  'The stored decisions cannot be read at the moment: only decisions of this process are shown.';

type Requester = Pick<PageRequest, 'caller' | 'generation' | 'recorder' | 'deadline'>;

/**
 * Newest first, only those that the caller may see. `visible`: only these projects, as members see them;
 * default: the projects of the caller.
 *
 * @throws LedgerUnavailableError for a further page, CursorError
 */
export async function findDecisions(
  { caller, generation, recorder, deadline }: Requester,
  { visible = visibleProjects(caller), ...asked }: Omit<DecisionsQuery, 'after'> & Partial<PageQuery>,
): Promise<FoundDecisions> {
  const named = (await generation.enforcement.names?.withIds(asked)) ?? asked;
  const query: DecisionsQuery = { after: undefined, ...named, visible };
  const own = (of: 'process' | 'away') => ({ items: ownDecisions(recorder, query), next: undefined, of });
  const source = generation.decisions?.source;
  if (source === undefined) {
    return own('process');
  }
  try {
    return { ...(await source.search(query, deadline)), of: 'all' };
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError && query.after === undefined) {
      return own('away');
    }
    throw thrown;
  }
}

/** Decisions of this process, with the same rights as in the store: members search only what they may see. */
function ownDecisions({ recent }: PageRequest['recorder'], query: DecisionsQuery): FoundDecision[] {
  const { visible, leaseId, requestId, limit } = query;
  return recent
    .list()
    .filter(({ record }) => isVisible(record, visible))
    .map(({ record, asked }) => ({
      record: visible === undefined ? record : memberView(record),
      asked,
      replica: undefined,
    }))
    .filter(
      ({ record }) =>
        isSelected(record, query) &&
        (leaseId === undefined || record.lease_id === leaseId) &&
        (requestId === undefined || record.request_id === requestId),
    )
    .slice(0, limit);
}

/** A request may have several decisions: a check and its commit. */
const MOST_OF_REQUEST = 20;

/**
 * All decisions of one request, newest first. If the store has none, those of this process: they may not be
 * stored yet, or never are.
 *
 * @throws LedgerUnavailableError
 */
export async function decisionsOf(
  requester: Requester,
  requestId: string,
): Promise<readonly FoundDecision[]> {
  const query = { requestId, limit: MOST_OF_REQUEST };
  const { items } = await findDecisions(requester, query);
  const visible = visibleProjects(requester.caller);
  return items.length > 0 ? items : ownDecisions(requester.recorder, { ...query, visible, after: undefined });
}

/**
 * `visible`: `undefined` = all. Operations with a dot are not Blazar's: workspaces and namespaces may have the name of
 * a project.
 */
function isVisible(
  { project_id, operation }: DecisionRecord,
  visible: readonly string[] | undefined,
): boolean {
  return (
    visible === undefined || (project_id !== null && visible.includes(project_id) && !operation.includes('.'))
  );
}

export const OUTCOMES: readonly DecisionOutcome[] = decisionRecordSchema.shape.outcome.options;

/** The form fields in order. Texts are kept as entered; valid times are in the format of browsers. */
export const FIELDS = ['project', 'user', 'lease', 'filter', 'outcome', 'since', 'until', 'request'] as const;
type FieldName = (typeof FIELDS)[number];

type DecisionFilters = Omit<DecisionsQuery, 'limit' | 'after' | 'visible'>;

export interface AskedDecisions {
  readonly texts: Readonly<Record<FieldName, string>>;
  readonly filters: DecisionFilters;
  readonly mistakes: ReadonlyMap<string, string>;
}

const MAX_TEXT = 255;
/** The format of browsers, and shorter forms. */
const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?$/;

export function askedDecisions(query: URLSearchParams): AskedDecisions {
  const texts = Object.fromEntries(FIELDS.map((name) => [name, (query.get(name) ?? '').trim()])) as Record<
    FieldName,
    string
  >;
  const mistakes = new Map<string, string>();
  for (const name of FIELDS) {
    if (texts[name].length > MAX_TEXT) {
      mistakes.set(name, `Expected at most ${MAX_TEXT} characters.`);
    }
  }
  const time = (name: 'since' | 'until') => {
    const text = texts[name];
    const at = TIME.test(text) ? Date.parse(inUtc(text)) : Number.NaN;
    if (text !== '' && Number.isNaN(at)) {
      mistakes.set(name, 'Expected a date, perhaps with a time, such as 2026-12-01 09:30.');
    }
    if (Number.isNaN(at)) {
      return undefined;
    }
    texts[name] = inUtc(text).slice(0, -1);
    return at;
  };
  const outcome = OUTCOMES.find((one) => one === texts.outcome);
  if (texts.outcome !== '' && texts.outcome !== 'refused' && outcome === undefined) {
    mistakes.set('outcome', 'Expected one of the outcomes.');
  }
  const listed = (name: FieldName) => (texts[name] === '' ? undefined : [texts[name]]);
  const filters: DecisionFilters = {
    projects: listed('project'),
    users: listed('user'),
    filters: listed('filter'),
    outcomes: texts.outcome === 'refused' ? REFUSED : outcome && [outcome],
    leaseId: texts.lease || undefined,
    requestId: texts.request || undefined,
    since: time('since'),
    until: time('until'),
  };
  return { texts, filters, mistakes };
}

/** Without an offset it means UTC. */
function inUtc(text: string): string {
  const [date = '', time = '00:00'] = text.replace(/Z$/, '').split(/[T ]/);
  return `${date}T${time}Z`;
}
