import { describe, expect, it } from 'vitest';
import type { Measurements, Row } from '../../bench/performance/measurements.ts';
import { renderedPage } from '../../bench/performance/page.ts';
import { ROW, TOPIC } from './measurements.ts';

const page = (topics: Measurements['topics']) => renderedPage({ topics });

describe('the page of performance', () => {
  it('lists the targets that are not met, before everything else', () => {
    const missed = { ...ROW, name: 'slow', ratio: 0.4, met: false };
    const unjudged = { ...ROW, name: 'known', target: null, met: null };
    const text = page({ service: { ...TOPIC, rows: [ROW, missed, unjudged] } });
    expect(text).toContain('1 of 2 targets are met. These are not:');
    expect(text).toContain('| [service](#service) | slow | 0.40 | 0.55 – 0.63 | ≥ 0.6 |');
    expect(text.indexOf('| slow')).toBeLessThan(text.indexOf('## A request'));
    expect(page({ service: TOPIC })).toContain('1 of 1 targets are met.\n');
  });

  it('warns of what was measured while others were at work, and of nothing else', () => {
    expect(page({ service: TOPIC })).not.toContain('not idle');
    const disturbed = { ...TOPIC, load: 3.21 };
    const text = page({ check: TOPIC, service: disturbed });
    expect(text).toContain('**The machine was not idle** before it measured [service](#service):');
    expect(text).toContain('10 minutes. **Load average before: 3.2.**');
    expect(text.match(/Load average before/g)).toHaveLength(1);
    expect(page({ service: disturbed })).toContain('before it measured anything here:');
  });

  it('tells apart what was measured on different machines', () => {
    const other = { ...TOPIC, machine: { ...TOPIC.machine, cores: 64 } };
    const text = page({ check: TOPIC, service: other });
    expect(text).toContain('Machine 1: 2 × AMD EPYC');
    expect(text).toContain('Machine 2: 64 × AMD EPYC');
    expect(text).toMatch(/### service\n\n.*, machine 2\.\n/);
  });

  it('has every topic once, also those that no area names', () => {
    const text = page({ unheard: TOPIC, check: TOPIC });
    expect(text.match(/^### .*/gm)).toEqual(['### check', '### unheard']);
    expect(text).toContain('## More\n\n### unheard');
  });
});

describe('the page of performance, beside an earlier commit', () => {
  const against = {
    ref: 'v0.1.0',
    hash: 'c0ffee0c0ffee',
    date: '2026-12-24 18:00 UTC',
    runs: 3,
    load: 0.1,
  };
  const better = { value: 6000, ratio: 1.5, spread: { min: 1.2, max: 1.6 }, worse: false };
  const worse = { value: 18_000, ratio: 0.5, spread: { min: 0.4, max: 0.6 }, worse: true };
  const withReference = (reference: Row['reference']) =>
    page({ service: { ...TOPIC, against, rows: [{ ...ROW, reference }] }, check: TOPIC });

  it('has what was measured there, and today beside it', () => {
    const text = withReference(better);
    expect(text).toContain('| target | met | at v0.1.0 | today beside it |');
    expect(text).toContain('| ≥ 0.6 | yes | 6,000 /s | 1.50 (1.20 – 1.60) |\n');
    expect(text).toContain('\nBeside v0.1.0 (c0ffee0): 2026-12-24 18:00 UTC, 3 runs.\n');
    expect(text).toContain('Rows: 1; not comparable: 0; worse: none.\n');
    // Only where it was measured.
    expect(text).toContain('| target | met |\n');
  });

  it('lists what is worse', () => {
    const text = withReference(worse);
    expect(text).toContain('Rows: 1; not comparable: 0; worse: 1:\n');
    expect(text).toContain('| ≥ 0.6 | yes | 18,000 /s | 0.50 (0.40 – 0.60) **worse** |\n');
    expect(text).toContain(
      '| [service](#service) | requests | v0.1.0 | 18,000 /s | 0.50 (0.40 – 0.60) **worse** |',
    );
  });

  it('says what has been measured by the bench of that commit, and why something cannot be', () => {
    expect(withReference({ ...better, ownBench: true })).toContain('| 6,000 /s \\* | 1.50 (1.20 – 1.60) |');
    expect(withReference({ notComparable: 'no such module: src/a.js' })).toContain(
      '| yes |  | not comparable: no such module: src/a.js |\n',
    );
  });
});
