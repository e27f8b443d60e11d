import { describe, expect, it } from 'vitest';
import { DecisionReader } from '../../src/decisions/reader.ts';
import { aRecord } from '../support/decision-logs.ts';

function read(text: string) {
  const reader = new DecisionReader();
  const records = [...reader.push(Buffer.from(text)), ...reader.end()];
  return { names: records.map(({ lease_name }) => lease_name), skipped: reader.skipped };
}

const line = (lease_name: string) => JSON.stringify(aRecord({ lease_name }));

describe('DecisionReader', () => {
  it('reads a decision from each line, also the last one without an end', () => {
    expect(read(`${line('a')}\n${line('b')}\r\n${line('c')}`)).toEqual({
      names: ['a', 'b', 'c'],
      skipped: { broken: 0, tooLong: 0 },
    });
  });

  it('takes lines without anything on them for nothing', () => {
    expect(read(`\n\n${line('a')}\n  \r\n\n`)).toEqual({ names: ['a'], skipped: { broken: 0, tooLong: 0 } });
  });

  it.each([
    ['cut off', line('x').slice(0, 200)],
    ['two in one', line('x') + line('y')],
    ['no JSON', 'Listening on http://127.0.0.1:8642'],
    ['another program’s', '{"level":30,"time":1700000000000,"msg":"request"}'],
    ['a list', `[${line('x')}]`],
    ['of an unknown outcome', line('x').replace('"outcome":"allowed"', '"outcome":"perhaps"')],
    ['of no time', line('x').replace('2026-11-20T08:00:00.000Z', 'yesterday')],
    ['without a field', line('x').replace('"failed":false,', '')],
    ['no text', `\u0000\u0001${line('x')}`],
    ['nested too deeply', '['.repeat(100_000)],
    ['a number', '1e999'],
    ['null', 'null'],
  ])('leaves out and counts a line that is %s', (_, broken) => {
    expect(read(`${line('a')}\n${broken}\n${line('b')}\n`)).toEqual({
      names: ['a', 'b'],
      skipped: { broken: 1, tooLong: 0 },
    });
  });

  it('counts a last line that was cut off', () => {
    expect(read(`${line('a')}\n${line('b').slice(0, -1)}`)).toEqual({
      names: ['a'],
      skipped: { broken: 1, tooLong: 0 },
    });
  });

  it('leaves out a line that is too long, even if it is a decision', () => {
    const long = JSON.stringify(aRecord({ warnings: Array(1200).fill('w'.repeat(1000)) }));
    expect(read(`${long}\n${line('a')}\n`)).toEqual({ names: ['a'], skipped: { broken: 0, tooLong: 1 } });
  });
});
