/** What doors say of a `rules_path` that leads nowhere: at the option, since there is no file to look into. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

it.each([
  ['enforcement', '[enforcement]\nenabled_filters = RulesFilter'],
  ['kubernetes', '[kubernetes]\nsource = files'],
  ['skypilot', '[skypilot]\nadmin_policies = RulesPolicy'],
])('a missing file is a mistake at the line of [%s] rules_path', async (section, text) => {
  const path = join(temporaryFolder(), 'absent.yaml');
  const file = confFile(`${text}\nrules_path = ${path}\n`);
  const { problems } = await readConfiguration({ environment: {}, configFiles: [file] }, SECTIONS);
  const wrong = problems.filter((one) => one.section === section && one.option === 'rules_path');
  expect(wrong.map(formatProblem)).toEqual([expect.stringContaining(`${file}:3`)]);
  expect(wrong[0]?.message).toBe(
    `expected a file or a folder that can be read, got ${path} (there is no such file)`,
  );
});

it('a rule for what no section judges by its file is a warning at its line', async () => {
  const rules = temporaryFile(
    'rules.yaml',
    'rules:\n- {name: a, on: [create, task], allow: "true", message: No.}\n',
  );
  const file = confFile(`[enforcement]\nenabled_filters = RulesFilter\nrules_path = ${rules}\n`);
  const { problems } = await readConfiguration({ environment: {}, configFiles: [file] }, SECTIONS);
  expect(problems.map(formatProblem)).toContainEqual(
    expect.stringMatching(
      /rules\.yaml:2.*: rule a: its tasks are not judged: \[skypilot\] rules_path does not name this file$/,
    ),
  );
});
