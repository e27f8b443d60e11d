/** Decisions of all replicas where they are stored, else those that this process has made lately. */

import type { AskedTime } from '../../../decisions/recent.ts';
import type { DecisionRecord } from '../../../decisions/record.ts';
import { memberView } from '../../../decisions/store/member-view.ts';
import { visibleProjects } from '../../users/access.ts';
import type { Person } from '../../users/person.ts';
import type { PageRequest } from '../page.ts';
import { isVisible, isWished, type Wish } from './decision-query.ts';
import { decisionSource } from './decision-source.ts';

export interface FoundDecision {
  readonly record: DecisionRecord;
  readonly asked: AskedTime | undefined;
  /** `undefined` = this process. */
  readonly replica: string | undefined;
}

export interface FoundDecisions {
  readonly decisions: readonly FoundDecision[];
  readonly next: string | undefined;
  /** Whether other replicas, and the time before the start, are known. */
  readonly isShared: boolean;
}

type Asker = Pick<PageRequest, 'person' | 'generation' | 'recorder' | 'deadline'>;

interface Wanted {
  readonly wish: Wish;
  readonly limit: number;
  /** Default: the newest. */
  readonly after?: string | undefined;
}

/** The newest first, only those that the person may see. @throws LedgerUnavailableError, CursorError */
export async function findDecisions(
  { person, generation, recorder, deadline }: Asker,
  { wish, limit, after }: Wanted,
): Promise<FoundDecisions> {
  const source = decisionSource(generation);
  if (source === undefined) {
    const decisions = ownDecisions(recorder, person, wish);
    return { decisions: decisions.slice(0, limit), next: undefined, isShared: false };
  }
  const visible = visibleProjects(person);
  const { items, next } = await source.search({ ...wish, visible, limit, after }, deadline);
  return { decisions: items, next, isShared: true };
}

/** Of this process, as the store would show them: a member looks for what they see, and nothing else. */
function ownDecisions({ recent }: PageRequest['recorder'], person: Person, wish: Wish): FoundDecision[] {
  const visible = visibleProjects(person);
  const refused = new Map(recent.refused().map(({ record, ...asked }) => [record, asked]));
  return recent
    .list()
    .filter((record) => isVisible(record, visible))
    .map((record) => ({
      record: visible === undefined ? record : memberView(record),
      asked: refused.get(record),
      replica: undefined,
    }))
    .filter(({ record }) => isWished(record, wish, visible));
}

/**
 * All decisions of one request, the newest first: those that this process has just made too, which the store may not have yet, or never
 * gets. @throws LedgerUnavailableError
 */
export async function decisionsOf(asker: Asker, requestId: string, limit: number): Promise<FoundDecisions> {
  const wish: Wish = { requestId };
  const found = await findDecisions(asker, { wish, limit });
  if (found.decisions.length > 0 || !found.isShared) {
    return found;
  }
  return { ...found, decisions: ownDecisions(asker.recorder, asker.person, wish).slice(0, limit) };
}
