/** Measures the review of a SkyPilot request, relative to reading and writing its YAML. */
import { parse, stringify } from 'yaml';
import { withinDeadline } from '../src/base/deadline.ts';
import { readConfiguration } from '../src/enforcement/configuration.ts';
import { SECTIONS } from '../src/server/configuration/sections.ts';
import { PolicyChain } from '../src/skypilot/policies/policy-chain.ts';
import { decodeRequest } from '../src/skypilot/request/wire.ts';
import { amount } from './harness/amount.ts';
import type { Subject, Suite, Timed } from './harness/suite.ts';
import { LAUNCH, largeLaunch } from './large-pod-config.ts';

const BATCH = amount(20, 1);
const THREE = ['AddLabelsPolicy', 'UseSpotForGpuPolicy', 'SetMaxAutostopIdleMinutesPolicy'];
const EIGHT = [
  ...THREE,
  'DisablePublicIpPolicy',
  'AddVolumesPolicy',
  'AllowedCloudsPolicy',
  'AllowedImagesPolicy',
  'RejectOldClientsPolicy',
];
/** For the last four. */
const OPTIONS = {
  add_volumes: { '/scratch': 'scratch' },
  allowed_clouds: ['kubernetes', 'gcp'],
  allowed_images: ['*'],
  reject_old_clients_version: '0.5.0',
};

const MILLISECONDS_OF_EIGHT = '20 ms';

/** Of all threads of this process: elapsed time would include other load on the machine. */
function processorSince(started: NodeJS.CpuUsage): Timed {
  const { user, system } = process.cpuUsage(started);
  return { milliseconds: (user + system) / 1000 };
}

/** Parses the three YAML texts to values and writes them again. */
function yamlOnly(): Subject {
  return {
    operations: BATCH,
    batch() {
      const started = process.cpuUsage();
      for (let count = 0; count < BATCH; count += 1) {
        const { task, skypilot_config, user } = JSON.parse(JSON.parse(LAUNCH)) as Record<string, string>;
        for (const text of [task, skypilot_config, user]) {
          stringify(parse(text ?? '', { version: '1.1' }), { version: '1.1' });
        }
      }
      return processorSince(started);
    },
  };
}

interface Reviewer {
  readonly names: readonly string[];
  /** `worker`: one thread for each policy. */
  readonly isolation: 'worker' | 'none';
  /** Default: that of the fixture. */
  readonly body?: string;
  /** Measures only the policies. Default: from the request body to the response body. */
  readonly alone?: boolean;
}

async function review({ names, isolation, body = LAUNCH, alone = false }: Reviewer): Promise<Subject> {
  const options = names.length === EIGHT.length ? OPTIONS : {};
  const configuration = await readConfiguration(
    {
      environment: {},
      configFiles: [],
      values: { skypilot: { admin_policies: names, isolation, ...options } },
    },
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
    if (reviewed.answer === null || reviewed.changed !== names.length > 0) {
      throw new Error(`expected a review that allows, got ${reviewed.message}`);
    }
    return reviewed.outcomes.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  };
  const operations = body.length > LARGE ? 1 : BATCH;
  await once();
  return {
    operations,
    async batch() {
      const started = process.cpuUsage();
      let milliseconds = 0;
      for (let count = 0; count < operations; count += 1) {
        milliseconds += await once();
      }
      return alone ? { milliseconds } : processorSince(started);
    },
    close: () => policies.close(),
  };
}

/** In characters: one operation is enough for the clock. */
const LARGE = 32_768;

/** The promised time for the eight policies, as a subject to compare with. */
function promised(): Subject {
  return { operations: 1, batch: () => ({ milliseconds: 20 }) };
}

export const suite: Suite = {
  name: 'skypilot-review',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 300,
  subjects: {
    yaml: yamlOnly,
    'three policies': () => review({ names: THREE, isolation: 'none' }),
    'three policies in threads': () => review({ names: THREE, isolation: 'worker' }),
    'eight policies, 2,000 lines': () => review({ names: EIGHT, isolation: 'none', body: largeLaunch() }),
    'eight policies in threads, 2,000 lines': () =>
      review({ names: EIGHT, isolation: 'worker', body: largeLaunch() }),
    'eight policies alone, 2,000 lines': () =>
      review({ names: EIGHT, isolation: 'none', body: largeLaunch(), alone: true }),
    'eight policies alone in threads, 2,000 lines': () =>
      review({ names: EIGHT, isolation: 'worker', body: largeLaunch(), alone: true }),
    [MILLISECONDS_OF_EIGHT]: promised,
    'no change': () => review({ names: [], isolation: 'none' }),
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
      target: { atMost: 3 },
    },
    {
      name: 'eight policies in threads, 2,000 lines',
      measured: 'eight policies in threads, 2,000 lines',
      comparedWith: 'eight policies, 2,000 lines',
      of: 'time',
      target: { atMost: 3 },
    },
    {
      name: 'eight policies alone, 2,000 lines',
      measured: 'eight policies alone, 2,000 lines',
      comparedWith: MILLISECONDS_OF_EIGHT,
      of: 'time',
      target: { atMost: 1 },
    },
    {
      name: 'eight policies alone in threads, 2,000 lines',
      measured: 'eight policies alone in threads, 2,000 lines',
      comparedWith: MILLISECONDS_OF_EIGHT,
      of: 'time',
    },
    {
      name: 'eight policies and the YAML of 2,000 lines',
      measured: 'eight policies, 2,000 lines',
      comparedWith: MILLISECONDS_OF_EIGHT,
      of: 'time',
    },
    { name: 'no policy', measured: 'no change', comparedWith: 'yaml', of: 'time' },
  ],
  notes: [
    'The body of a launch as SkyPilot 0.13 sends it, from the request text to the response text; the policies add a label, request spot instances and set autostop, so that task and configuration are both rewritten.',
    'For comparison, the package `yaml` parses task, configuration and user of the same body to plain values and writes them again.',
    'Processor time of all threads of the process, because elapsed time also counts what else runs on the machine; alone: elapsed time.',
    '2,000 lines: the same launch with 1,000 variables of two lines each in its pod_config. Alone: the time that the review reports for each policy, without reading and writing YAML, beside the 20 ms that are promised.',
  ],
};
