/** Two processes decide one lease one after the other. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { withinDeadline } from '../../../src/base/deadline.ts';
import { acquireCommitLock } from '../../../src/ledger/service.ts';
import { DIALECTS, ledgerAt, NO_WAIT, newLedgers } from '../../support/ledgers.ts';

const newLedger = newLedgers();

describe.each(DIALECTS)('the lock of a lease, on %s', (dialect) => {
  async function processes() {
    const connection = await newLedger(dialect);
    const clock = { now: '2026-11-21T09:00:00Z' };
    const open = async () => {
      const ledger = await ledgerAt(connection, { now: () => clock.now });
      onTestFinished(() => ledger.database.close());
      return ledger;
    };
    return { one: await open(), other: await open(), clock };
  }

  it('is held by one, until it is released', async () => {
    const { one, other } = await processes();
    const seen: string[] = [];
    const release = await acquireCommitLock(one, 'lease', NO_WAIT);
    const later = acquireCommitLock(other, 'lease', NO_WAIT).then(async (end) => {
      seen.push('other');
      await end();
    });
    await (await acquireCommitLock(other, 'another lease', NO_WAIT))();
    await new Promise((resolve) => setTimeout(resolve, 250));
    seen.push('one');
    await release();
    await later;
    expect(seen).toEqual(['one', 'other']);
    await (await acquireCommitLock(one, 'lease', NO_WAIT))();
  });

  it('is waited for within the deadline', async () => {
    const { one, other } = await processes();
    const release = await acquireCommitLock(one, 'lease', NO_WAIT);
    await expect(
      withinDeadline(0.3, (deadline) => acquireCommitLock(other, 'lease', deadline)),
    ).rejects.toThrow();
    await release();
  });

  it.each([
    ['expires after ten seconds, if its process has died', '2026-11-21T09:00:10Z'],
    ['of a clock that was set back does not hold for long', '2026-11-21T08:00:00Z'],
  ])('%s', async (_, now) => {
    const { one, other, clock } = await processes();
    // Nothing renews it.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const release = await acquireCommitLock(one, 'lease', NO_WAIT);
    clock.now = now;
    const end = await acquireCommitLock(other, 'lease', NO_WAIT);
    // It is not its own any more.
    await release();
    clock.now = now.replace('Z', '.5Z');
    await expect(
      withinDeadline(0.3, (deadline) => acquireCommitLock(one, 'lease', deadline)),
    ).rejects.toThrow();
    await end();
  });
});
