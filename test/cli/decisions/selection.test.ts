import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addSelectionFlags, type SelectionFlags, selector } from '../../../src/cli/decisions/selection.ts';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { aRecord, decisionsInFile } from '../../support/decision-logs.ts';
import { projectFile } from '../../support/files.ts';

const EXAMPLE = decisionsInFile(projectFile('examples/decisions.jsonl'));

/** What a command with these flags takes. */
function selected(args: readonly string[], records: readonly DecisionRecord[] = EXAMPLE): DecisionRecord[] {
  const command = addSelectionFlags(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: 'user' });
  return records.filter(selector(command.opts<SelectionFlags>()));
}

describe('the flags of a selection', () => {
  it.each<[string[], (record: DecisionRecord) => boolean]>([
    [[], () => true],
    [['--project', 'climate'], (record) => record.project_id === 'climate'],
    [['--project', 'climate', '--project', 'staff'], (record) => record.project_id === 'climate'],
    [['--user', 'bob', '--user', 'dave'], ({ user_id }) => user_id === 'bob' || user_id === 'dave'],
    [
      ['--filter', 'ExternalServiceFilter'],
      ({ filters }) =>
        filters.some((one) => one.filter === 'ExternalServiceFilter' && one.outcome !== 'allowed'),
    ],
    [
      ['--outcome', 'failed', '--outcome', 'allowed-on-error'],
      ({ outcome }) => outcome === 'failed' || outcome === 'allowed-on-error',
    ],
    [['--operation', 'end', '--operation', 'update'], ({ operation }) => operation !== 'create'],
    [['--since', '2026-11-19T14:03:02.119Z'], ({ time }) => time >= '2026-11-19T14:03:02.119Z'],
    [['--until', '2026-11-19T14:03:02.119Z'], ({ time }) => time < '2026-11-19T14:03:02.119Z'],
    [
      ['--since', '2026-11-19 10:00', '--until', '2026-11-19 14:00'],
      ({ time }) => time >= '2026-11-19T10:00:00.000Z' && time < '2026-11-19T14:00:00.000Z',
    ],
    [['--project', 'genomics', '--outcome', 'allowed'], (r) => r.project_id === 'genomics' && r.allowed],
    [['--user', 'nobody'], () => false],
  ])('take what they say: %j', (args, isMeant) => {
    expect(selected(args)).toEqual(EXAMPLE.filter(isMeant));
  });

  it('count durations back from the current time', () => {
    const ago = (lease_name: string, seconds: number) =>
      aRecord({ lease_name, time: new Date(Date.now() - seconds * 1000).toISOString() });
    const records = [ago('days', 200_000), ago('hours', 7500), ago('minutes', 400)];
    const names = (...args: string[]) => selected(args, records).map(({ lease_name }) => lease_name);
    expect(names('--since', '3h')).toEqual(['hours', 'minutes']);
    expect(names('--until', '3h')).toEqual(['days']);
    expect(names('--since', '3h', '--until', '60m')).toEqual(['hours']);
  });

  it.each([
    [
      '--outcome',
      'denied',
      'Allowed choices are allowed, changed, rejected, failed, exempt, audit, allowed-on-error, bypassed.',
    ],
    [
      '--operation',
      'delete',
      'Allowed choices are create, update, commit-create, commit-update, end, skypilot.validate, ',
    ],
    ['--since', '5w', '--since: expected a date in ISO 8601, today, yesterday'],
    ['--until', '2026-13-01', '--until: expected a date'],
  ])('are refused where they mean nothing: %s %s', (flag, value, message) => {
    expect(() => selected([`${flag}=${value}`])).toThrow(message);
  });
});
