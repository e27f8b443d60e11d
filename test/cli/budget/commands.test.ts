import { userInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { budgetCommand } from '../../../src/cli/budget.ts';
import { copiedLedgers } from '../../ledger/recorded-leases.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { giveBudgets } from '../../support/ledgers.ts';
import { printed, refused } from '../../support/run-command.ts';
import { commandsOn, fill } from '../ledger/setup.ts';

const newLedger = copiedLedgers(fill);
const YEAR = ['--from', '2100-01-01', '--until', '2101-01-01'];

describe('budget set', () => {
  it('sets a budget, and prints the budgets of the project', async () => {
    const { budget } = commandsOn(await newLedger());
    const stdout = printed(await budget('set', 'climate', '--amount', '12.5', ...YEAR));
    expect(stdout).toMatch(/^BUDGET +PROJECT +USER +FROM +UNTIL +AMOUNT +TAKEN +LEFT +%$/m);
    expect(stdout).toMatch(
      /^2 +climate +2100-01-01T00:00:00Z +2101-01-01T00:00:00Z +12\.5 node-hours +0 +12\.5 +0\.0$/m,
    );
    const ofUser = await budget('set', 'climate', '--user', 'bob', '--amount', '1', ...YEAR);
    expect(ofUser.stdout).toMatch(/^3 +climate +bob /m);
  });

  it('changes the budget with the same start', async () => {
    const { budget } = commandsOn(await newLedger());
    const years = ['--from', '2026-01-01', '--until', '2099-01-01'];
    const { stdout } = await budget('set', 'climate', '--amount', '5', ...years);
    expect(stdout).toMatch(
      /^1 +climate +2026-01-01T00:00:00Z +2099-01-01T00:00:00Z +5 node-hours +48 +-43 +960\.0$/m,
    );
  });

  it.each([
    [
      ['--amount', '1', '--from', '2027-01-01', '--until', '2100-01-01'],
      /overlap with budget 1 of project climate, from 2026-01-01T00:00:00Z until 2098-01-01T00:00:00Z/,
    ],
    [['--amount', 'much', ...YEAR], /--amount: expected a decimal number of node-hours, .*, got "much"/],
    [['--amount', '1', '--from', 'now', '--until', '2101-01-01'], /--from: expected an ISO 8601 date/],
    [
      ['--amount', '1', '--from', '2100-01-01', '--until', '2100-01-01'],
      /--until: expected a date after the start, got "2100-01-01"/,
    ],
    [['--amount', '1', '--user', '', ...YEAR], /--user: expected an id/],
  ])('exits with 2 and one line, and changes nothing: %#', async (flags, message) => {
    const { budget } = commandsOn(await newLedger());
    const told = await budget('set', 'climate', ...flags);
    expect(told).toEqual(refused(/^error: [^\n]*\n$/));
    expect(told.stderr).toMatch(message);
    expect(JSON.parse((await budget('history', '--format', 'json')).stdout)).toHaveLength(1);
  });
});

describe('budget import', () => {
  it.each(['climate,,2026-01-01,2098-01-01,10', '"climate",,2026-01-01,2098-01-01,"2000'])(
    'refuses a file that was cut off within its last amount: %s',
    async (line) => {
      const { budget } = commandsOn(await newLedger());
      const text = `project_id,user_id,valid_from,valid_until,amount\r\n${line}`;
      const imported = (end: string) =>
        budget('import', temporaryFile('budgets.csv', text + end), '--reason', 'why');
      expect((await imported('')).code).toBe(2);
      expect(JSON.parse((await budget('history', '--format', 'json')).stdout)).toHaveLength(1);
      const end = line.endsWith('"2000') ? '"' : '\r\n';
      expect(printed(await imported(end))).toContain('0 set, 1 changed');
    },
  );
});

describe('an id that looks like another one', () => {
  it.each([
    [
      'cli\u200bmate',
      'alice',
      /^error: project: expected visible characters and plain spaces only, got \\u200b$/m,
    ],
    ['climate', '\u202eecila', /^error: --user: expected visible characters .*, got \\u202e$/m],
  ])('is refused: %j, %j', async (project, user, said) => {
    const { budget } = commandsOn(await newLedger());
    expect(await budget('set', project, '--user', user, '--amount', '1', ...YEAR)).toEqual(refused(said));
  });

  it('is shown and can be removed where it is there already', async () => {
    const connection = await newLedger();
    await giveBudgets(connection, [
      {
        projectId: 'climate\u200b ',
        userId: 'a\nb',
        amount: '7',
        from: '2100-01-01',
        until: '2101-01-01',
      },
    ]);
    const { budget } = commandsOn(connection);
    expect((await budget('list')).stdout).toContain('climate\\u200b  ');
    const removed = await budget('remove', 'climate\u200b ', '--user', 'a\nb', '--from', '2100-01-01');
    expect(removed).toMatchObject({ code: 0, stderr: '' });
    expect((await budget('list')).stdout).not.toContain('200b');
  });
});

describe('budget remove', () => {
  it('removes a budget', async () => {
    const { budget } = commandsOn(await newLedger());
    const stdout = printed(await budget('remove', 'climate', '--from', '2026-01-01'));
    expect(stdout).not.toContain('climate');
  });

  it('exits with 2 if no budget starts then', async () => {
    const { budget } = commandsOn(await newLedger());
    expect(await budget('remove', 'climate', '--user', 'bob', '--from', '2026-01-01')).toEqual(
      refused(
        'user bob in project climate has no budget that starts at 2026-01-01T00:00:00Z; budget show prints its budgets',
      ),
    );
  });
});

it('budget show prints what is left, and the open leases that are charged to it', async () => {
  const { budget } = commandsOn(await newLedger(), 'usage_budget_unit = service units');
  const { stdout } = await budget('show', 'climate');
  expect(stdout).toMatch(/^1 +climate .* 1000 service units +48 +952 +4\.8$/m);
  expect(stdout).toMatch(/^#1 +lease-1 +alice +first +usage_budget\/1 +24 service units /m);
  expect(stdout).not.toContain('second');
  const json = JSON.parse((await budget('show', 'climate', '--format', 'json')).stdout);
  expect(json).toMatchObject({
    unit: 'service units',
    budgets: [
      {
        amount: { amount: '3600000000000', unit_hours: '1000' },
        taken: { amount: '172800000000', unit_hours: '48' },
        left: { amount: '3427200000000', unit_hours: '952' },
        percent: '4.8',
      },
    ],
    leases: [{ row: '1', charges: [{ account: 'usage_budget/1', amount: '86400000000', unit_hours: '24' }] }],
  });
});

it.each([
  [
    'nobody',
    'warning: project nobody has no budget, and the ledger has none of its leases: is this the id of the project?\n',
    0,
  ],
  ['ocean', 'warning: project ocean has no budget\n', 1],
])('budget show of a project without a budget warns: %s', async (project, stderr, leases) => {
  const { budget } = commandsOn(await newLedger());
  const table = await budget('show', project);
  expect(table).toMatchObject({ code: 0, stderr });
  expect(table.stdout === '').toBe(leases === 0);
  const json = await budget('show', project, '--format', 'json');
  expect(json.stderr).toBe(stderr);
  expect(JSON.parse(json.stdout)).toMatchObject({ budgets: [] });
  expect(JSON.parse(json.stdout).leases).toHaveLength(leases);
});

describe('budget list and history', () => {
  it('print the budgets of all projects, and who set them, when and why', async () => {
    const { budget } = commandsOn(await newLedger());
    await budget('set', 'ocean', '--amount', '7', ...YEAR, '--who', 'dean', '--reason', 'a grant');
    await budget('remove', 'ocean', '--from', '2100-01-01');
    await budget('set', 'ocean', '--amount', '8', ...YEAR);
    const listed = (await budget('list')).stdout;
    expect(listed).toMatch(/^1 +climate /m);
    expect(listed).toMatch(/^2 +ocean .* 8 node-hours /m);
    expect(JSON.parse((await budget('list', '--format', 'json')).stdout)).toHaveLength(2);
    const { stdout } = await budget('history', 'ocean');
    expect(stdout).not.toContain('climate');
    expect(stdout).toMatch(/Z +set +2 +ocean .* 7 node-hours +dean +a grant$/m);
    expect(stdout).toMatch(new RegExp(`Z +removed +2 +ocean .* 7 node-hours +${userInfo().username}$`, 'm'));
    const json = JSON.parse((await budget('history', 'ocean', '--format', 'json')).stdout);
    expect(json.map(({ operation }: { operation: string }) => operation)).toEqual(['set', 'removed', 'set']);
    expect(json[0]).toMatchObject({ amount: '25200000000', unit_hours: '7', who: 'dean', reason: 'a grant' });
  });

  it('send no control characters to the terminal', async () => {
    const connection = await newLedger();
    const hostile = '\u001b[2Jforged\r\nrow';
    // As they could be set before ids had to be visible.
    await giveBudgets(connection, [{ projectId: hostile, userId: hostile, amount: '7' }]);
    const { budget } = commandsOn(connection);
    const author = ['--who', hostile, '--reason', hostile];
    await budget('set', 'forged', '--amount', '7', ...YEAR, ...author);
    for (const args of [['list'], ['history'], ['show', hostile], ['history', '--format', 'json']]) {
      const { stdout } = await budget(...args);
      expect(stdout).toContain('forged');
      expect(stdout).not.toMatch(/(?!\n)\p{Cc}/u);
    }
  });
});

it('budget --endpoint asks no service if the file of authorities has none, for which Node would take its own', async () => {
  const flags = ['--endpoint', 'https://127.0.0.1:1', '--ca-file', temporaryFile('ca.pem', '')];
  expect(await runInProcess(budgetCommand(), ['list', ...flags])).toEqual(
    refused(/--ca-file: .*ca\.pem holds no certificate in PEM/),
  );
});
