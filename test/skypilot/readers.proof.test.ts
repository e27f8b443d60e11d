/**
 * What policies read in a task, beside SkyPilot's own parsers. Needs `SKYPILOT_SOURCE`, a checkout of SkyPilot, and
 * python3 with its dependencies (or stand-ins for them in `PYTHONPATH`, which a module `sky_stub` installs).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AllowedCloudsPolicy } from '../../policies/allowed-clouds-policy.ts';
import { createSharedServices } from '../../src/enforcement/services.ts';
import {
  AUTOSTOP_OFF,
  acceleratorsOf,
  autostopOf,
  Config,
  durationMinutes,
  durationSeconds,
  formatInfra,
  type Infra,
  imagesOf,
  infraOf,
  parseInfra,
  type Resources,
  resourcesOf,
  type UserRequest,
} from '../../src/skypilot/index.ts';
import { optional } from '../support/properties.ts';
import { runWithSkypilot, skypilotSource } from '../support/skypilot-source.ts';

const PEER = `
import re
from sky import resources as resources_lib
from sky.skylet import constants
from sky.utils import infra_utils, resources_utils
def duration(text, pattern, parse):
    if not re.match(pattern, text):
        raise ValueError('pattern')
    return parse(text)
def one(r):
    stop = r.autostop_config
    return {'cloud': None if r.cloud is None else str(r.cloud).lower(), 'region': r.region, 'zone': r.zone,
        'accelerators': r._accelerators, 'images': list((r._image_id or {}).values()), 'docker': r._docker_image,
        'autostop': None if stop is None else [stop.enabled, stop.idle_minutes, stop.down, stop.wait_for and stop.wait_for.value]}
def infra(text):
    i = infra_utils.InfraInfo.from_str(text)
    return [i.cloud, i.region, i.zone]
ASK = {
    'minutes': lambda v: duration(v, constants.TIME_PATTERN, resources_utils.parse_time_minutes),
    'seconds': lambda v: duration(v, constants.TIME_PATTERN_SECONDS, resources_utils.parse_time_seconds),
    'infra': infra,
    'resources': lambda v: [one(r) for r in resources_lib.Resources.from_yaml_config(v)],
}
answers = []
for kind, value in asked:
    try:
        answers.append({'value': ASK[kind](value)})
    except BaseException as e:
        answers.append({'error': str(e)[:200]})
`;

interface Alternative {
  readonly cloud: string | null;
  readonly region: string | null;
  readonly zone: string | null;
  readonly accelerators: Readonly<Record<string, number>> | null;
  readonly images: readonly string[];
  readonly docker: string | null;
  readonly autostop: readonly [enabled: boolean, minutes: number, down: boolean, wait: string | null] | null;
}

interface Answers {
  readonly minutes: number;
  readonly seconds: number;
  readonly infra: readonly [string | null, string | null, string | null];
  readonly resources: readonly Alternative[];
}

const SOURCE = skypilotSource();

/** SkyPilot's readings, by question. `undefined` = it refuses. */
function theirs<Kind extends keyof Answers>(
  kind: Kind,
  values: readonly unknown[],
): (Answers[Kind] | undefined)[] {
  const asked = values.map((value) => [kind, value]);
  return runWithSkypilot<{ value?: Answers[Kind] }>(SOURCE ?? '', PEER, asked).map(({ value }) => value);
}

function ours<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Many values at once: to start SkyPilot takes a second. */
const many = <T>(arbitrary: fc.Arbitrary<T>, count = 1500): T[] =>
  fc.sample(arbitrary, { numRuns: count, seed: 17 });

/** As SkyPilot has it: contexts of SSH node pools with their prefix. */
const placeOf = ({ cloud, region, zone }: Infra) => [
  cloud,
  cloud === 'ssh' && region !== null ? `ssh-${region}` : region,
  zone,
];

const part = fc.constantFrom(
  ...['aws', 'AWS', 'k8s', 'Kubernetes', 'ssh', 'slurm', 'us-east-1'],
  ...['a', 'B', '*', '', ' x ', 'ssh-pool', 'lambda'],
);
const infraText = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'));

describe.skipIf(SOURCE === undefined)('beside SkyPilot', () => {
  it('durations are the same, and the same are refused', () => {
    const text = fc.oneof(
      fc
        .tuple(fc.nat({ max: 99_999 }), fc.constantFrom('', ...'smhdwSMHDW', 'x', ' m', 'm ', '.5h'))
        .map((parts) => parts.join('')),
      fc.string({ maxLength: 4 }),
    );
    const texts = many(text);
    expect(texts.map(durationMinutes)).toEqual(theirs('minutes', texts));
    expect(texts.map(durationSeconds)).toEqual(theirs('seconds', texts));
  });

  it('infra is the same, and the same is refused', () => {
    const texts = many(infraText);
    const read = texts.map((text) => ours(() => placeOf(parseInfra(text))));
    const judged = theirs('infra', texts).map((place) => place && placeOf(ofPool(place)));
    expect(read).toEqual(judged);
    expect(read.filter((place) => place === undefined).length).toBeGreaterThan(50);
    // What is written is read the same again.
    const written = texts.flatMap((text) => ours(() => formatInfra(parseInfra(text))) ?? []);
    expect(theirs('infra', written).map((place) => place && placeOf(ofPool(place)))).toEqual(
      written.map((text) => placeOf(parseInfra(text))),
    );
  });

  it('autostop is the same', () => {
    const minutes = fc.oneof(
      fc.integer({ min: -2, max: 99 }),
      fc.constantFrom('5', '10m', '1H', '2d', 'x', '600s', null),
    );
    const autostop = fc.oneof(
      minutes,
      fc.boolean(),
      optional({
        idle_minutes: minutes,
        down: fc.boolean(),
        wait_for: fc.constantFrom('jobs', 'NONE', 'jobs_and_ssh', 'x'),
      }),
    );
    const values = many(autostop, 800);
    const judged = theirs(
      'resources',
      values.map((value) => ({ autostop: value })),
    );
    values.forEach((value, index) => {
      const [one] = judged[index] ?? [];
      if (one !== undefined) {
        const read = autostopOf(value);
        const [enabled = false, idle = 0, down = false, wait = null] = one.autostop ?? [];
        expect(read?.idleMinutes, JSON.stringify(value)).toBe(
          one.autostop === null ? undefined : enabled && idle >= 0 ? idle : AUTOSTOP_OFF,
        );
        expect([read?.down ?? false, read?.waitFor ?? null], JSON.stringify(value)).toEqual([down, wait]);
      }
    });
    expect(judged.filter((one) => one !== undefined).length).toBeGreaterThan(200);
  });

  it('every alternative has the same place, accelerators and images', () => {
    const name = fc.constantFrom('A100', 'h100', 'A100-80GB', 'L4');
    const count = fc.constantFrom(1, 2, 8, 0.5, null);
    const accelerator = fc
      .tuple(name, count)
      .map(([one, number]) => (number === null ? one : `${one}:${number}`));
    const accelerators = fc.oneof(
      accelerator,
      fc.dictionary(name, count, { minKeys: 1, maxKeys: 2 }),
      fc.array(accelerator, { minLength: 1, maxLength: 3 }),
    );
    const image = fc.constantFrom(
      ...['docker:ghcr.io/a/b:1', 'ubuntu', ' docker:x ', 'ami-1', 'DOCKER:y', 'skypilot:gpu'],
    );
    const places = fc.oneof(
      fc.record({ infra: infraText }),
      optional({
        cloud: fc.constantFrom('aws', 'K8S', 'digitalocean', 'ssh'),
        region: fc.constantFrom('r', 'ssh-p'),
      }),
    );
    const own = fc
      .tuple(
        places,
        optional({
          accelerators,
          gpus: accelerators,
          image_id: fc.oneof(image, fc.dictionary(fc.constantFrom('docker', 'r', ' s '), image)),
        }),
        fc.boolean(),
      )
      .map(([place, rest, isAnywhere]) => (isAnywhere ? rest : { ...place, ...rest }));
    const resources = fc.oneof(
      own,
      fc
        .tuple(own, fc.constantFrom('any_of', 'ordered'), fc.array(own, { maxLength: 3 }))
        .map(([common, form, list]) => ({
          ...common,
          [form]: list,
        })),
    );
    const values = many(resources, 3000);
    const judged = theirs('resources', values);
    let compared = 0;
    values.forEach((value, index) => {
      const alternatives = judged[index];
      if (alternatives !== undefined) {
        compared += 1;
        const context = JSON.stringify(value);
        expect(keysOf(alternatives.map(readingOf)), context).toEqual(
          keysOf(resourcesOf({ resources: value }).flatMap(readingsOf)),
        );
        const read = resourcesOf({ resources: value }).flatMap((one) => imagesOf(one, {}));
        for (const { docker, images, cloud } of alternatives) {
          const container = cloud === 'kubernetes' || cloud === 'ssh';
          const named = [...(docker === null ? [] : [`docker:${docker}`]), ...images];
          expect(read, context).toEqual(expect.arrayContaining(named));
          expect(container ? named.filter((one) => !one.startsWith('docker:')) : []).toEqual([]);
        }
      }
    });
    expect(compared).toBeGreaterThan(300);
  });

  it('a task that AllowedCloudsPolicy limits is accepted, and can only run where it is allowed', () => {
    const policy = new AllowedCloudsPolicy(
      {
        allowed_clouds: ['aws/us-east-1', 'k8s/a/b', 'slurm/c/p', 'ssh/pool', 'gcp'],
        allowed_clouds_unnamed: 'restrict',
      },
      createSharedServices({}),
    );
    const isAllowed = ([cloud, region, zone]: readonly (string | null)[]) =>
      cloud === 'gcp' ||
      (cloud === 'aws' && region === 'us-east-1') ||
      ['kubernetes/a/b/', 'slurm/c/p', 'ssh/ssh-pool/', 'kubernetes/ssh-pool/'].includes(
        [cloud, region, zone ?? ''].join('/'),
      );
    const place = fc.constantFrom(
      ...['*', 'aws', 'AWS/US-east-1', 'k8s', 'k8s/a/b', 'slurm', 'slurm/c', 'slurm/*/p', '*/us-east-1'],
      ...['ssh', 'gcp/x/y', 'aws/*/us-east-1a', 'lambda', 'k8s/ssh-pool'],
    );
    const own = optional({
      infra: place,
      accelerators: fc.constantFrom('A100:8', ['A100', 'H100:2'], { L4: 1 }),
    });
    const form = fc.constantFrom('any_of', 'ordered');
    const values = many(
      fc.oneof(
        own,
        fc
          .tuple(form, fc.array(own, { minLength: 1, maxLength: 3 }))
          .map(([name, list]) => ({ cpus: 2, [name]: list })),
      ),
      1200,
    );
    const accepted = theirs('resources', values);
    const limited = values.flatMap((resources, index) => {
      if (accepted[index] === undefined) {
        return [];
      }
      const task = { resources: structuredClone(resources) };
      const request = {
        task,
        skypilotConfig: Config.fromDict({}),
        requestName: 'launch',
      } as unknown as UserRequest;
      return ours(() => policy.validateAndMutate(request)) === undefined ? [] : [task.resources];
    });
    const judged = theirs('resources', limited);
    judged.forEach((alternatives, index) => {
      const context = JSON.stringify(limited[index]);
      expect(alternatives, context).toBeDefined();
      for (const { cloud, region, zone } of alternatives ?? []) {
        expect(
          isAllowed([cloud, region === 'US-east-1' ? 'us-east-1' : region, zone]),
          `${context}: ${cloud}/${region}/${zone}`,
        ).toBe(true);
      }
    });
    expect(limited.length).toBeGreaterThan(300);
  });
});

/** A pool may be named as a Kubernetes context: both are the pool. */
function ofPool([cloud = null, region = null, zone = null]: readonly (string | null)[]): Infra {
  const pool = cloud === 'kubernetes' && region?.startsWith('ssh-') ? 'ssh' : cloud;
  return {
    cloud: aliasOf(pool),
    // Any pool is meant: SkyPilot takes the star for its name.
    region: pool === 'ssh' && region !== null ? anyOf(region.replace(/^ssh-/, '')) : region,
    zone,
  };
}

function anyOf(name: string): string | null {
  return name === '*' ? null : name;
}

function aliasOf(cloud: string | null): string | null {
  return cloud === 'digitalocean' ? 'do' : cloud;
}

function readingOf({ cloud, region, zone, accelerators }: Alternative): unknown[] {
  return [...placeOf(ofPool([cloud, region, zone])), Object.entries(accelerators ?? {})];
}

function readingsOf(resources: Resources): unknown[] {
  const place = placeOf(infraOf(resources));
  const accelerators = acceleratorsOf(resources);
  return accelerators.length === 0
    ? [[...place, []]]
    : accelerators.map(({ name, count }) => [...place, [[name, count]]]);
}

/** Each once, as in a set. */
function keysOf(values: readonly unknown[]): string[] {
  return [...new Set(values.map((value) => JSON.stringify(value)))].sort();
}
