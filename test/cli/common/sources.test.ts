import { describe, expect, it } from 'vitest';
import { parseDuration, parseTime } from '../../../src/cli/common/sources.ts';

const NOW = Date.parse('2026-11-20T08:00:00.500Z');

describe('parseTime', () => {
  it.each([
    ['2026-11-19T14:03:02.119Z', '2026-11-19T14:03:02.119Z'],
    ['2026-11-19 14:00', '2026-11-19T14:00:00.000Z'],
    ['2026-11-19T15:00+01:00', '2026-11-19T14:00:00.000Z'],
    ['2026-11-20', '2026-11-20T00:00:00.000Z'],
    ['today', '2026-11-20T00:00:00.000Z'],
    ['yesterday', '2026-11-19T00:00:00.000Z'],
    ['0s', '2026-11-20T08:00:00.500Z'],
    ['90s', '2026-11-20T07:58:30.500Z'],
    ['30m', '2026-11-20T07:30:00.500Z'],
    ['24h', '2026-11-19T08:00:00.500Z'],
    ['7d', '2026-11-13T08:00:00.500Z'],
  ])('reads %s', (text, expected) => {
    expect(new Date(parseTime('--since', text, NOW)).toISOString()).toBe(expected);
  });

  it('counts from the current time by default', () => {
    const before = Date.now();
    const read = parseTime('--since', '1h') + 3_600_000;
    expect(read).toBeGreaterThanOrEqual(before);
    expect(read).toBeLessThanOrEqual(Date.now());
  });

  it.each(['', '5w', '-5m', '2026-13-01', 'tomorrow', 'toString', '1h30m'])('refuses %j', (text) => {
    expect(() => parseTime('--until', text, NOW)).toThrow(
      `--until: expected a date in ISO 8601, today, yesterday (midnight UTC), or a duration before now: 90s, 30m, 24h, 7d, got ${JSON.stringify(text)}`,
    );
  });
});

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['3600', 3600],
    ['90s', 90],
    ['30m', 1800],
    ['1h', 3600],
    ['7d', 604_800],
  ])('reads %s', (text, expected) => {
    expect(parseDuration('--older-than', text, 604_800)).toBe(expected);
  });

  it.each(['', 'soon', '8d', '604801', '-1', '1.5h', '1h30m'])('refuses %j', (text) => {
    expect(() => parseDuration('--older-than', text, 604_800)).toThrow(
      `--older-than: expected a duration such as 90s, 30m, 24h or 7d of at most 604800 seconds, got ${JSON.stringify(text)}`,
    );
  });
});
