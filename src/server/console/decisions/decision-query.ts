/** What somebody looks for among the decisions, as the query of the page says it. */
import {
  type DecisionOutcome,
  type DecisionRecord,
  decisionRecordSchema,
} from '../../../decisions/record.ts';
import { isSelected } from '../../../decisions/selection.ts';
import type { DecisionsQuery } from '../../../decisions/store/contract.ts';

export const OUTCOMES: readonly DecisionOutcome[] = decisionRecordSchema.shape.outcome.options;

/** The fields of the form, in their order: they are texts as they were written, but valid times as browsers write them. */
export const FIELDS = ['project', 'user', 'lease', 'filter', 'outcome', 'since', 'until', 'request'] as const;
type FieldName = (typeof FIELDS)[number];

export type Wish = Omit<DecisionsQuery, 'limit' | 'after' | 'visible'>;

export interface AskedDecisions {
  readonly texts: Readonly<Record<FieldName, string>>;
  readonly wish: Wish;
  /** What is wrong with a field. */
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
  const wish: Wish = {
    projects: listed('project'),
    users: listed('user'),
    filters: listed('filter'),
    outcomes: texts.outcome === 'refused' ? ['rejected', 'failed'] : outcome && [outcome],
    leaseId: texts.lease || undefined,
    requestId: texts.request || undefined,
    since: time('since'),
    until: time('until'),
  };
  return { texts, wish, mistakes };
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
export function isWished(
  record: DecisionRecord,
  wish: Wish,
  visible: readonly string[] | undefined,
): boolean {
  const { leaseId, requestId } = wish;
  return (
    isSelected(record, wish) &&
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
