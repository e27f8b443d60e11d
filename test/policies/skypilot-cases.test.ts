/** The cases in which SkyPilot tries its example policies, asked of the included policies of the same names. */
import { describe, expect, it } from 'vitest';
import { Config } from '../../src/skypilot/index.ts';
import { REQUEST_NAMES } from '../../src/skypilot/request/user-request.ts';
import { decodeRequest, encodeRequest } from '../../src/skypilot/request/wire.ts';
import { type Asked, askTwice, chainOf, LEE } from './helpers.ts';

const TASK = `resources: {infra: aws, cpus: 2, labels: {other_labels: test}}
setup: |
  echo "setup"
run: |
  echo "run"
`;
const withResources = (resources: string) => `resources: ${resources}\nrun: echo run\n`;

it('UseSpotForGpuPolicy uses spot instances just for accelerators', async () => {
  const { ask } = await chainOf(['UseSpotForGpuPolicy']);
  const cases: [string, unknown][] = [
    ['{infra: aws, cpus: 2}', { infra: 'aws', cpus: 2 }],
    [
      '{any_of: [{infra: gcp, accelerators: {A100: 1}}, {accelerators: {L4: 1}}]}',
      {
        any_of: [
          { infra: 'gcp', accelerators: { A100: 1 }, use_spot: true },
          { accelerators: { L4: 1 }, use_spot: true },
        ],
      },
    ],
    [
      '{any_of: [{accelerators: {A100: 1}}, {accelerators: {L4: 1}, use_spot: true}, {cpus: 2+}]}',
      {
        any_of: [
          { accelerators: { A100: 1 }, use_spot: true },
          { accelerators: { L4: 1 }, use_spot: true },
          { cpus: '2+' },
        ],
      },
    ],
  ];
  for (const [resources, expected] of cases) {
    expect((await askTwice(ask, { task: withResources(resources) })).task.resources).toEqual(expected);
  }
});

describe('a label in Kubernetes', () => {
  const label = ['kubernetes', 'custom_metadata', 'labels', 'app'];

  it.for<[string, string, unknown]>([
    ['AddLabelsPolicy', 'launch', 'skypilot'],
    ['AddLabelsPolicy', 'validate', 'skypilot'],
    ['AddLabelsConditionalPolicy', 'launch', 'skypilot'],
    ['AddLabelsConditionalPolicy', 'validate', undefined],
  ])('is added by %s to %s: %s', async ([policy, name, value]) => {
    const { ask } = await chainOf([policy]);
    const { skypilotConfig } = await askTwice(ask, { task: TASK, name });
    expect(skypilotConfig.getNested(label)).toBe(value);
  });
});

it('SetMaxAutostopIdleMinutesPolicy ends at ten minutes', async () => {
  const { ask } = await chainOf(['SetMaxAutostopIdleMinutesPolicy']);
  const cases: [string, unknown][] = [
    ['{infra: aws, cpus: 2}', { infra: 'aws', cpus: 2, autostop: { idle_minutes: 10 } }],
    [
      '{cpus: 16+, autostop: {idle_minutes: 20, down: true}}',
      { cpus: '16+', autostop: { idle_minutes: 10, down: true } },
    ],
  ];
  for (const [resources, expected] of cases) {
    expect((await askTwice(ask, { task: withResources(resources) })).task.resources).toEqual(expected);
  }
});

it('AddVolumesPolicy adds its volume at both sides, and to no controller', async () => {
  const { ask } = await chainOf(['AddVolumesPolicy'], { add_volumes: { '/mnt/data0': 'pvc0' } });
  const cases: [string, Asked, unknown][] = [
    ['at the server', {}, { '/mnt/data0': 'pvc0' }],
    ['at the client', { atClientSide: true }, { '/mnt/data0': 'pvc0' }],
    ['not to a controller', { name: 'jobs.launch_controller' }, undefined],
    // SkyPilot's example replaces the volumes of the task, and its users lose them without a word.
    [
      'beside those of a task',
      { task: `${TASK}volumes: {/mnt/existing: existing-volume}\n` },
      { '/mnt/existing': 'existing-volume', '/mnt/data0': 'pvc0' },
    ],
  ];
  for (const [what, asked, volumes] of cases) {
    expect((await askTwice(ask, { task: TASK, ...asked })).task.volumes, what).toEqual(volumes);
  }
});

it('RejectOldClientsPolicy judges clients by their API version', async () => {
  // By default only `validate` needs a version: what SkyPilot 0.13 launches has none.
  const { ask } = await chainOf(['RejectOldClientsPolicy'], {
    reject_old_clients: 25,
    reject_old_clients_unknown: 'every',
  });
  const cases: [string, Asked, boolean][] = [
    ['an older API', { clientApiVersion: 20, clientVersion: '0.5.0' }, false],
    ['no version', { clientApiVersion: null, clientVersion: null }, false],
    ['a newer API', { clientApiVersion: 30, clientVersion: '1.0.0' }, true],
    ['a client itself', { clientApiVersion: null, clientVersion: null, atClientSide: true }, true],
  ];
  for (const [what, asked, allowed] of cases) {
    expect(await ask({ task: TASK, ...asked }), what).toMatchObject({ allowed, failed: false });
  }
});

describe('a request', () => {
  it.for([
    { clientApiVersion: null, clientVersion: null },
    { clientApiVersion: 31, clientVersion: '1.0.0' },
  ])('is the same after writing and reading: %j', (versions) => {
    const read = decodeRequest(
      JSON.parse(
        encodeRequest({
          task: TASK,
          skypilotConfig: 'active_workspace: team-a\n',
          requestName: 'launch',
          requestOptions: null,
          atClientSide: versions.clientVersion === null,
          user: versions.clientVersion === null ? null : LEE,
          ...versions,
        }),
      ),
    );
    expect(read).toMatchObject({
      requestName: 'launch',
      requestOptions: null,
      atClientSide: versions.clientVersion === null,
      user: versions.clientVersion === null ? null : LEE,
      ...versions,
    });
    expect(read.task.value).toMatchObject({ resources: { infra: 'aws', labels: { other_labels: 'test' } } });
    const config = Config.fromDict(read.skypilotConfig.value as Record<string, unknown>);
    expect(config.getNested(['active_workspace'])).toBe('team-a');
  });

  it('may have any name of SkyPilot', async () => {
    const { ask } = await chainOf(['RejectAllPolicy']);
    expect(REQUEST_NAMES).toHaveLength(12);
    for (const name of REQUEST_NAMES) {
      expect(await ask({ name }), name).toMatchObject({ allowed: false, failed: false });
      expect(await ask({ name, options: null, atClientSide: true }), name).toMatchObject({ allowed: false });
    }
  });
});
