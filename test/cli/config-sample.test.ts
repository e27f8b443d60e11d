import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, projectFile } from '../support/files.ts';

const SAMPLE = 'etc/blazar.conf.sample';

describe('config sample', () => {
  it('prints what stands in etc/blazar.conf.sample', async () => {
    const { code, stdout, stderr } = await runProgramInProcess(['config', 'sample']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout, `npm run build && node dist/src/cli/main.js config sample > ${SAMPLE}`).toBe(
      readFileSync(projectFile(SAMPLE), 'utf8'),
    );
  });

  it('does not depend on the configuration and the variables of the machine', async () => {
    const { stdout } = await runProgramInProcess(['config', 'sample'], {
      env: { OS_ENFORCEMENT__MAX_LEASE_DURATION: '60', BLAZAR_ENFORCEMENT_CONFIG: '/nowhere' },
    });
    expect(stdout).toBe(readFileSync(projectFile(SAMPLE), 'utf8'));
  });
});

describe(SAMPLE, () => {
  const text = readFileSync(projectFile(SAMPLE), 'utf8');
  const show = async (conf: string) => {
    const { code, stdout, stderr } = await runProgramInProcess([
      'config',
      'show',
      '--format',
      'json',
      '--config-file',
      conf,
    ]);
    expect({ code, errors: stderr.match(/^error.*$/gm) }).toEqual({ code: 0, errors: null });
    return JSON.parse(stdout) as Record<string, Record<string, unknown>>;
  };

  it('is a valid configuration as it is, and with every option that has a value set is the defaults', async () => {
    const defaults = await show(confFile('[enforcement]\n'));
    expect(await show(projectFile(SAMPLE))).toEqual(defaults);
    const uncommented = text.replaceAll(/^#(\w+ = .+)$/gm, '$1');
    expect(uncommented.match(/^\w+ = .+$/gm)?.length).toBeGreaterThan(5);
    // The connection may hold a password: what somebody has written there is not shown.
    const ledger = { ...defaults.ledger, connection: '****' };
    expect(await show(confFile(uncommented))).toEqual({ ...defaults, ledger });
  });

  it('holds every option once, with its help, what is expected and its default', async () => {
    const defaults = await show(confFile('[enforcement]\n'));
    const names = [...text.matchAll(/^#(\w+) =/gm)].map(([, name]) => name);
    expect(names).toEqual(Object.values(defaults).flatMap((options) => Object.keys(options)));
    const paragraphs = text.split('\n\n').filter((paragraph) => paragraph.startsWith('#'));
    expect(paragraphs).toHaveLength(names.length);
    for (const paragraph of paragraphs) {
      expect(paragraph).toMatch(/^# \S.+(\n# .+)*\n# Expected: .+\n# Default: .+\n#\w+ =.*\s*$/);
    }
  });
});
