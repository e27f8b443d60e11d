/**
 * `npm run release -- --dry-run`: builds a release in `release/`: the npm package, the Debian package, the
 * bill of materials and, with docker or podman, the image; first runs tests, proofs and 20 minutes of
 * simulation. Without the flag, also publishes them, like the release workflow for a tag: to npm with
 * provenance, the image for all platforms to `$IMAGE`, and the files to the release of the tag.
 *
 * `--skip tests,deb,image`: omits steps; only for dry runs.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'release');
const SKIPPED = ['tests', 'deb', 'image'];

function fail(why, code = 1) {
  console.error(`release: ${why}`);
  process.exit(code);
}

function flags() {
  try {
    const options = { 'dry-run': { type: 'boolean' }, skip: { type: 'string' }, help: { type: 'boolean' } };
    const { values } = parseArgs({ options });
    if (values.help) {
      console.log(`npm run release -- [--dry-run [--skip ${SKIPPED.join(',')}]]`);
      process.exit();
    }
    const skip = values.skip?.split(',') ?? [];
    const unknown = skip.find((step) => !SKIPPED.includes(step));
    if (unknown !== undefined) {
      fail(`--skip: expected ${SKIPPED.join(', ')}, got "${unknown}"`, 2);
    }
    if (skip.length > 0 && !values['dry-run']) {
      fail('--skip: only with --dry-run', 2);
    }
    return { isDry: values['dry-run'] === true, skips: (step) => skip.includes(step) };
  } catch (error) {
    return fail(error.message, 2);
  }
}

const { isDry, skips } = flags();
const read = (file) => readFileSync(join(ROOT, file), 'utf8');
const output = (...[command, ...args]) => execFileSync(command, args, { cwd: ROOT, encoding: 'utf8' }).trim();
const run = (...[command, ...args]) => {
  console.error(`release: ${[command, ...args].join(' ')}`);
  const { status } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) {
    fail(`${command} failed, nothing ${isDry ? 'is' : 'more was'} published`);
  }
};

const { version } = JSON.parse(read('package.json'));
const { IMAGE: image = 'blazar-enforcement' } = process.env;
const revision = output('git', 'rev-parse', 'HEAD');
const named = [
  ['package-lock.json', `"version": "${version}"`],
  ['etc/helm/Chart.yaml', `version: ${version}\nappVersion: ${version}\n`],
  ['CHANGELOG.md', `## [${version}] - `],
];
const wrong = named.filter(([file, text]) => !read(file).includes(text)).map(([file]) => file);
if (wrong.length > 0) {
  fail(`${wrong.join(', ')}: not of version ${version}, which package.json has`);
}
if (output('git', 'status', '--porcelain') !== '') {
  fail('the working tree has changes: commit them first');
}
if (!isDry && !output('git', 'tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`)) {
  fail(`the commit has no tag v${version}`);
}

if (!skips('tests')) {
  run('npm', 'test');
  run('npm', 'run', 'test:proofs');
  run('npm', 'run', 'simulate', '--', '--minutes', '20');
}
rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER);
const tarball = join(FOLDER, `blazar-enforcement-${version}.tgz`);
run('npm', 'pack', '--pack-destination', FOLDER);
run('npx', 'publint', '--strict', tarball);
run('npx', 'attw', tarball, '--profile', 'esm-only');
const sbom = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'];
writeFileSync(join(FOLDER, 'sbom.cdx.json'), output('npm', ...sbom, '--omit', 'dev', '--omit', 'optional'));
if (!skips('deb')) {
  run('npm', 'run', 'package:deb', '--', '--output', FOLDER);
}
const labels = ['--build-arg', `VERSION=${version}`, '--build-arg', `REVISION=${revision}`];
const builder = ['docker', 'podman'].find((name) => spawnSync(name, ['--version']).status === 0);
if (isDry && !skips('image')) {
  if (builder === undefined) {
    console.error('release: no docker and no podman: the image is not built');
  } else {
    run(builder, 'build', ...labels, '--tag', `${image}:${version}`, '.');
  }
}

if (isDry) {
  run('npm', 'publish', tarball, '--dry-run', '--access', 'public');
  console.error(`release: ${version} could be published; what it has is in release/`);
} else {
  // The image first: it can be replaced, unlike a version on npm.
  const platforms = ['--platform', 'linux/amd64,linux/arm64', '--sbom=true', '--provenance=mode=max'];
  run('docker', 'buildx', 'build', ...platforms, ...labels, '--tag', `${image}:${version}`, '--push', '.');
  run('npm', 'publish', tarball, '--provenance', '--access', 'public');
  const notes = ['--notes', `CHANGELOG.md says what ${version} has.`];
  const files = readdirSync(FOLDER).map((name) => join(FOLDER, name));
  run('gh', 'release', 'create', `v${version}`, '--verify-tag', '--title', version, ...notes, ...files);
}
