/** Measures the review of a SkyPilot request, compared with reading and writing its YAML. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { withinDeadline } from '../src/deadline.ts';
import { readConfiguration } from '../src/enforcement/configuration.ts';
import { SECTIONS } from '../src/server/sections.ts';
import { PolicyChain } from '../src/skypilot/policy-chain.ts';
import { decodeRequest, encodeAnswer } from '../src/skypilot/wire.ts';
import type { Subject, Suite } from './harness/suite.ts';
import { ROOT } from './requests.ts';

const BATCH = 20;
const POLICIES = ['AddLabelsPolicy', 'UseSpotForGpuPolicy', 'SetMaxAutostopIdleMinutesPolicy'];

const body = readFileSync(join(ROOT, 'test/fixtures/skypilot-wire/launch-server.body'), 'utf8');

/** Parses the three YAML texts to values and writes them again. */
function yamlOnly(): Subject {
  return {
    operations: BATCH,
    batch() {
      let length = 0;
      for (let count = 0; count < BATCH; count += 1) {
        const { task, skypilot_config, user } = JSON.parse(JSON.parse(body)) as Record<string, string>;
        for (const text of [task, skypilot_config, user]) {
          length += stringify(parse(text ?? '', { version: '1.1' }), { version: '1.1' }).length;
        }
      }
      return length;
    },
  };
}

/** From the request body to the response body; `names`: the policies, in one thread each or all in process. */
async function review(names: readonly string[], isolation: 'worker' | 'none'): Promise<Subject> {
  const file = join(ROOT, 'examples/admin-policies/index.js');
  const admin_policies = names.map((name) => `${file}#${name}`);
  const configuration = await readConfiguration(
    { environment: {}, configFiles: [], values: { skypilot: { admin_policies, isolation } } },
    SECTIONS,
  );
  const wrong = configuration.problems.filter(({ severity }) => severity === 'error');
  if (wrong.length > 0) {
    throw new Error(wrong.map(({ message }) => message).join('; '));
  }
  const policies = await PolicyChain.fromConfiguration(configuration);
  const once = async () => {
    const request = decodeRequest(JSON.parse(body));
    const reviewed = await withinDeadline(20, (deadline) => policies.review(request, { deadline }));
    if (!reviewed.allowed || reviewed.changed !== names.length > 0) {
      throw new Error(`expected a review that allows, got ${reviewed.message}`);
    }
    return encodeAnswer(request, reviewed);
  };
  await once();
  return {
    operations: BATCH,
    async batch() {
      for (let count = 0; count < BATCH; count += 1) {
        await once();
      }
    },
    close: () => policies.close(),
  };
}

export const suite: Suite = {
  name: 'skypilot-review',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 300,
  subjects: {
    yaml: yamlOnly,
    'three policies': () => review(POLICIES, 'none'),
    'three policies in threads': () => review(POLICIES, 'worker'),
    'no change': () => review([], 'none'),
  },
  comparisons: [
    {
      name: 'three policies',
      measured: 'three policies',
      comparedWith: 'yaml',
      of: 'time',
      target: { atMost: 5 },
    },
    {
      name: 'three policies in threads',
      measured: 'three policies in threads',
      comparedWith: 'three policies',
      of: 'time',
    },
    { name: 'no policy', measured: 'no change', comparedWith: 'yaml', of: 'time' },
  ],
  notes: [
    'The body of a launch as SkyPilot 0.13 sends it, from the request text to the response text; the policies add a label, request spot instances and set autostop, so that task and configuration are both rewritten.',
    'For comparison, the package `yaml` parses task, configuration and user of the same body to plain values and writes them again.',
  ],
};
