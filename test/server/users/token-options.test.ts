import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { readConfiguration } from '../../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { startProblems } from '../../../src/server/configuration/start-checks.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

async function mistakesOf(...lines: string[]): Promise<string[]> {
  const conf = confFile(`${lines.join('\n')}\n`);
  const configuration = await readConfiguration({ environment: {}, configFiles: [conf] }, SECTIONS);
  const problems = configuration.problems.filter(({ severity }) => severity === 'error');
  const found = problems.length > 0 ? problems : startProblems(configuration);
  return found.map((problem) => formatProblem(problem).replaceAll(conf, 'CONF'));
}

describe('[service] admin_roles', () => {
  it.for([
    ['admin_roles = cloud_admin,member', 'CONF:2: [service] admin_roles: ', 'reader_roles too, got "member"'],
    ['manager_roles = admin', 'admin_roles: ', 'manager_roles too, got "admin"'],
  ])('%s is a mistake: members would be operators', async ([line = '', place = '', rest = '']) => {
    expect((await mistakesOf('[service]', line)).join('\n')).toContain(
      `${place}expected roles that are not in ${rest}`,
    );
  });

  it('may have the roles of services', async () => {
    expect(await mistakesOf('[service]', 'admin_roles = admin,service')).toEqual([]);
  });
});

describe('[service] operator_tokens, reader_tokens and metrics_tokens', () => {
  it.for([
    ['operator_tokens', 'tokens'],
    ['reader_tokens', 'tokens'],
    ['reader_tokens', 'operator_tokens'],
    ['metrics_tokens', 'tokens'],
    ['metrics_tokens', 'operator_tokens'],
    ['metrics_tokens', 'reader_tokens'],
    ['operator_tokens', '[skypilot] tokens'],
    ['metrics_tokens', '[kubernetes] tokens'],
  ])('%s beside %s is a mistake, which does not show the token', async ([list = '', other = '']) => {
    const [, section = '[service]', name = ''] = /^(\[\w+\])? ?(\w+)$/.exec(other) ?? [];
    const mistakes = await mistakesOf(
      ...['[service]', `${list} = same-0123456789abcdef`],
      ...[section, `${name} = other-0123456789abcdef,same-0123456789abcdef`],
    );
    expect(mistakes).toEqual([
      expect.stringContaining(
        `[service] ${list}: expected tokens that are in no other list, got one that is in ${other} too`,
      ),
    ]);
    expect(mistakes.join()).not.toContain('same-0123456789abcdef');
  });

  it('finds a token of a file in another list', async () => {
    const file = temporaryFile('operators', '# ours\nsame-0123456789abcdef\n');
    expect(
      await mistakesOf('[service]', `operator_tokens_file = ${file}`, 'tokens = same-0123456789abcdef'),
    ).toEqual([expect.stringContaining('got one that is in tokens too')]);
  });

  it.for([
    ...['service', 'skypilot', 'kubernetes'].map((section) => [section, 'tokens'] as const),
    ...['operator_tokens', 'reader_tokens', 'metrics_tokens'].map((list) => ['service', list] as const),
  ])('[%s] %s refuses what is shorter than 16 characters, and does not show it', async ([section, list]) => {
    const short = temporaryFile('short', `sixteen-letters-\nfifteen-letters\n`);
    const inLine = await mistakesOf(`[${section}]`, `${list} = sixteen-letters-,fifteen-letters`);
    const inFile = await mistakesOf(`[${section}]`, `${list}_file = ${short}`);
    expect(inLine.join()).toMatch(new RegExp(`^CONF:2: \\[${section}\\] ${list}: expected .* at least 16`));
    expect(inFile.join()).toMatch(new RegExp(`^CONF:2: \\[${section}\\] ${list}_file: ${short}:2: expected`));
    expect([...inLine, ...inFile].join()).not.toContain('letters');
    expect(await mistakesOf(`[${section}]`, `${list} = sixteen-letters-`)).toEqual([]);
  });

  it('refuses empty values, empty files and what is no token', async () => {
    const empty = temporaryFile('operators', '# nobody\n');
    for (const [line, mistake] of [
      ['operator_tokens =', 'operator_tokens: '],
      ['reader_tokens = $UNSET_ANYWHERE', 'reader_tokens: '],
      ['operator_tokens = a b', 'operator_tokens: expected a list of ASCII texts'],
      ['reader_tokens_file = /nowhere/at/all', 'reader_tokens_file: '],
      [`metrics_tokens_file = ${empty}`, 'metrics_tokens_file: '],
    ] as const) {
      expect(await mistakesOf('[service]', line), line).toEqual([
        expect.stringContaining(`CONF:2: [service] ${mistake}`),
      ]);
    }
  });

  it('are read again when their file changes; one that was cut off keeps those before', async () => {
    const file = temporaryFile('operators', 'op-1-0123456789abcdef\n');
    const { service, logger } = await runServiceOnFile(
      `[service]\nport = 0\ntokens = t-0123456789abcdef\noperator_tokens_file = ${file}\n`,
    );
    writeFileSync(file, '');
    await service.credentialsChanged();
    expect(JSON.stringify(logger.lines)).toContain('expected at least one token, got none');
    writeFileSync(file, 't-0123456789abcdef\n');
    await service.credentialsChanged();
    expect(JSON.stringify(logger.lines)).toContain('got one that is in tokens too');
    writeFileSync(file, 'op-2-0123456789abcdef\n');
    await service.credentialsChanged();
    expect(logger.lines.at(-1)).toMatchObject({ message: 'token and certificate files read again' });
  });

  it('that are lost in a reload leave nothing open', async () => {
    const text = (line: string) => `[service]\nport = 0\n${line}\n`;
    const { change, logger, post } = await runServiceOnFile(text('operator_tokens = op-1-0123456789abcdef'));
    expect(await change(text(''))).toBe(false);
    expect(JSON.stringify(logger.lines)).toContain('no login would be needed any more');
    expect(await change(text('reader_tokens = read-1-0123456789abcdef'))).toBe(true);
    expect((await post('/check-create', createLasting(60))).status).not.toBe(401);
  });
});
