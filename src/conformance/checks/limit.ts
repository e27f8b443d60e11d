/** What a limit counts, shown by leases like that of `--allow-lease` until one is rejected. */
import { randomUUID } from 'node:crypto';
import { type Check, type Finding, type Run, SOURCE, type Verdict } from '../check.ts';
import { type Fields, isoText, partsOf, type TestLease } from '../leases.ts';
import type { Exchange, Operation } from '../target.ts';
import { dateOf } from './forms.ts';

export const limitChecks: readonly Check[] = [
  {
    id: 'limit',
    title: 'a limit counts updates, and repeated ends and requests once',
    protocol:
      'An extended lease takes as much as one that was created so. Two leases may have one name. on-end may come twice, or for an unknown lease; a request may be sent again with its Idempotency-Key.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints, SOURCE.keepInMind],
    needs: ['create', 'update', 'end'],
    run: atLimit,
  },
];

/** With as many leases, no limit is seen. */
const MOST = 32;

async function atLimit(run: Run): Promise<Verdict> {
  const { target, leases, allowLease } = run;
  if (allowLease === undefined) {
    return { skipped: '--allow-lease is not given' };
  }
  const { lease, ...others } = partsOf(allowLease);
  const { name = 'conformance', ...unnamed } = lease;
  const copy = (changes: Fields = {}) => leases.make({ ...others, lease: { ...unnamed, ...changes } });
  const room: TestLease[] = [];
  for (let one = copy(); room.length < MOST && isAllowed(await create(run, one)); one = copy()) {
    room.push(one);
  }
  const [first] = room;
  if (first === undefined) {
    return { skipped: 'no lease like that of --allow-lease is allowed any more' };
  }
  if (room.length === MOST) {
    return { skipped: `${MOST} leases like that of --allow-lease are allowed: no limit is seen` };
  }
  await target.ask('end', first, 'the end of one of these leases');
  await target.ask('end', first, 'the same end again');
  await target.ask('end', copy(), 'the end of a lease that was never created');
  if (!isAllowed(await create(run, copy()))) {
    return { skipped: 'the end of a lease makes no room for another one' };
  }
  const findings = expectFull(await create(run, copy()), 'only one lease has ended');
  await target.settle();
  if (findings.length > 0) {
    return findings;
  }

  for (const one of room.map(() => copy())) {
    const exchange = await create(run, one, 2);
    const expected = `the status 204, as for ${room.length} leases that are sent once`;
    findings.push(...(isAllowed(exchange) ? [] : [{ expected, exchange }]));
  }
  await target.settle();

  for (const one of room.map(() => copy({ name }))) {
    await create(run, one);
  }
  findings.push(...expectFull(await create(run, copy({ name })), 'leases of one name are different leases'));
  await target.settle();

  const [start, end] = [lease.start_date, lease.end_date ?? lease.end_time].map(dateOf);
  if (start !== undefined && end !== undefined) {
    const whole = start.getTime() + room.length * (end.getTime() - start.getTime());
    findings.push(...(await countsUpdate(run, copy, { end_date: isoText(new Date(whole)) })));
  }
  return findings;
}

/** `longer`: changes that take all room of a limit on time. */
async function countsUpdate(
  run: Run,
  copy: (changes?: Fields) => TestLease,
  longer: Fields,
): Promise<Finding[]> {
  const { target } = run;
  const takesAll = isAllowed(await create(run, copy(longer))) && !isAllowed(await create(run, copy()));
  await target.settle();
  const lease = copy();
  if (!takesAll || !isAllowed(await create(run, lease))) {
    return [];
  }
  const { start_date, reservations } = lease.current;
  const changes = { start_date, reservations, ...longer };
  const updated = await target.ask('update', lease, 'an update that takes all room', { changes });
  if (!isAllowed(updated)) {
    return [];
  }
  if (target.has('commitUpdate')) {
    await target.ask('commitUpdate', lease, 'the commit of this update', { changes });
  }
  return expectFull(await create(run, copy()), 'an update has taken all room');
}

/** With its commit, if the service has the endpoint; each with its `Idempotency-Key`, and so often. */
async function create({ target }: Run, lease: TestLease, times = 1): Promise<Exchange> {
  const key = times === 1 ? undefined : randomUUID();
  const ask = async (operation: Operation, what: string) => {
    for (let sent = 1; sent < times; sent += 1) {
      await target.ask(operation, lease, what, { key });
    }
    return target.ask(operation, lease, `${what}${times === 1 ? '' : ', sent again'}`, { key });
  };
  const checked = await ask('create', 'a lease like that of --allow-lease');
  return isAllowed(checked) && target.has('commitCreate')
    ? ask('commitCreate', 'the commit of a lease like that of --allow-lease')
    : checked;
}

function isAllowed({ answer }: Exchange): boolean {
  return answer?.status === 204;
}

function expectFull(exchange: Exchange, why: string): Finding[] {
  return isAllowed(exchange) ? [{ expected: `the status 403, because ${why}`, exchange }] : [];
}
