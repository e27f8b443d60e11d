/**
 * `npm run package:deb`: builds the Debian package `blazar-enforcement_VERSION_amd64.deb` from the output of
 * `npm run build`. Node.js comes from the npm registry, and production packages are installed, without the
 * optional one for Node.js versions without SQLite. `SOURCE_DATE_EPOCH` sets all its times.
 *
 * `--output FOLDER`: default `.`. `--version VERSION`: default from package.json. `--compression
 * xz|zstd|gzip`: default xz. `--installed`: uses the packages of this folder's node_modules and the running
 * Node.js, and compresses little: faster, for tests.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { knownOptions } from '../src/cli/common/known-options.ts';
import { bashScript } from '../src/cli/completion/bash.ts';
import { commandTree } from '../src/cli/completion/command-tree.ts';
import { fishScript } from '../src/cli/completion/fish.ts';
import { zshScript } from '../src/cli/completion/zsh.ts';
import { createProgram } from '../src/cli/program.ts';
import { manualPages } from './debian-package/manual-pages.ts';
import { packagedUnit } from './debian-package/packaged-unit.ts';

const NAME = 'blazar-enforcement';
/** As in the Dockerfile. Debian 12's version 18 is too old. */
const NODE_VERSION = '24.21.0';
const PROJECT = dirname(fileURLToPath(import.meta.resolve('blazar-enforcement/package.json')));
const FILES = join(PROJECT, 'tools/debian-package/files');
const LIBRARY = `usr/lib/${NAME}`;
const DOCUMENTATION = `usr/share/doc/${NAME}`;
/** Not loaded at run time: source maps, types, sources of native code, tests and examples of packages. */
const NOT_SHIPPED = /\.(map|ts|mts|cts|markdown|flow|c|cc|cpp|h|hpp|gyp|gypi|o|a|mk|html|sh)$/i;
const NAMES_NOT_SHIPPED = ['test', 'tests', '__tests__', 'deps', 'obj', 'obj.target', 'test_extension.node'];

/** Node.js, and the folder with `node_modules`. */
interface Parts {
  readonly node: string;
  readonly license: string;
  readonly modules: string;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      output: { type: 'string', default: '.' },
      version: { type: 'string' },
      compression: { type: 'string', default: 'xz' },
      installed: { type: 'boolean', default: false },
    },
  });
  const manifest = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { version: string };
  const version = values.version ?? manifest.version;
  const seconds = Number(process.env.SOURCE_DATE_EPOCH ?? Math.floor(Date.now() / 1000));
  const work = mkdtempSync(join(tmpdir(), `${NAME}-deb-`));
  try {
    const root = join(work, 'root');
    const parts = values.installed ? installedParts() : await downloadedParts(work);
    putProgram(root, parts, version);
    await putDocuments(root, version, new Date(seconds * 1000), parts.license);
    putConfiguration(root);
    putControl(root, version);
    const file = join(values.output, `${NAME}_${version}_amd64.deb`);
    // Owned by root, whoever builds it; files are sorted by name.
    const compression = [`-Z${values.compression}`, ...(values.installed ? ['-z1'] : [])];
    execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', root, file], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    process.stdout.write(`${file}: ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB\n`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function installedParts(): Parts {
  return { node: process.execPath, license: join(PROJECT, 'LICENSE'), modules: PROJECT };
}

async function downloadedParts(work: string): Promise<Parts> {
  // JavaScript, because it also runs before a build.
  const { downloadedNode } = (await import(join(PROJECT, 'tools/downloaded-node.js'))) as {
    downloadedNode(wanted: string): string;
  };
  const node = downloadedNode(NODE_VERSION);
  for (const file of ['package.json', 'package-lock.json']) {
    copyFileSync(join(PROJECT, file), join(work, file));
  }
  const flags = ['--omit=dev', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', ['ci', ...flags], { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
  return { node, license: join(dirname(node), '../LICENSE'), modules: work };
}

function putProgram(root: string, { node, modules }: Parts, version: string): void {
  const library = join(root, LIBRARY);
  mkdirSync(join(library, 'bin'), { recursive: true });
  copyFileSync(node, join(library, 'bin/node'));
  const manifest = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as Record<string, unknown>;
  const { scripts: _, devDependencies: __, ...kept } = manifest;
  writeFileSync(join(library, 'package.json'), `${JSON.stringify({ ...kept, version }, null, 2)}\n`);
  for (const folder of ['src', 'filters', 'policies']) {
    copyShipped(join(PROJECT, 'dist', folder), join(library, 'dist', folder));
  }
  for (const path of productionPackages(modules)) {
    copyShipped(join(modules, path), join(library, path));
  }
  for (const path of [
    join(library, 'bin/node'),
    ...filesIn(library).filter((file) => file.endsWith('.node')),
  ]) {
    execFileSync('strip', ['--strip-unneeded', path]);
    chmodSync(path, path.endsWith('.node') ? 0o644 : 0o755);
  }
  put(root, `usr/bin/${NAME}`, readFileSync(join(FILES, 'command')), 0o755);
}

/** Paths such as `node_modules/koa` of the packages that `npm ci --omit=dev` installs, with those inside. */
function productionPackages(folder: string): string[] {
  const lock = JSON.parse(readFileSync(join(PROJECT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; peer?: boolean }>;
  };
  return (
    Object.entries(lock.packages)
      .filter(
        ([path, { dev, peer }]) =>
          dev !== true && peer !== true && /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path),
      )
      .map(([path]) => path)
      // Only needed to compile or download packages.
      .filter((path) => !path.includes('/@types/') && isThere(join(folder, path)))
  );
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function copyShipped(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    dereference: true,
    filter: (path) => {
      const inside = relative(from, path);
      const name = basename(path);
      const isLeftOut = name.startsWith('.') || NOT_SHIPPED.test(name) || NAMES_NOT_SHIPPED.includes(name);
      return inside === '' || !isLeftOut;
    },
  });
  for (const path of filesIn(to)) {
    chmodSync(path, 0o644);
  }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

async function putDocuments(root: string, version: string, date: Date, nodeLicense: string): Promise<void> {
  const program = await createProgram();
  const tree = commandTree(program);
  const { options } = await knownOptions();
  for (const { file, text } of manualPages(tree, options, version, date.toISOString().slice(0, 10))) {
    put(root, `usr/share/man/man${file.at(-1)}/${file}.gz`, zipped(text));
  }
  put(root, `usr/share/bash-completion/completions/${NAME}`, bashScript(tree));
  put(root, `usr/share/zsh/vendor-completions/_${NAME}`, zshScript(tree));
  put(root, `usr/share/fish/vendor_completions.d/${NAME}.fish`, fishScript(tree));
  put(root, `${DOCUMENTATION}/copyright`, readFileSync(join(FILES, 'copyright')));
  put(root, `${DOCUMENTATION}/LICENSE.nodejs.gz`, zipped(readFileSync(nodeLicense)));
  put(root, `${DOCUMENTATION}/CHANGELOG.md.gz`, zipped(readFileSync(join(PROJECT, 'CHANGELOG.md'))));
  // Named as in a package without a Debian revision.
  put(root, `${DOCUMENTATION}/changelog.gz`, zipped(debianChangelog(version, date)));
  put(root, `${DOCUMENTATION}/blazar.conf.sample`, readFileSync(join(PROJECT, 'etc/blazar.conf.sample')));
  for (const folder of ['nginx', 'prometheus', 'rules']) {
    const target = join(root, DOCUMENTATION, 'examples', folder);
    cpSync(join(PROJECT, 'etc', folder), target, { recursive: true });
  }
}

function debianChangelog(version: string, date: Date): string {
  const maintainer = /^Maintainer: (.*)$/m.exec(readFileSync(join(FILES, 'control'), 'utf8'))?.[1];
  const when = date.toUTCString().replace('GMT', '+0000');
  return `${NAME} (${version}) bookworm; urgency=medium\n\n  * Version ${version}: see CHANGELOG.md.gz.\n\n -- ${maintainer}  ${when}\n`;
}

function zipped(content: string | Buffer): Buffer {
  return gzipSync(content, { level: 9 });
}

function putConfiguration(root: string): void {
  const systemd = join(PROJECT, 'etc/systemd');
  for (const unit of readdirSync(systemd)) {
    put(root, `usr/lib/systemd/system/${unit}`, packagedUnit(readFileSync(join(systemd, unit), 'utf8')));
  }
  put(root, `etc/logrotate.d/${NAME}`, readFileSync(join(PROJECT, 'etc/logrotate', NAME)));
  put(root, `etc/default/${NAME}`, readFileSync(join(FILES, 'default')), 0o640);
  put(root, `etc/${NAME}/blazar.conf`, readFileSync(join(FILES, 'blazar.conf')), 0o640);
  chmodSync(join(root, 'etc', NAME), 0o750);
  put(root, `usr/share/lintian/overrides/${NAME}`, readFileSync(join(FILES, 'lintian-overrides')));
}

/** The control files; must be last. */
function putControl(root: string, version: string): void {
  const files = filesIn(root);
  const size = Math.ceil(files.reduce((sum, file) => sum + statSync(file).size, 0) / 1024);
  const control = readFileSync(join(FILES, 'control'), 'utf8');
  const conffiles = files
    .map((file) => `/${relative(root, file)}`)
    .filter((file) => file.startsWith('/etc/'));
  put(root, 'DEBIAN/control', control.replace('@VERSION@', version).replace('@SIZE@', String(size)));
  put(root, 'DEBIAN/conffiles', `${conffiles.sort().join('\n')}\n`);
  for (const script of ['postinst', 'prerm', 'postrm']) {
    put(root, `DEBIAN/${script}`, readFileSync(join(FILES, script)), 0o755);
  }
  const sums = execFileSync('md5sum', files.map((file) => relative(root, file)).sort(), {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  put(root, 'DEBIAN/md5sums', sums);
}

function put(root: string, path: string, content: string | Buffer, mode = 0o644): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

process.umask(0o022);
await main();
