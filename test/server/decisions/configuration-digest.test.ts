import { appendFileSync, copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { configurationDigest } from '../../../src/server/decisions/heartbeat.ts';
import { confFile, projectFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

const digestOf = async (text: string) =>
  configurationDigest(
    await requireConfiguration({ configFiles: [confFile(text)], environment: {} }, SECTIONS),
  );
const limit = (seconds: number, service = '') =>
  `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = ${seconds}\n[service]\n${service}`;

describe('the digest of a configuration', () => {
  it('is equal where the values are, wherever they are written, and another one where one differs', async () => {
    const one = await digestOf(limit(60));
    expect(one).toMatch(/^[0-9a-f]{16}$/);
    expect(await digestOf(`# A comment.\n${limit(60, 'deadline = 30\n')}`)).toBe(one);
    expect(await digestOf(limit(61))).not.toBe(one);
  });

  it('is the same whatever the port, the log of decisions and the secrets are', async () => {
    const one = await digestOf(limit(60, 'operator_tokens = first-0123456789abc\n'));
    expect(
      await digestOf(
        limit(60, 'operator_tokens = other-0123456789abc\nport = 1\nadmin_port = 9002\ndecision_log = d-2\n'),
      ),
    ).toBe(one);
    const ledger = (password: string) =>
      `${limit(60)}[ledger]\nconnection = postgresql://u:${password}@127.0.0.1/l\n`;
    expect(await digestOf(ledger('one'))).toBe(await digestOf(ledger('two')));
  });

  it('is another one when a file that an option names has changed', async () => {
    const file = join(temporaryFolder(), 'rules.yaml');
    const text = `[enforcement]\nenabled_filters = RulesFilter\nrules_path = ${file}\n`;
    copyFileSync(projectFile('etc/rules/dates.yaml'), file);
    const one = await digestOf(text);
    expect(await digestOf(text)).toBe(one);
    appendFileSync(file, '# Another line.\n');
    expect(await digestOf(text)).not.toBe(one);
  });
});
