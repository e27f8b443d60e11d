import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatInfra,
  infraOf,
  isCaseSensitive,
  PolicyRejected,
  parseInfra,
} from '../../../src/skypilot/index.ts';

describe('parseInfra', () => {
  it.for([
    ['', [null, null, null], '*'],
    ['*/us-east-1', [null, 'us-east-1', null], '*/us-east-1'],
    ['AWS', ['aws', null, null], 'aws'],
    [' aws / us-east-1 /us-east-1a/', ['aws', 'us-east-1', 'us-east-1a'], 'aws/us-east-1/us-east-1a'],
    ['aws/*/us-east-1a', ['aws', null, 'us-east-1a'], 'aws/*/us-east-1a'],
    ['k8s', ['kubernetes', null, null], 'kubernetes'],
    ['K8s/arn:aws:eks/My/Ctx', ['kubernetes', 'arn:aws:eks/My/Ctx', null], 'kubernetes/arn:aws:eks/My/Ctx'],
    ['ssh/pool', ['ssh', 'pool', null], 'ssh/pool'],
    ['k8s/ssh-pool', ['ssh', 'pool', null], 'ssh/pool'],
    ['digitalocean/nyc1', ['do', 'nyc1', null], 'do/nyc1'],
  ] as const)('reads %j', ([text, [cloud, region, zone], formatted]) => {
    expect(parseInfra(text)).toEqual({ cloud, region, zone });
    expect(formatInfra(parseInfra(text))).toBe(formatted);
  });

  it.for([
    'aws//x',
    'aws/a/b/c',
    'k8s/a//b',
    '/ /',
    '/',
    'k8s/a\u200b',
    'aws/\u00a0x',
    'k8s/a\nb',
    '\ufeffaws',
  ])('rejects %j', (text) => {
    expect(() => parseInfra(text)).toThrow(PolicyRejected);
  });

  it('reads what formatInfra writes', () => {
    const name = fc.stringMatching(/^[a-z][A-Za-z0-9-]{0,9}$/);
    fc.assert(
      fc.property(fc.option(name), fc.option(name), fc.option(name), (cloud, region, zone) => {
        const text = formatInfra({ cloud: cloud?.toLowerCase() ?? null, region, zone });
        expect(formatInfra(parseInfra(text))).toBe(formatInfra(parseInfra(formatInfra(parseInfra(text)))));
      }),
    );
  });
});

describe('infraOf', () => {
  it.for([
    [{}, '*'],
    [{ infra: null, cloud: null }, '*'],
    [{ infra: 'K8S/a/b' }, 'kubernetes/a/b'],
    [{ cloud: 'AWS', region: 'us-east-1', zone: 'us-east-1a' }, 'aws/us-east-1/us-east-1a'],
    [{ cloud: 'k8s', region: 'ctx' }, 'kubernetes/ctx'],
    [{ cloud: 'ssh', region: 'ssh-pool' }, 'ssh/pool'],
    [{ region: 'us-east-1' }, '*/us-east-1'],
    [{ zone: 'us-east-1a' }, '*/*/us-east-1a'],
  ] as const)('reads %j', ([resources, expected]) => {
    expect(formatInfra(infraOf(resources))).toBe(expected);
  });

  it('takes the prefix of pools before * for any pool', () => {
    expect(infraOf({ cloud: 'ssh', region: 'ssh-*' })).toEqual({ cloud: 'ssh', region: null, zone: null });
  });

  it.for([
    { infra: 'aws', cloud: 'gcp' },
    { infra: ['aws'] },
    { cloud: {} },
    { cloud: 'aws', region: 5 },
    { cloud: 'aws\n' },
  ])('rejects %j', (resources) => {
    expect(() => infraOf(resources)).toThrow(PolicyRejected);
  });
});

it('names of contexts, pools, clusters and partitions differ by case', () => {
  expect(['kubernetes', 'ssh', 'slurm', null].map(isCaseSensitive)).toEqual([true, true, true, true]);
  expect(['aws', 'gcp', 'do'].map(isCaseSensitive)).toEqual([false, false, false]);
});
