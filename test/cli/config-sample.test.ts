import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, projectFile } from '../support/files.ts';

const SAMPLE = 'etc/blazar.conf.sample';
const text = readFileSync(projectFile(SAMPLE), 'utf8');

async function show(conf: string): Promise<Record<string, Record<string, unknown>>> {
  const flags = ['--format', 'json', '--config-file', conf];
  const { code, stdout, stderr } = await runProgramInProcess(['config', 'show', ...flags]);
  expect({ code, errors: stderr.match(/^error.*$/gm) }).toEqual({ code: 0, errors: null });
  return JSON.parse(stdout);
}

it('config sample prints etc/blazar.conf.sample, whatever the configuration of the machine', async () => {
  const env = { OS_ENFORCEMENT__MAX_LEASE_DURATION: '60', BLAZAR_ENFORCEMENT_CONFIG: '/nowhere' };
  const { code, stdout, stderr } = await runProgramInProcess(['config', 'sample'], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout, `npm run build && node dist/src/cli/main.js config sample > ${SAMPLE}`).toBe(text);
});

it('the sample is a valid configuration, and with every default uncommented it sets the defaults', async () => {
  const defaults = await show(confFile('[enforcement]\n'));
  expect(await show(projectFile(SAMPLE))).toEqual(defaults);
  const uncommented = text.replaceAll(/^#(\w+ = .+)$/gm, '$1');
  expect(uncommented.match(/^\w+ = .+$/gm)?.length).toBeGreaterThan(5);
  // A connection that is set may hold a password, and is hidden.
  const ledger = { ...defaults.ledger, connection: '****' };
  expect(await show(confFile(uncommented))).toEqual({ ...defaults, ledger });
});

it('the sample has every option once, with its help, what is expected and its default', async () => {
  const defaults = await show(confFile('[enforcement]\n'));
  const names = [...text.matchAll(/^#(\w+) =/gm)].map(([, name]) => name);
  expect(names).toEqual(Object.values(defaults).flatMap((options) => Object.keys(options)));
  const paragraphs = text.split('\n\n').filter((paragraph) => paragraph.startsWith('#'));
  expect(paragraphs).toHaveLength(names.length);
  for (const paragraph of paragraphs) {
    expect(paragraph).toMatch(/^# \S.+(\n# .+)*\n# Expected: .+\n# Default: .+\n#\w+ =.*\s*$/);
  }
});
