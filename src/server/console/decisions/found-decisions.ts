/** Decisions of all replicas where they are stored, else those that this process has made lately. */

import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { Asked } from '../../../decisions/asked.ts';
import {
  type DecisionOutcome,
  type DecisionRecord,
  decisionRecordSchema,
} from '../../../decisions/record.ts';
import { isSelected } from '../../../decisions/selection.ts';
import type { DecisionsQuery } from '../../../decisions/store/contract.ts';
import { memberView } from '../../../decisions/store/member-view.ts';
import { type Caller, visibleProjects } from '../../users/caller.ts';
import type { PageRequest } from '../page.ts';

export interface FoundDecision {
  /** As in `StoredDecision`; missing for one of this process alone. */
  readonly id?: bigint;
  readonly record: DecisionRecord;
  readonly asked: Asked | undefined;
  /** `undefined` = this process. */
  readonly replica: string | undefined;
}

export interface FoundDecisions {
  readonly decisions: readonly FoundDecision[];
  readonly next: string | undefined;
  /** `process`: of this process alone, since decisions are not stored; `away`: since the database does not answer. */
  readonly of: 'all' | 'process' | 'away';
}

/** To whoever looks at decisions of this process alone. */
export const AWAY =
  'The stored decisions cannot be read at the moment: only what this process has decided is shown.';

type Requester = Pick<PageRequest, 'caller' | 'generation' | 'recorder' | 'deadline'>;

interface Wanted {
  readonly filters: DecisionFilters;
  readonly limit: number;
  /** Default: the newest. */
  readonly after?: string | undefined;
}

/** The newest first, only those that the caller may see. @throws LedgerUnavailableError for a further page, CursorError */
export async function findDecisions(
  { caller, generation, recorder, deadline }: Requester,
  { filters: asked, limit, after }: Wanted,
): Promise<FoundDecisions> {
  const filters = (await generation.enforcement.names?.withIds(asked)) ?? asked;
  const source = generation.decisions?.source;
  if (source === undefined) {
    const decisions = ownDecisions(recorder, caller, filters);
    return { decisions: decisions.slice(0, limit), next: undefined, of: 'process' };
  }
  const visible = visibleProjects(caller);
  try {
    const { items, next } = await source.search({ ...filters, visible, limit, after }, deadline);
    return { decisions: items, next, of: 'all' };
  } catch (thrown) {
    if (!(thrown instanceof LedgerUnavailableError) || after !== undefined) {
      throw thrown;
    }
    const decisions = ownDecisions(recorder, caller, filters);
    return { decisions: decisions.slice(0, limit), next: undefined, of: 'away' };
  }
}

/** Of this process, as the store would show them: a member looks for what they see, and nothing else. */
function ownDecisions(
  { recent }: PageRequest['recorder'],
  caller: Caller,
  filters: DecisionFilters,
): FoundDecision[] {
  const visible = visibleProjects(caller);
  const refused = new Map(recent.refused().map(({ record, asked }) => [record, asked]));
  return recent
    .list()
    .filter((record) => isVisible(record, visible))
    .map((record) => ({
      record: visible === undefined ? record : memberView(record),
      asked: refused.get(record),
      replica: undefined,
    }))
    .filter(({ record }) => isFiltered(record, filters, visible));
}

/**
 * All decisions of one request, the newest first: those that this process has just made too, which the store may not have yet, or never
 * gets. @throws LedgerUnavailableError
 */
export async function decisionsOf(
  requester: Requester,
  requestId: string,
  limit: number,
): Promise<FoundDecisions> {
  const filters: DecisionFilters = { requestId };
  const found = await findDecisions(requester, { filters, limit });
  if (found.decisions.length > 0 || found.of !== 'all') {
    return found;
  }
  return { ...found, decisions: ownDecisions(requester.recorder, requester.caller, filters).slice(0, limit) };
}

export const OUTCOMES: readonly DecisionOutcome[] = decisionRecordSchema.shape.outcome.options;

/** The fields of the form, in their order: they are texts as they were written, but valid times as browsers write them. */
export const FIELDS = ['project', 'user', 'lease', 'filter', 'outcome', 'since', 'until', 'request'] as const;
type FieldName = (typeof FIELDS)[number];

type DecisionFilters = Omit<DecisionsQuery, 'limit' | 'after' | 'visible'>;

export interface AskedDecisions {
  readonly texts: Readonly<Record<FieldName, string>>;
  readonly filters: DecisionFilters;
  readonly mistakes: Readonly<Partial<Record<FieldName, string>>>;
}

const MAX_TEXT = 255;
/** As browsers write the field, and shorter. */
const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?$/;

export function askedDecisions(query: URLSearchParams): AskedDecisions {
  const texts = Object.fromEntries(FIELDS.map((name) => [name, (query.get(name) ?? '').trim()])) as Record<
    FieldName,
    string
  >;
  const mistakes: Partial<Record<FieldName, string>> = {};
  for (const name of FIELDS) {
    if (texts[name].length > MAX_TEXT) {
      mistakes[name] = `Expected at most ${MAX_TEXT} characters.`;
    }
  }
  const time = (name: 'since' | 'until') => {
    const text = texts[name];
    const at = TIME.test(text) ? Date.parse(inUtc(text)) : Number.NaN;
    if (text !== '' && Number.isNaN(at)) {
      mistakes[name] = 'Expected a date, perhaps with a time, such as 2026-12-01 09:30.';
    }
    if (Number.isNaN(at)) {
      return undefined;
    }
    texts[name] = inUtc(text).slice(0, -1);
    return at;
  };
  const outcome = OUTCOMES.find((one) => one === texts.outcome);
  if (texts.outcome !== '' && texts.outcome !== 'refused' && outcome === undefined) {
    mistakes.outcome = 'Expected one of the outcomes.';
  }
  const listed = (name: FieldName) => (texts[name] === '' ? undefined : [texts[name]]);
  const filters: DecisionFilters = {
    projects: listed('project'),
    users: listed('user'),
    filters: listed('filter'),
    outcomes: texts.outcome === 'refused' ? ['rejected', 'failed'] : outcome && [outcome],
    leaseId: texts.lease || undefined,
    requestId: texts.request || undefined,
    since: time('since'),
    until: time('until'),
  };
  return { texts, filters, mistakes };
}

/** Without an offset it means UTC, as everywhere. */
function inUtc(text: string): string {
  const [date = '', time = '00:00'] = text.replace(/Z$/, '').split(/[T ]/);
  return `${date}T${time}Z`;
}

/** Operations of Blazar's protocol; those of SkyPilot and Kubernetes have a dot. */
function isAboutLease({ operation }: DecisionRecord): boolean {
  return !operation.includes('.');
}

/** As the store selects. `visible`: `undefined` = all. */
function isFiltered(
  record: DecisionRecord,
  filters: DecisionFilters,
  visible: readonly string[] | undefined,
): boolean {
  const { leaseId, requestId } = filters;
  return (
    isSelected(record, filters) &&
    (leaseId === undefined || record.lease_id === leaseId) &&
    (requestId === undefined || record.request_id === requestId) &&
    isVisible(record, visible)
  );
}

export function isVisible(record: DecisionRecord, visible: readonly string[] | undefined): boolean {
  return (
    visible === undefined ||
    (record.project_id !== null && visible.includes(record.project_id) && isAboutLease(record))
  );
}
