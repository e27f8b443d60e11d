/** What a Blazar does on behalf of its users: it asks before it creates and changes leases, and reports their ends. */
import { FAILED_MESSAGE, UNAVAILABLE_MESSAGE } from '../../src/enforcement/chain/messages.ts';
import type { Decision } from '../../src/index.ts';
import { OFTEN } from '../../src/ledger/reconciliation/plan.ts';
import { type Asked, asSent, beginOf, EARLY, type Held, hostIds, PROJECT } from './blazar.ts';
import type { Replica } from './replica.ts';
import { type Site, SYNCHRONIZED } from './site.ts';

const HOUR = 3600;

/** `undefined` = no answer came, or one that says nothing. */
type Answer = 'allowed' | 'refused' | undefined;

interface Sent {
  answer: Answer;
  /** Whether a service may still be at work on it. */
  isUnderWay: boolean;
}

/** A user wants a new lease. With an `Idempotency-Key` a request without an answer is sent again. */
export async function create(site: Site): Promise<void> {
  const { chance, blazar, begin } = site;
  const user = chance.pick(['alice', 'bob']);
  const min = 1 + chance.below(2);
  const max = min + chance.below(3);
  const hosts = min + chance.below(max - min + 1);
  const start = Math.max(site.now, begin + chance.below(4) * HOUR);
  const end = start + (1 + chance.below(6)) * HOUR;
  const id = blazar.newId();
  const isStock = site.commit === 'check';
  const wanted: Asked = { min, max, start, end };
  const looks = [user, min, max, start, end].join();
  const alike = (site.asked.get(looks) ?? new Set()).add(hosts);
  site.asked.set(looks, alike);
  site.mayMistake ||= alike.size > 1;
  const key = isStock && chance.happens(0.5) ? `key-${id}` : undefined;
  const context = { user_id: user, project_id: PROJECT };
  const lease = asSent(wanted, hostIds(hosts));
  let answer: Answer;
  let attempts = 0;
  const askedAt = site.now;
  do {
    attempts += 1;
    const sent = await send(site, `check-create ${id}`, ({ enforcement }, signal) =>
      enforcement.checkCreate({ context, lease }, { idempotencyKey: key, signal }),
    );
    answer = sent.answer;
    if (isStock && answer !== 'allowed' && (key === undefined || sent.isUnderWay)) {
      site.unknown += answer === 'refused' ? 0 : 1;
    }
  } while (answer === undefined && key !== undefined && attempts < 3);
  if (isStock && answer === undefined && key !== undefined) {
    site.unknown += 1;
  }
  if (answer !== 'allowed') {
    return;
  }
  site.building.set(id, { id, user, start, end });
  for (let steps = site.skew > SYNCHRONIZED ? 4 : 1; steps > 0; steps -= 1) {
    await site.turn(`builds ${id}`);
  }
  const given = { ...wanted, id, user, hosts, createdAt: site.now + blazar.ahead };
  if (!isStock) {
    const { answer: committed } = await send(site, `commit-create ${id}`, ({ enforcement }, signal) =>
      enforcement.commitCreate({ context, lease: asSent(given, hostIds(hosts)) }, { signal }),
    );
    answer = committed;
    site.unknown += answer === undefined ? 1 : 0;
  }
  site.building.delete(id);
  if (answer !== 'allowed') {
    return;
  }
  // What was allowed and begins at once may be built a moment later.
  if (chance.happens(0.1) || end <= site.now) {
    site.unknown += 1;
    site.hasWasted = true;
    return;
  }
  const isEarly = site.mayBeginEarly && chance.happens(0.5) && start > site.now + EARLY;
  blazar.add({ ...given, status: 'PENDING', ...(isEarly && { begunAt: site.now }) });
  site.log(
    `Blazar has ${id}: ${hosts} of ${user} for ${(end - start) / HOUR} h${isEarly ? ', begun early' : ''}`,
  );
  if (isEarly) {
    site.hasOverrun = true;
    // It is charged since it was asked for.
    site.delays += site.now - askedAt;
  }
}

export async function update(site: Site): Promise<void> {
  const { chance, blazar } = site;
  const lease = idleLease(site);
  if (lease === undefined) {
    return;
  }
  const hasBegun = lease.start <= site.now;
  const later = hasBegun ? 0 : chance.pick([0, 0, HOUR, 24 * HOUR]);
  const start = lease.start + later;
  site.hasChanged = true;
  const longer = chance.pick([-2, -1, 0, 1, 3]) * HOUR;
  const end = Math.max(start + 60, site.now + 60, lease.end + later + longer);
  const isRecounted = chance.happens(0.5);
  const min = isRecounted ? 1 + chance.below(2) : lease.min;
  const max = isRecounted ? min + chance.below(3) : lease.max;
  const hosts = isRecounted ? Math.min(max, Math.max(min, lease.hosts + chance.below(3))) : lease.hosts;
  site.busy.add(lease.id);
  blazar.change(lease.id, site.now, { status: 'UPDATING' });
  const context = { user_id: lease.user, project_id: PROJECT };
  const asked = asSent({ ...lease, start, end, min, max }, hostIds(hosts));
  const request = { context, currentLease: asSent(lease, hostIds(lease.hosts)), lease: asked };
  const operations = site.commit === 'check' ? ['check'] : ['check', 'commit'];
  let answer: Answer = 'allowed';
  for (const operation of operations) {
    if (answer === 'allowed') {
      const sent = await send(site, `${operation}-update ${lease.id}`, ({ enforcement }, signal) =>
        operation === 'check'
          ? enforcement.checkUpdate(request, { signal })
          : enforcement.commitUpdate(request, { signal }),
      );
      answer = sent.answer;
    }
  }
  const answeredAt = site.now;
  await site.turn(`changes ${lease.id}`);
  site.delays += site.now - answeredAt;
  if (answer === 'allowed' && lease.end > site.now) {
    const outcome = chance.pick(['done', 'done', 'done', 'refused', 'half way']);
    site.log(`Blazar changes ${lease.id}: ${outcome}`);
    site.hasWasted ||= outcome !== 'done';
    const counts = { hosts, min, max };
    const isLate = !hasBegun && lease.start <= site.now;
    if (outcome !== 'refused' && !isLate) {
      blazar.change(lease.id, site.now, outcome === 'done' ? { ...counts, start, end } : counts);
    }
  }
  blazar.change(lease.id, site.now, { status: 'PENDING' });
  site.busy.delete(lease.id);
}

/** Blazar changes a lease, and asks nobody. */
export function changeWithoutAsking(site: Site): void {
  const { chance, blazar, now } = site;
  const lease = idleLease(site);
  if (lease === undefined) {
    return;
  }
  const end = Math.max(now + 60, lease.end + chance.pick([-2, 1, 3, 12]) * HOUR);
  const hosts = chance.happens(0.5) ? lease.hosts : Math.max(lease.min, lease.hosts - 1);
  blazar.change(lease.id, now, { end, hosts });
  site.hasNotAsked = true;
  site.hasWasted = true;
  site.log(`Blazar changes ${lease.id} without asking: ${hosts} hosts, until ${end - site.begin}`);
}

/** Blazar fails to end a lease at its end, before it reports the end or after that. */
export async function failToEnd(site: Site, lease: Held): Promise<void> {
  site.busy.add(lease.id);
  site.hasOverrun = true;
  site.blazar.change(lease.id, site.now, { status: 'ERROR', isOverdue: true });
  site.log(`Blazar cannot end ${lease.id}`);
  if (site.chance.happens(0.5)) {
    await reportEnd(site, lease);
  }
  site.busy.delete(lease.id);
}

function reportEnd(site: Site, lease: Held): Promise<Sent> {
  const context = { user_id: lease.user, project_id: PROJECT };
  const sent = asSent(lease, hostIds(lease.hosts));
  return send(site, `on-end ${lease.id}`, async (replica) => {
    const { failed } = await replica.enforcement.onEnd({ context, lease: sent });
    if (!failed) {
      site.ended.add(lease.id);
    }
    return { allowed: !failed, failed };
  });
}

/** It is deleted, or its time is over. The report of it may get lost. */
export async function end(site: Site, over?: Held): Promise<void> {
  const { chance, blazar } = site;
  const lease = over ?? idleLease(site);
  if (lease === undefined) {
    return;
  }
  site.busy.add(lease.id);
  blazar.change(lease.id, site.now, { status: 'DELETING' });
  blazar.stop(lease.id, site.now);
  const stoppedAt = site.now;
  const { unheard } = site;
  if (chance.happens(0.8)) {
    let { answer } = await reportEnd(site, lease);
    if (chance.happens(0.2)) {
      answer = (await reportEnd(site, lease)).answer ?? answer;
    }
    if (answer !== 'allowed') {
      site.unheard += 1;
    }
  } else {
    site.unheard += 1;
    site.log(`nobody hears of the end of ${lease.id}`);
  }
  // One that came and went, and nobody heard of its end, is taken for one that was never built.
  const lived = Math.max(0, stoppedAt - Math.max(beginOf(lease), lease.createdAt));
  site.delays += site.unheard > unheard && lived <= Number(OFTEN) ? lived : 0;
  site.delays += site.now - stoppedAt;
  blazar.remove(lease.id);
  site.busy.delete(lease.id);
}

function idleLease({ chance, blazar, busy, now }: Site): Held | undefined {
  return chance.some([...blazar.leases.values()].filter(({ id, end }) => !busy.has(id) && end > now));
}

type Ask = (
  replica: Replica,
  signal: AbortSignal,
) => Promise<Pick<Decision, 'allowed' | 'failed'> & Partial<Pick<Decision, 'message'>>>;

/** The request may get lost, or its answer; a service that crashes gives none. */
async function send(site: Site, what: string, ask: Ask): Promise<Sent> {
  const { chance } = site;
  await site.turn(`sends ${what}`);
  const replica = chance.some(site.replicas.filter(({ isDead }) => !isDead));
  if (replica === undefined || chance.happens(site.losses / 2)) {
    site.log(`${what} is lost`);
    return { answer: undefined, isUnderWay: false };
  }
  const sent: Sent = { answer: undefined, isUnderWay: true };
  const over = new AbortController();
  const asked = ask(replica, over.signal).then(({ allowed, failed, message }) => {
    sent.isUnderWay = false;
    const isUnknown = failed || message === UNAVAILABLE_MESSAGE || message === FAILED_MESSAGE;
    site.log(`${replica.name} answers ${what}: ${allowed ? 'allowed' : isUnknown ? 'failed' : message}`);
    return allowed ? ('allowed' as const) : isUnknown ? undefined : ('refused' as const);
  });
  asked.catch((thrown: unknown) => site.fail(`${what} throws ${String(thrown)}`));
  const patience = chance.happens(site.losses) ? [site.turn(`waits no longer for ${what}`)] : [];
  const answer = await Promise.race([asked, replica.gone, replica.callersLeave(), ...patience]);
  if (sent.isUnderWay) {
    // The deadline of a service ends before its caller gives up: what it has not recorded by then, it refuses.
    over.abort(new Error('the deadline is over'));
  }
  sent.answer = answer ?? undefined;
  return sent;
}
