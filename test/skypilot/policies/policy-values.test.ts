import { describe, expect, it } from 'vitest';
import { Config, effectiveValue, effectiveValues, PolicyRejected } from '../../../src/skypilot/index.ts';

const CONFIG = {
  active_workspace: 'lab',
  kubernetes: {
    provision_timeout: 600,
    pod_config: { spec: { tolerations: [{ key: 'gpu' }] } },
    context_configs: {
      east: { provision_timeout: 900, pod_config: { spec: { tolerations: [{ key: 'spot' }] } } },
    },
  },
  workspaces: { lab: { kubernetes: { quota: { queue: 'lab' } } } },
};
const TOLERATIONS = ['kubernetes', 'pod_config', 'spec', 'tolerations'];
const toleration = (key: string) => ({ kubernetes: { pod_config: { spec: { tolerations: [{ key }] } } } });

describe('the effective value of a configuration', () => {
  it.for([['as plain data', CONFIG] as const, ['as a Config', Config.fromDict(CONFIG)] as const])(
    '%s',
    ([, config]) => {
      const key = ['kubernetes', 'provision_timeout'];
      expect(effectiveValue(config, { key })).toBe(600);
      expect(effectiveValue(config, { key, region: 'east' })).toBe(900);
      expect(effectiveValue(config, { key, overrides: { kubernetes: { provision_timeout: 1 } } })).toBe(1);
      expect(effectiveValue(config, { key: ['kubernetes', 'quota', 'queue'] })).toBe('lab');
      expect(
        effectiveValue(config, { key: ['kubernetes', 'quota', 'queue'], workspace: 'default' }),
      ).toBeUndefined();
      expect(
        effectiveValue(config, { key: TOLERATIONS, region: 'east', overrides: toleration('own') }),
      ).toEqual([{ key: 'gpu' }, { key: 'spot' }, { key: 'own' }]);
    },
  );

  it('refuses what SkyPilot cannot merge, without values', () => {
    const overrides = { kubernetes: { pod_config: { spec: { tolerations: { token: 'secret-value' } } } } };
    const ask = () => effectiveValue(CONFIG, { key: ['kubernetes', 'pod_config'], overrides });
    expect(ask).toThrow(PolicyRejected);
    expect(ask).toThrow(
      /^The values of kubernetes\.pod_config cannot be merged: spec\.tolerations: [^"]*\.$/,
    );
  });

  it.for([
    { key: ['__proto__'] },
    { key: ['kubernetes', '__proto__', 'x'] },
    { key: ['kubernetes'], region: '__proto__' },
  ])('has nothing of %j that nobody set', (question) => {
    expect(effectiveValue({ workspaces: {} }, { ...question, workspace: '__proto__' })).toBeUndefined();
  });

  it('reads hostile names like any others', () => {
    const config = JSON.parse(
      '{"kubernetes": {"context_configs": {"__proto__": {"autoscaler": "gke"}}}}',
    ) as Record<string, unknown>;
    expect(effectiveValue(config, { key: ['kubernetes', 'autoscaler'], region: '__proto__' })).toBe('gke');
    expect(effectiveValue(config, { key: ['kubernetes'], region: '__proto__' })).toEqual({
      autoscaler: 'gke',
    });
  });
});

describe('the effective values of a request', () => {
  const values = (task: Record<string, unknown>, region?: string) =>
    effectiveValues(
      { task, skypilotConfig: Config.fromDict(CONFIG) },
      { key: TOLERATIONS, ...(region !== undefined && { region }) },
    ).map((list) => (list as { key: string }[]).map(({ key }) => key).join());

  it.for<[string, Record<string, unknown>, string[]]>([
    ['no configuration', { run: 'true' }, ['gpu']],
    ['config', { config: toleration('a') }, ['gpu,a']],
    ['what SkyPilot sends', { resources: { _cluster_config_overrides: toleration('a') } }, ['gpu,a']],
    [
      'different ones of alternatives',
      {
        resources: {
          any_of: [
            { _cluster_config_overrides: toleration('a') },
            { _cluster_config_overrides: toleration('b') },
            { infra: 'gcp' },
          ],
        },
      },
      ['gpu,a', 'gpu,b', 'gpu'],
    ],
    [
      'one for alternatives that inherit it',
      {
        resources: {
          _cluster_config_overrides: toleration('a'),
          ordered: [{ infra: 'gcp' }, { _cluster_config_overrides: toleration('b') }],
        },
      },
      ['gpu,a', 'gpu,b'],
    ],
    [
      'two kinds',
      { config: toleration('a'), resources: { _cluster_config_overrides: toleration('b') } },
      ['gpu,a', 'gpu,b'],
    ],
  ])('with %s', ([, task, expected]) => {
    expect(values(task)).toEqual(expected);
  });

  it.for([
    { config: 'a' },
    { resources: { _cluster_config_overrides: 'a' } },
    { resources: { any_of: [{ _cluster_config_overrides: [] }] } },
    { experimental: { config_overrides: 1 } },
  ])('are refused for %j', (task) => {
    expect(() => values(task)).toThrow(PolicyRejected);
  });
});
