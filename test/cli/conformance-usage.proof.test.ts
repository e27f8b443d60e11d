/** How `conformance` is called wrongly, and where there is nobody to test. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { conformanceCommand } from '../../src/cli/conformance.ts';
import { UsageError } from '../../src/cli/output.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { runCommand } from '../support/run-command.ts';
import { unusedPort } from '../support/services.ts';

const TLS = (name: string) => projectFile(`test/fixtures/tls/${name}`);

describe('wrong usage', () => {
  const url = 'expected an http or https URL with a host and without credentials';
  const seconds = 'expected a number of seconds above 0 and up to 3600, got';
  const ascii = 'expected ASCII text without line breaks that is not empty';

  it.for([
    [[], 'expected the URL of a policy service, or one of its endpoints'],
    [['nonsense'], `URL: ${url}`],
    [['127.0.0.1:8643'], `URL: ${url}`],
    [['ftp://127.0.0.1/'], `URL: ${url}`],
    [['http:///check'], `URL: ${url}`],
    [['https://user:pa55word@127.0.0.1/'], `URL: ${url}`],
    [['http://h/', '--create-endpoint', ''], `--create-endpoint: ${url}`],
    [['http://h/', '--update-endpoint', 'file:///tmp'], `--update-endpoint: ${url}`],
    [['http://h/', '--end-endpoint', 'on-end'], `--end-endpoint: ${url}`],
    [['http://h/', '--timeout', '0'], `--timeout: ${seconds} "0"`],
    [['http://h/', '--timeout', '1e3'], `--timeout: ${seconds} "1e3"`],
    [['http://h/', '--timeout', '3601'], `--timeout: ${seconds} "3601"`],
    [['http://h/', '--token', ''], `--token (BLAZAR_ENFORCEMENT_TOKEN): ${ascii}`],
    [['http://h/', '--bearer', 's3cret\nX-Other: 1'], `--bearer (BLAZAR_ENFORCEMENT_BEARER): ${ascii}`],
    [
      ['http://h/', '--allow-lease', '/nowhere.json'],
      '/nowhere.json: could not be read: there is no such file',
    ],
    [['http://h/', '--deny-lease', '/'], '/: could not be read: it is a folder'],
    [['http://h/', '--deny-update', '/'], '/: could not be read: it is a folder'],
    [['http://h/', '--commit-create-endpoint', 'commit'], `--commit-create-endpoint: ${url}`],
    [['http://h/', '--commit-update-endpoint', ''], `--commit-update-endpoint: ${url}`],
  ] as [string[], string][])('%j', async ([args, message]) => {
    await expect(conformanceCommand().parseAsync(args, { from: 'user' })).rejects.toThrow(
      new UsageError(message),
    );
  });

  it('is a file that is no JSON', async () => {
    const file = temporaryFile('lease.json', '{');
    const parsed = conformanceCommand().parseAsync(['http://h/', '--allow-lease', file], { from: 'user' });
    await expect(parsed).rejects.toThrow(new UsageError(`${file}: expected JSON`));
  });

  it('is a file that is no check-create, with the field that is wrong', async () => {
    const body = { context: { user_id: 'a', project_id: 'b' }, lease: { start_date: 'tomorrow' } };
    const file = temporaryFile('lease.json', JSON.stringify(body));
    const { code, stdout, stderr } = await runCommand(['conformance', 'http://h/', '--deny-lease', file]);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: ${file}: lease.start_date: expected an ISO 8601 date, got "tomorrow"\n`,
    });
  });

  it.concurrent.for([
    'http://h/ --bogus',
    'http://h/ --format xml',
    'http://h/ http://other/',
    'http://h/ --token',
  ])('ends with 2 and one line: %s', async (line) => {
    const { code, stdout, stderr } = await runCommand(['conformance', ...line.split(' ')]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^error: .+\n$/);
  });
});

describe('a service that can not be reached ends with 1 and one line', () => {
  it.for(['table', 'json'])('as %s', async (format) => {
    const url = `http://127.0.0.1:${await unusedPort()}`;
    const { code, stdout, stderr } = await runCommand(['conformance', url, '--format', format]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: POST http:.*\/check-create: no connection: connect ECONNREFUSED .*\n$/);
  });

  it('because nobody knows who vouches for its certificate; with NODE_EXTRA_CA_CERTS it is tested', async () => {
    const credentials = { cert: readFileSync(TLS('server.pem')), key: readFileSync(TLS('server.key')) };
    const server = createServer(credentials, (request, response) => {
      request.resume().on('end', () => response.writeHead(204).end());
    });
    server.on('tlsClientError', () => {});
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const url = `https://127.0.0.1:${port}`;
    for (const env of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }]) {
      const { code, stdout, stderr } = await runCommand(['conformance', url], { env });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^error: POST https:.*\/check-create: no connection: unable to verify .*\n$/);
    }
    const env = { NODE_EXTRA_CA_CERTS: TLS('ca.pem') };
    const trusted = await runCommand(['conformance', url], { env });
    expect(trusted.stderr).toBe('');
    expect(trusted.stdout).toMatch(/^create-network +passed/m);
  });
});
