import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { performanceFiles, readMeasurements, writePerformance } from '../../bench/performance/files.ts';
import { thisMachine } from '../../bench/performance/machine.ts';
import { withTopic } from '../../bench/performance/measurements.ts';
import { PerformanceRecord } from '../../bench/performance/record.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { ROW, TOPIC } from './measurements.ts';

const MATTER = { name: 'check', file: '', comparisons: [], notes: [], measure: async () => new Map() };
const BEGAN = new Date('2026-11-22T08:15:30Z');
const MEASURED = {
  kind: 'measured',
  results: [ROW].map((row) => ({ ...row, suite: 'check' })),
  runs: 5,
} as const;
const FAILED = { kind: 'failed', thrown: new Error('no space left on build-host-7') } as const;

const pageIn = (folder: string) => readFileSync(join(folder, 'performance.md'), 'utf8');

describe('docs/performance.md', () => {
  it('is what the measurements say, with its pictures: `npm run bench -- --render` writes it', () => {
    const docs = projectFile('docs');
    for (const [name, content] of performanceFiles(readMeasurements(docs))) {
      expect(readFileSync(join(docs, name), 'utf8'), name).toBe(content);
    }
  });

  it('names no machine', () => {
    expect(Object.values(thisMachine()).map(String)).not.toContain(hostname());
  });
});

describe('a measurement', () => {
  it('is not replaced by a reason why there is none', () => {
    const before = { topics: { check: TOPIC } };
    expect(withTopic(before, 'check', { date: '', notMeasured: 'it failed' })).toEqual(before);
  });
});

describe('the record of a bench', () => {
  it('is written after each topic, and goes on from what is there', () => {
    const folder = temporaryFolder();
    new PerformanceRecord(folder, 0.1).add(MATTER, BEGAN, { ...MEASURED, seconds: 12.4 });
    new PerformanceRecord(folder, 3).add({ ...MATTER, name: 'rules' }, BEGAN, { ...MEASURED, seconds: 1 });
    const { topics } = readMeasurements(folder);
    expect(topics.check).toMatchObject({ date: '2026-11-22 08:15 UTC', runs: 5, seconds: 12, load: 0.1 });
    expect(topics.rules).toMatchObject({ load: 3 });
    expect(pageIn(folder)).toContain('### check');
    expect(pageIn(folder)).toContain('### rules');
  });

  it('keeps what was measured when the topic fails, and says nothing of the cause', () => {
    const folder = temporaryFolder();
    const record = new PerformanceRecord(folder, 0.1);
    record.add(MATTER, BEGAN, { ...MEASURED, seconds: 12 });
    const page = pageIn(folder);
    record.add(MATTER, BEGAN, FAILED);
    expect(pageIn(folder)).toBe(page);
    record.add({ ...MATTER, name: 'rules' }, BEGAN, FAILED);
    expect(pageIn(folder)).toContain('### rules\n\nNot measured: it failed.');
    expect(pageIn(folder)).not.toContain('build-host-7');
  });

  it('does not begin beside a record that it cannot read, and leaves it as it is', () => {
    const folder = temporaryFolder();
    for (const text of ['{"topics": {', '{"topics": {"check": {"date": 1}}}']) {
      writeFileSync(join(folder, 'performance.json'), text);
      expect(() => new PerformanceRecord(folder, 0.1)).toThrow(
        /performance\.json: expected what an earlier bench/,
      );
      expect(readFileSync(join(folder, 'performance.json'), 'utf8')).toBe(text);
    }
  });

  it('knows how long it will take from the last time, by the number of runs', () => {
    const folder = temporaryFolder();
    writePerformance(folder, { topics: { check: { ...TOPIC, runs: 5, seconds: 50 } } });
    const record = new PerformanceRecord(folder, 0.1);
    expect(record.expectedSeconds([MATTER], 2)).toBe(20);
    expect(record.expectedSeconds([{ ...MATTER, once: true }], 2)).toBe(10);
    expect(record.expectedSeconds([MATTER, { ...MATTER, name: 'rules' }], 2)).toBeUndefined();
  });
});

describe('the files of the page', () => {
  it('leave nothing unfinished behind, also when one of them cannot be written', () => {
    const folder = temporaryFolder();
    writePerformance(folder, { topics: { check: TOPIC } });
    const page = pageIn(folder);
    expect(readdirSync(folder).sort()).toEqual(['performance.json', 'performance.md']);
    const blocked = temporaryFolder();
    writeFileSync(join(blocked, 'performance.json'), '{"topics":{}}');
    mkdirSync(join(blocked, 'performance.md', 'in the way'), { recursive: true });
    expect(() => writePerformance(blocked, { topics: { check: TOPIC } })).toThrow();
    expect(readdirSync(blocked).sort()).toEqual(['performance.json', 'performance.md']);
    expect(pageIn(folder)).toBe(page);
  });
});
