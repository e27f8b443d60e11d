import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { text as wholeText } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serviceOptions } from '../../src/server/configuration/options.ts';
import { startService } from '../../src/server/service.ts';
import { projectFile, valuesOnly } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';
import { unusedPort } from '../support/unused-port.ts';

const HEALTH_CHECK = 'etc/container/healthcheck.mjs';

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

const dockerfile = readFileSync(projectFile('Dockerfile'), 'utf8');
/** The instructions of each stage: what compiles, what collects the rest, and the image. test/etc/image.proof.test.ts builds it. */
const [, compiled = [], collected = [], image = []] = dockerfile
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split(/^(?=FROM )/m)
  .map((stage): Instruction[] =>
    [...stage.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, name = '', rest = '']) => ({ name, rest })),
  );
const only = (instructions: readonly Instruction[], name: string) => {
  const found = instructions.filter((instruction) => instruction.name === name).map(({ rest }) => rest);
  expect(found, name).toHaveLength(1);
  return found[0] ?? '';
};
const environment = () =>
  Object.fromEntries(
    [...only(image, 'ENV').matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
  );
/** The files of the project that go into a stage. */
const copied = (stage = [...compiled, ...collected]) =>
  stage
    .filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from'))
    .flatMap(({ rest }) => rest.split(' ').slice(0, -1));

describe('Dockerfile', () => {
  it('has an exact version of Node.js that is new enough', () => {
    const [, version = ''] = /^ARG NODE_VERSION=(\d+\.\d+\.\d+)$/m.exec(dockerfile) ?? [];
    const { engines } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const [least = 0, leastMinor = 0] = engines.node.replace('>=', '').split('.').map(Number);
    expect(major > least || (major === least && minor >= leastMinor), version).toBe(true);
  });

  it('runs as the user nobody, by number, who owns the folder of the ledger alone', () => {
    expect(only(image, 'USER')).toBe('65534:65534');
    expect(image.filter(({ rest }) => rest.includes('--chown')).map(({ rest }) => rest)).toEqual([
      '--from=root --chown=65534:65534 /state /var/lib/blazar-enforcement',
    ]);
  });

  it('exposes the port on which it listens', () => {
    const { OS_SERVICE__PORT, OS_SERVICE__HOST } = environment();
    expect(only(image, 'EXPOSE')).toBe(OS_SERVICE__PORT);
    expect(Number(OS_SERVICE__PORT)).toBe(serviceOptions.parse({}).port);
    expect(OS_SERVICE__HOST).toBe('0.0.0.0');
  });

  it('has all code that the package ships, but the example', () => {
    const { files } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const folders = files.flatMap((file: string) => /^dist\/(.*)/.exec(file)?.slice(1) ?? []);
    expect(folders).toContain('policies');
    expect([...copied(compiled), 'external-service-example']).toEqual(expect.arrayContaining(folders));
  });

  it('gets the files that it copies, and no others of the project', () => {
    const [everything, ...exceptions] = readFileSync(projectFile('.dockerignore'), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(everything).toBe('*');
    const paths = exceptions.map((line) => line.replace('!', ''));
    expect(paths.filter((path) => !existsSync(projectFile(path)))).toEqual([]);
    const isLetIn = (path: string) =>
      paths.some((allowed) => path === allowed || path.startsWith(`${allowed}/`));
    expect(copied().filter((path) => !isLetIn(path))).toEqual([]);
  });
});

describe(HEALTH_CHECK, () => {
  const tls = projectFile('test/fixtures/tls');
  const overTls = { tls_cert_file: `${tls}/server.pem`, tls_key_file: `${tls}/server.key` };

  it.each<[string, Readonly<Record<string, string>>]>([
    ['http', {}],
    ['https', overTls],
    ['https with client certificates', { ...overTls, client_ca_file: `${tls}/ca.pem` }],
    ['http at one address', { host: '127.0.0.2' }],
    ['http at an address of IPv6', { host: '::1' }],
    ['https at an address of IPv6', { host: '::1', ...overTls }],
  ])('finds a service over %s healthy', async (_, { host, ...service }) => {
    const sources = valuesOnly({ service: { port: 0, host: host ?? '127.0.0.1', ...service } });
    const running = await startService(sources, { logger: recordingLogger() });
    onTestFinished(() => running.close());
    expect(await healthOf(new URL(running.url).port, host)).toBe(0);
  });

  it('finds nothing healthy that does not answer', async () => {
    expect(await healthOf(String(await unusedPort()))).toBe(1);
  });
});

/** The exit code of the health check: 0 is healthy. */
async function healthOf(port: string, host = '0.0.0.0'): Promise<number | null> {
  const env = { OS_SERVICE__HOST: host, OS_SERVICE__PORT: port };
  const check = spawn(process.execPath, [projectFile(HEALTH_CHECK)], { env });
  const [written, [code]] = await Promise.all([
    Promise.all([wholeText(check.stdout), wholeText(check.stderr)]),
    once(check, 'exit'),
  ]);
  expect(written).toEqual(['', '']);
  return code;
}
