/** A separate process records every module that it loads, to show when a database is loaded. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { newLedger } from '../support/ledgers.ts';
import { createPhysicalHost, endActive, updateExtend } from '../support/requests.ts';

/** What `npm run build` merges of kysely, and pg. */
const DATABASES = ['/dist/src/merged/database.js', '/node_modules/pg/'];

/** The databases that a process has loaded after it called every hook of a chain, and the answers that it got. */
async function loadedBy(filters: readonly string[], connection: string) {
  const folder = temporaryFolder();
  const log = join(folder, 'modules');
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  file('modules', '');
  file(
    'hooks.mjs',
    `import { appendFileSync } from 'node:fs';
     export async function resolve(specifier, context, next) {
       const found = await next(specifier, context);
       appendFileSync(${JSON.stringify(log)}, found.url + '\\n');
       return found;
     }`,
  );
  const register = file(
    'register.mjs',
    "import { register } from 'node:module'; register('./hooks.mjs', import.meta.url);",
  );
  const requests = { create: createPhysicalHost(), update: updateExtend(), end: endActive() };
  const main = file(
    'main.mjs',
    `import { createRequire } from 'node:module';
     import { UsageEnforcement } from ${JSON.stringify(projectFile('dist/src/index.js'))};
     const { create, update, end } = ${JSON.stringify(requests)};
     const values = ${JSON.stringify({ ledger: { connection }, enforcement: { enabled_filters: filters } })};
     const enforcement = await UsageEnforcement.load({ environment: {}, values });
     const decisions = [
       await enforcement.checkCreate(create), await enforcement.commitCreate(create),
       await enforcement.checkUpdate(update), await enforcement.commitUpdate(update),
     ];
     const { failed } = await enforcement.onEnd(end);
     await enforcement.close();
     const answers = [...decisions.map(({ allowed }) => allowed), !failed];
     // Neither is an import that the hooks see.
     const required = Object.keys(createRequire(import.meta.url).cache);
     const sqlite = process.moduleLoadList.includes('NativeModule sqlite')
       || required.some((file) => file.includes('/node_modules/better-sqlite3/'));
     console.log(JSON.stringify({ answers, sqlite }));`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', register, main]);
  const modules = readFileSync(log, 'utf8').split('\n');
  expect(modules.some((url) => url.endsWith('/dist/src/merged/library.js'))).toBe(true);
  return {
    ...(JSON.parse(stdout) as { answers: boolean[]; sqlite: boolean }),
    databases: DATABASES.filter((name) => modules.some((url) => url.includes(name))),
  };
}

it('opens no ledger and loads no database if no filter needs one: the file may be missing', async () => {
  expect(await loadedBy(['MaxLeaseDurationFilter'], 'sqlite:///nowhere/ledger.db')).toEqual({
    answers: Array(5).fill(true),
    databases: [],
    sqlite: false,
  });
});

it('loads the database if a filter needs a ledger', async () => {
  expect(await loadedBy(['MaxLeasesFilter'], await newLedger())).toEqual({
    answers: Array(5).fill(true),
    databases: DATABASES,
    sqlite: true,
  });
});
