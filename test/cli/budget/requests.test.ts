/** Asking for more budget, and granting it, by commands: on the ledger itself, and at a service. */
import { describe, expect, it, vi } from 'vitest';
import { budgetCommand } from '../../../src/cli/budget.ts';
import { copiedLedgers } from '../../ledger/recorded-leases.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import type { CommandResult } from '../../support/run-command.ts';
import { refusedWith } from '../../support/run-command.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { commandsOn, fill } from '../ledger/setup.ts';

const newLedger = copiedLedgers(fill);
const WISH = ['request', 'climate', '--amount', '5', '--until', '2097-01-01', '--reason', 'a workshop'];
const WHY = ['--reason', 'fine'];

type Run = (...args: string[]) => Promise<CommandResult>;

async function local(): Promise<Run> {
  return commandsOn(await newLedger()).budget;
}

/** As an operator. */
async function remote(): Promise<Run> {
  const { url } = await runServiceOf({
    service: { operator_tokens: ['of-an-operator-0123456789abcdef'] },
    ledger: { connection: await newLedger() },
    enforcement: { enabled_filters: ['UsageBudgetFilter'] },
  });
  vi.stubEnv('BLAZAR_ENFORCEMENT_TOKEN', 'of-an-operator-0123456789abcdef');
  return (...args) => runInProcess(budgetCommand(), [...args, '--endpoint', url]);
}

describe.each([
  ['on the ledger', local],
  ['at a service', remote],
] as const)('requests by commands, %s', (_, ground) => {
  it('are made, listed, endorsed and granted, once', async () => {
    const budget = await ground();
    const made = await budget(...WISH, '--format', 'json');
    expect({ code: made.code, stderr: made.stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(made.stdout)).toMatchObject([
      {
        request: '1',
        until: '2097-01-01T00:00:00Z',
        amount: { unit_hours: '5', amount: '18000000000' },
        state: 'requested',
        granted: null,
      },
    ]);
    expect((await budget('endorse', '1')).stdout).toMatch(/^1 +endorsed +climate +5 node-hours +2097/m);
    expect((await budget('requests')).stdout).toMatch(/^1 +endorsed +climate .* a workshop/m);
    const granted = await budget('grant', '1', '--amount', '4', ...WHY);
    expect(granted.stdout).toMatch(/^1 +changed +climate .* fine +4 until 2097-01-01T00:00:00Z$/m);
    expect(await budget('grant', '1', '--amount', '4', ...WHY)).toEqual(granted);
    expect((await budget('show', 'climate')).stdout).toMatch(/^1 +climate +.* 1004 node-hours/m);
    expect((await budget('history', 'climate')).stdout).toMatch(/ request 1 by .*: fine$/m);
    expect((await budget('requests')).stdout).not.toContain('climate');
    expect((await budget('requests', 'climate', '--state', 'all')).stdout).toContain('changed');
    expect((await budget('requests', 'ocean', '--state', 'changed')).stdout).not.toContain('climate');
  });

  it('are refused and withdrawn, and then nothing more can be done', async () => {
    const budget = await ground();
    await budget(...WISH);
    expect((await budget('refuse', '1', '--reason', 'not now')).stdout).toMatch(/^1 +refused .* not now *$/m);
    const late = await budget('grant', '1', ...WHY);
    expect(late).toEqual(refusedWith('the request was refused already, by '));
    await budget(...WISH);
    expect((await budget('withdraw', '2')).stdout).toMatch(/^2 +withdrawn/m);
  });

  it('say what is wrong', async () => {
    const budget = await ground();
    const changed = (flag: string, value: string) =>
      WISH.map((one, at) => (WISH[at - 1] === flag ? value : one));
    for (const [args, expected] of [
      [changed('--amount', 'much'), /--amount: expected a decimal number/],
      [changed('--amount', '0'), /expected more than 0/],
      [changed('--until', 'soon'), /--until: expected an ISO 8601 date/],
      [changed('--until', '2020-01-01'), /expected a time in the future/],
      [changed('--reason', ' '), /expected a reason/],
      [changed('--reason', '\u200b\ufe0f \u3164'), /expected a reason/],
      [[...WISH, '--user', 'zoe'], /the user has no budget of their own/],
      [['grant', '99', ...WHY], /there is no request|there is no such request/],
      [['grant', 'x', ...WHY], /there is no request|there is no such request/],
    ] as const) {
      const { code, stdout, stderr } = await budget(...args);
      expect({ args, code, stdout, stderr }).toEqual({
        args,
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(expected),
      });
    }
  });
});
