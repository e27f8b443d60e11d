/** Dockerfile: the image as it is described, and that the service runs with what is copied into it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { text as wholeText } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serviceOptions } from '../../src/server/configuration/options.ts';
import { startService } from '../../src/server/service.ts';
import { confFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { unusedPort } from '../support/services.ts';

const HEALTH_CHECK = 'etc/container/healthcheck.mjs';
const CONF = '/etc/blazar/blazar.conf';
const LIMIT = '[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n';

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

const dockerfile = readFileSync(projectFile('Dockerfile'), 'utf8');
/** The instructions of each stage. */
const [, build = [], image = []] = dockerfile
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
/** The files of the project that the first stage copies. */
const copied = () =>
  build
    .filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from'))
    .flatMap(({ rest }) => rest.split(' ').slice(0, -1));

describe('Dockerfile', () => {
  it('has two stages on the same Node.js, of an exact version that is new enough', () => {
    const [, version = '', release] =
      /^ARG NODE_VERSION=(\d+\.\d+\.\d+)\n+FROM node:\$\{NODE_VERSION\}-(\w+)-slim AS build$/m.exec(
        dockerfile,
      ) ?? [];
    expect(image[0]?.rest).toBe(`node:\${NODE_VERSION}-${release}-slim`);
    const { engines } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const [least = 0, leastMinor = 0] = engines.node.replace('>=', '').split('.').map(Number);
    expect(major > least || (major === least && minor >= leastMinor), version).toBe(true);
  });

  it('runs as the user nobody, by number, who owns no file', () => {
    expect(only(image, 'USER')).toBe('65534:65534');
    expect(image.filter(({ rest }) => rest.includes('--chown'))).toEqual([]);
  });

  it('has Node itself as the first process, which receives the signals', () => {
    expect(JSON.parse(only(image, 'ENTRYPOINT'))).toEqual(['node', '/app/dist/src/cli/main.js']);
    expect(only(image, 'WORKDIR')).toBe('/app');
    expect(only(image, 'STOPSIGNAL')).toBe('SIGTERM');
  });

  it('exposes the port on which it listens', () => {
    const { OS_SERVICE__PORT, OS_SERVICE__HOST } = environment();
    expect(only(image, 'EXPOSE')).toBe(OS_SERVICE__PORT);
    expect(Number(OS_SERVICE__PORT)).toBe(serviceOptions.parse({}).port);
    expect(OS_SERVICE__HOST).toBe('0.0.0.0');
  });

  it('has the labels of package.json', () => {
    const { description, license, name } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const labels = only(image, 'LABEL');
    expect(labels).toContain(`.title="${name}"`);
    expect(labels).toContain(`.description="${description}"`);
    expect(labels).toContain(`.licenses="${license}"`);
  });

  it('has all code that the package ships, but the example', () => {
    const { files } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const folders = files.flatMap((file: string) => /^dist\/(.*)/.exec(file)?.slice(1) ?? []);
    expect(folders).toContain('policies');
    expect([...copied(), 'external-service-example']).toEqual(expect.arrayContaining(folders));
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

  it('builds and has all that the service needs: each filter and policy loads, it answers, is healthy, and exits with 0', async () => {
    const folder = await builtImage();
    for (const shipped of ['filters', 'policies']) {
      const wanted = readdirSync(projectFile(shipped)).map((file) => file.replace(/\.ts$/, '.js'));
      const imports = wanted.map((file) => `await import('./dist/${shipped}/${file}');`).join('\n');
      await run(process.execPath, ['--input-type=module', '--eval', imports], folder);
    }

    const [, program = ''] = JSON.parse(only(image, 'ENTRYPOINT')) as string[];
    const args = JSON.parse(only(image, 'CMD')) as string[];
    expect(args).toContain(CONF);
    const port = String(await unusedPort());
    const conf = confFile(LIMIT);
    const running = spawn(
      process.execPath,
      [program.replace('/app', folder), ...args.map((argument) => (argument === CONF ? conf : argument))],
      { env: { ...environment(), OS_SERVICE__HOST: '127.0.0.1', OS_SERVICE__PORT: port }, stdio: 'pipe' },
    );
    onTestFinished(() => {
      running.kill('SIGKILL');
    });
    await Promise.race([once(running.stdout, 'data'), once(running, 'exit')]);
    const [command, check = ''] = JSON.parse(only(image, 'HEALTHCHECK').replace(/^.* CMD /, '')) as string[];
    expect(command).toBe('node');
    expect(await healthOf(port, check.replace('/app', folder))).toBe(0);
    running.kill('SIGTERM');
    expect(await once(running, 'exit')).toEqual([0, null]);
  });
});

/** The folder /app of the image, by the instructions of the Dockerfile; packages are copied instead of downloaded. */
async function builtImage(): Promise<string> {
  const [building, folder] = [temporaryFolder(), temporaryFolder()];
  copyAll(build, projectFile('.'), building);
  symlinkSync(projectFile('node_modules'), join(building, 'node_modules'));
  const steps = build.filter(({ name }) => name === 'RUN').map(({ rest }) => rest);
  expect(steps.at(-1)).toMatch(/^npm run build && npm prune --omit=dev /);
  // Types are checked elsewhere.
  await run('npm', ['run', 'build', '--', '--noCheck'], building);
  const isOfPackages = ({ rest }: Instruction) => rest.endsWith(' /build/node_modules node_modules');
  expect(image.filter(isOfPackages)).toHaveLength(1);
  copyAll(
    image.filter((one) => !isOfPackages(one)),
    building,
    folder,
  );
  const kept = await run('npm', ['ls', '--omit=dev', '--all', '--parseable'], projectFile('.'));
  for (const path of kept.split('\n').map((one) => relative(projectFile('.'), one))) {
    // A package brings those within it along.
    if (/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path)) {
      cpSync(projectFile(path), join(folder, path), { recursive: true });
    }
  }
  return folder;
}

/** As COPY does: folders by their contents, files by their names. */
function copyAll(instructions: readonly Instruction[], from: string, to: string): void {
  for (const { rest } of instructions.filter(({ name }) => name === 'COPY')) {
    const paths = rest.split(' ').filter((one) => !one.startsWith('--'));
    const target = join(to, paths.pop() ?? '');
    for (const path of paths) {
      const source = join(from, path.replace(/^\/build\//, ''));
      const isFolder = statSync(source).isDirectory();
      cpSync(source, isFolder ? target : join(target, basename(source)), { recursive: true });
    }
  }
}

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const child = spawn(command, args, { cwd, stdio: 'pipe' });
  const [output, errors, [code]] = await Promise.all([
    wholeText(child.stdout),
    wholeText(child.stderr),
    once(child, 'exit'),
  ]);
  expect(code, `${command} ${args.join(' ')}\n${output}${errors}`).toBe(0);
  return output;
}

describe(HEALTH_CHECK, () => {
  const tls = projectFile('test/fixtures/tls');
  const overTls = { tls_cert_file: `${tls}/server.pem`, tls_key_file: `${tls}/server.key` };

  it.each([
    ['http', {}],
    ['https', overTls],
    ['https with client certificates', { ...overTls, client_ca_file: `${tls}/ca.pem` }],
  ])('finds a service over %s healthy', async (_, service) => {
    const sources = { environment: {}, configFiles: [], values: { service: { port: 0, ...service } } };
    const running = await startService(sources, { logger: recordingLogger() });
    onTestFinished(() => running.close());
    expect(await healthOf(new URL(running.url).port)).toBe(0);
  });

  it('finds nothing healthy that does not answer', async () => {
    expect(await healthOf(String(await unusedPort()))).toBe(1);
  });
});

/** The exit code of the health check: 0 is healthy. */
async function healthOf(port: string, file = projectFile(HEALTH_CHECK)): Promise<number | null> {
  const check = spawn(process.execPath, [file], { env: { OS_SERVICE__PORT: port } });
  const [written, [code]] = await Promise.all([
    Promise.all([wholeText(check.stdout), wholeText(check.stderr)]),
    once(check, 'exit'),
  ]);
  expect(written).toEqual(['', '']);
  return code;
}
