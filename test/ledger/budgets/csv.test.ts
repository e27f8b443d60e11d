import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nameMistake } from '../../../src/base/visible-text.ts';
import { budgetCsv, readBudgetCsv } from '../../../src/ledger/budgets/csv.ts';
import { wantedLines } from '../../../src/ledger/budgets/file.ts';
import { exportedBudget } from '../../../src/ledger/budgets/terms.ts';
import { textMistake } from '../../../src/ledger/identity.ts';
import { ANY_CHARACTER } from '../../support/characters.ts';

const HEAD = 'project_id,user_id,valid_from,valid_until,amount';
const ROW = 'climate,,2027-01-01,2028-01-01,100';

async function read(text: string) {
  const { lines, mistakes } = await readBudgetCsv(text);
  const { wanted, mistakes: more } = wantedLines(lines, 'node-hours');
  return { wanted, mistakes: [...mistakes, ...more] };
}

/** Of a ledger that was filled before ids had to be visible, too. */
const anyId = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 255, unit: ANY_CHARACTER }),
    fc.string({ minLength: 1, maxLength: 20, unit: fc.constantFrom(...'=+-@\t\r\n\'",; ＝a1é\u202e\ufeff') }),
  )
  .filter((text) => textMistake(text) === undefined);
const budget = fc
  .record({
    id: fc.bigInt(1n, 1000n),
    projectId: anyId,
    userId: fc.option(anyId),
    validFrom: fc.bigInt(-59_000_000_000n, 253_402_300_798n),
    lasts: fc.bigInt(1n, 4_000_000_000n),
    amount: fc.bigInt(0n, 2_562_047_788_015_215n).map((millionths) => millionths * 3600n),
  })
  .map(({ lasts, ...rest }) => {
    const end = rest.validFrom + lasts;
    const validUntil = end > 253_402_300_799n ? 253_402_300_799n : end;
    return { ...rest, validUntil, taken: 5n, left: -5n };
  });

describe('budgets in CSV', () => {
  it('are the same after they were written and read, except for ids that look like others, which are refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(budget, { maxLength: 8 }), async (budgets) => {
        const text = await budgetCsv(budgets.map(exportedBudget), true);
        const { wanted, mistakes } = await read(text);
        const unclear = budgets.map(({ projectId, userId }) => [
          ...(nameMistake(projectId) === undefined ? [] : ['project_id']),
          ...(userId === null || nameMistake(userId) === undefined ? [] : ['user_id']),
        ]);
        expect(mistakes.map(({ field }) => field)).toEqual(unclear.flat());
        const clear = budgets.filter((_, index) => unclear[index]?.length === 0);
        expect(wanted.map((one) => one.wanted)).toEqual(
          clear.map(({ projectId, userId, validFrom, validUntil, amount }) => ({
            projectId,
            userId,
            validFrom,
            validUntil,
            amount,
          })),
        );
      }),
    );
  });

  it('have no cell of a person that a spreadsheet would run', async () => {
    await fc.assert(
      fc.asyncProperty(budget, async (one) => {
        const { parse } = await import('csv-parse/sync');
        const [cells = []] = parse(await budgetCsv([exportedBudget(one)], false), {
          relax_column_count: true,
        });
        for (const cell of (cells as string[]).slice(0, 2)) {
          expect(cell).not.toMatch(/^[=+\-@\t\r\n＝＋－＠]/);
        }
      }),
    );
  });

  it('are read as spreadsheets write them', async () => {
    const expected = (await read(`${HEAD}\n${ROW}`)).wanted.map(({ wanted }) => wanted);
    expect(expected).toMatchObject([{ projectId: 'climate', userId: null, amount: 360_000_000_000n }]);
    const forms = [
      `\ufeff${HEAD}\r\n${ROW}\r\n`,
      `${HEAD}\r${ROW}\r`,
      `${HEAD.replaceAll(',', ';')}\n${ROW.replaceAll(',', ';')}\n;;;;\n\n\n`,
      `${HEAD.replaceAll(',', '\t')}\n${ROW.replaceAll(',', '\t')}`,
      `"project_id", "User_ID" ,valid_from,valid_until,amount,,\n "climate",  ,"2027-01-01", 2028-01-01 ,100,,\n`,
      `amount,valid_until,left,valid_from,project_id\n100.000000,2028-01-01T00:00:00Z,99,2027-01-01 00:00,climate`,
    ];
    for (const form of forms) {
      const { wanted, mistakes } = await read(form);
      expect({ form, mistakes, wanted: wanted.map((one) => one.wanted) }).toEqual({
        form,
        mistakes: [],
        wanted: expected,
      });
    }
  });

  it('have the line of each mistake', async () => {
    const { mistakes } = await read(
      [
        HEAD,
        '"multi\nline",,2027-01-01,2028-01-01,1',
        'a,b,soon,2027-01-01T00:00:00.5Z,-1',
        '',
        ',b,2027-01-01,2026-01-01,"1,5"',
        'a,b,2027-01-01',
        'a,b,2027-01-01,2028-01-01,1,more',
      ].join('\n'),
    );
    expect(mistakes.map(({ line, field }) => [line, field])).toEqual([
      [7, null],
      [8, null],
      [2, 'project_id'],
      [4, 'valid_from'],
      [4, 'valid_until'],
      [4, 'amount'],
      [6, 'project_id'],
      [6, 'amount'],
      [6, 'valid_until'],
    ]);
    expect(mistakes[0]?.message).toBe('expected 5 cells, got 3');
    expect(mistakes.find(({ field }) => field === 'amount')?.message).toBe(
      'expected a decimal number of node-hours, 0 or more, with up to six decimals, got "-1"',
    );
  });

  it.each([
    ['', null, null, /empty file/],
    ['\r\n\r\n', null, null, /empty file/],
    ['project,valid_from,valid_until,amount\n', 1, 'project', /nearest right name is "project_id"/],
    [`${HEAD},amount\n`, 1, 'amount', /this column once/],
    ['\n\nproject_id,amount\n', 3, 'valid_from', /a column of this name/],
    [`${HEAD}\na,"b,2027-01-01,2028-01-01,1\n`, 2, null, /never closed/],
    [`${HEAD}\na,b"c,2027-01-01,2028-01-01,1\n`, 2, null, /in the middle of a cell/],
    [`${HEAD}\n"a"b,,2027-01-01,2028-01-01,1\n`, 2, null, /in the middle of a cell/],
    [`${HEAD}\n"${'x'.repeat(20_000)}",,,,\n`, 2, null, /at most 16384 characters/],
    [`${HEAD}${`\n${ROW}`.repeat(10_001)}`, null, null, /at most 10000 lines/],
    ['\n'.repeat(1e5), null, null, /at most 10000 lines/],
    ['PK\u0003\u0004 a zip', 1, 'pk\u0003\u0004 a zip', /no such column/],
  ])('%#: tell what is wrong with the file', async (text, line, field, message) => {
    const { mistakes } = await readBudgetCsv(text);
    expect(mistakes.find((one) => message.test(one.message))).toMatchObject({ line, field });
  });
});
