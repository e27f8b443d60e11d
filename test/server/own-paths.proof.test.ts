/** Every path of the service is answered, and none of them is free for SkyPilot. */
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { OWN_PATHS } from '../../src/server/own-paths.ts';
import { projectFile, valuesOnly } from '../support/files.ts';
import { runService } from '../support/running-service.ts';

describe('the paths of the service', () => {
  it('are all answered', async () => {
    const { url } = await runService({
      kubernetes: { scheduling_policies: [projectFile('etc/kubernetes/policies.yaml')] },
    });
    for (const path of OWN_PATHS) {
      const answer = await fetch(url + path, { redirect: 'manual' });
      // The one of /events does not end.
      await answer.body?.cancel();
      expect(answer.status, path).not.toBe(404);
    }
  });

  it.each(OWN_PATHS)('are not free for SkyPilot: %s', async (path) => {
    const values = { skypilot: { path } };
    const { problems } = await readConfiguration(valuesOnly(values), SECTIONS);
    expect(problems.filter(({ severity }) => severity === 'error').map(({ message }) => message)).toEqual([
      path.length === 1
        ? expect.stringContaining('expected a path such as')
        : `expected a path of its own, got ${path}, where the service answers already`,
    ]);
  });
});
