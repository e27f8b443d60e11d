/** `serve --watch` and files of filters. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { createLasting } from '../support/requests.ts';
import { SOON, serve } from './serving.ts';

it('serve --watch loads a changed filter anew, with all that it imports from its folder', async () => {
  const rejecting = (reason: string, imports = '') =>
    `${imports}\n${filterSource('ReasonFilter', { create: `return reject(\`${reason}\`);` })}`;
  const importing = rejecting(
    '$' + '{first} $' + '{second.text} $' + '{third.text}',
    "import { first } from './reasons.js'; import second from './lib/common.cjs'; import third from './data.json' with { type: 'json' };",
  );
  const folder = filterFolder({ 'reason-filter.js': rejecting('one') });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const conf = confFile(
    `[service]\nport = 0\n[enforcement]\nfilters_path = ${folder}\nenabled_filters = ReasonFilter\n`,
  );
  const { output, post } = await serve(['--watch', '--config-file', conf]);
  const reason = async () => {
    const answer = await post('/check-create', createLasting(60));
    return ((await answer.json()) as { message: string }).message;
  };
  const becomes = (text: string) => vi.waitFor(async () => expect(await reason()).toBe(text), SOON);
  expect(await reason()).toBe('one');

  write('reason-filter.js', rejecting('two'));
  await becomes('two');

  mkdirSync(join(folder, 'lib'));
  write('reasons.js', "export const first = 'a';");
  write('lib/common.cjs', "exports.text = 'b';");
  write('data.json', '{ "text": "c" }');
  write('reason-filter.js', importing);
  await becomes('a b c');
  // The filter itself stays as it is from here on.
  write('reasons.js', "export const first = 'A';");
  await becomes('A b c');
  write('lib/common.cjs', "exports.text = 'B';");
  await becomes('A B c');
  write('data.json', '{ "text": "C" }');
  await becomes('A B C');

  // A mistake changes nothing, and its line is logged.
  write('reasons.js', "export const first = 'A';\nconst = 1;");
  await expect.poll(() => output().stderr).toContain(`(${join(folder, 'reasons.js')}:2)`);
  expect(output().stderr).not.toContain('uncaught error');
  expect(await reason()).toBe('A B C');
  write('reasons.js', "export const first = 'Z';");
  await becomes('Z B C');
});
