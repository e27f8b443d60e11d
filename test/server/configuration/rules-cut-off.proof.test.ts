/** A file of rules that is cut off at any byte while a service runs: no rule is gone without being said. */
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { RULES } from '../../rules/rules-to-cut.ts';
import { temporaryFile } from '../../support/files.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

const THREE_DAYS = JSON.stringify(createLasting(3 * 24 * 3600));

it('keeps the rules in force at every byte', { timeout: 1_200_000 }, async () => {
  const file = temporaryFile('rules.yaml', RULES);
  const { service, post, logger } = await runServiceOnFile(
    `[enforcement]\nenabled_filters = RulesFilter\nrules_path = ${file}\n[service]\nport = 0\n`,
  );
  const accepted: number[] = [];
  const said = async () => (await post('/check-create', THREE_DAYS)).json;
  const message = await said();
  expect(message).toEqual({ message: 'At most two days. Say a name.' });
  for (let length = 0; length < RULES.length; length += 1) {
    writeFileSync(file, RULES.slice(0, length));
    if (await service.reload()) {
      accepted.push(length);
    }
    if (length % 40 === 0) {
      expect(await said()).toEqual(message);
    }
  }
  // Only the last line break is missing.
  expect(accepted).toEqual([RULES.length - 1]);
  expect(await said()).toEqual(message);
  expect(JSON.stringify(logger.lines)).not.toMatch(/no longer in force|have changed/);
});
