import { describe, expect, it } from 'vitest';
import { withoutSecrets } from '../../src/skypilot/secrets.ts';

describe('a member with a secret name', () => {
  it.for([
    ...[
      'token',
      'HF_TOKEN',
      'service_account_token',
      'tokens',
      'password',
      'DB_PASSWORD',
      'passwd',
      'apiKey',
    ],
    ...[
      'WANDB_API_KEY',
      'AWS_SECRET_ACCESS_KEY',
      'private-key',
      'client_secret',
      'credentials',
      'passphrase',
      'db',
    ],
  ])('is hidden: %s', (name) => {
    for (const value of ['s3cret', 12_345, 12_345_678_901_234_567_890n]) {
      expect(withoutSecrets({ a: { [name]: value } })).toEqual({ a: { [name]: '****' } });
    }
    expect(withoutSecrets({ [name]: ['s3cret', 's3cret'] })).toEqual({ [name]: ['****', '****'] });
  });

  it('shows empty secrets', () => {
    const none = { token: '', password: null, enable_token: true };
    expect(withoutSecrets(none)).toEqual(none);
  });

  it.for(['tokenizer', 'max_tokens_per_second', 'keyboard', 'secretName', 'monkey', 'dbt'])(
    'is not what is merely spelled like it: %s',
    (name) => {
      expect(withoutSecrets({ [name]: 'shown' })).toEqual({ [name]: 'shown' });
    },
  );

  it('is hidden in the environment of a container too', () => {
    const env = [
      { name: 'HF_TOKEN', value: 's3cret' },
      { name: 'MODE', value: 'shown' },
      { name: 'API_KEY', valueFrom: { secretKeyRef: { name: 'shown', key: 'shown' } } },
    ];
    expect(
      withoutSecrets({ kubernetes: { pod_config: { spec: { containers: [{ name: 'a', env }] } } } }),
    ).toEqual({
      kubernetes: {
        pod_config: {
          spec: { containers: [{ name: 'a', env: [{ name: 'HF_TOKEN', value: '****' }, ...env.slice(1)] }] },
        },
      },
    });
  });

  it('includes all secrets of a task, but no names of Kubernetes Secrets', () => {
    expect(withoutSecrets({ secrets: { A: 's3cret', B: 1, C: null, D: { e: ['s3cret'] } } })).toEqual({
      secrets: { A: '****', B: '****', C: null, D: { e: ['****'] } },
    });
    const names = { imagePullSecrets: [{ name: 'shown' }], volumes: [{ secret: { secretName: 'shown' } }] };
    expect(withoutSecrets(names)).toEqual(names);
  });
});

describe('a secret in a text', () => {
  it.for<[string, string]>([
    ['https://policy.example/p?token=s3cret', 'https://policy.example/p?token=****'],
    ['https://policy.example/p?a=b&token=s3cret&c=d#e', 'https://policy.example/p?a=b&token=****&c=d#e'],
    ['https://h/p?sig=s3cret&key=s3cret&signature=s3cret', 'https://h/p?sig=****&key=****&signature=****'],
    ['https://lee:s3cret@h.example/p', 'https://****@h.example/p'],
    ['postgresql://sky:s3cret@db.example/sky', 'postgresql://****@db.example/sky'],
    ['export HF_TOKEN=s3cret\nls\n', 'export HF_TOKEN=****\nls\n'],
    ['A_PASSWORD="s3 cret" run', 'A_PASSWORD=**** run'],
    ['train --api-key s3cret --token=s3cret', 'train --api-key **** --token=****'],
    ["curl -H 'Authorization: Bearer s3cret' h", "curl -H 'Authorization: Bearer ****' h"],
  ])('is hidden where it looks like a secret: %s', ([text, shown]) => {
    expect(withoutSecrets({ run: text })).toEqual({ run: shown });
  });

  it.for([
    'export HF_TOKEN=$HF_TOKEN',
    'login --token "$TOKEN"',
    'two tokens are enough',
    'monkey=1',
    'a?page=2',
  ])('stays as it is: %s', (text) => {
    expect(withoutSecrets([text])).toEqual([text]);
  });

  it('is hidden in the original YAML that SkyPilot stores', () => {
    const written = 'secrets:\n  A: s3cret\nenvs: {HF_TOKEN: s3cret}\nrun: shown\n';
    const { _user_specified_yaml: shown } = withoutSecrets({ _user_specified_yaml: written }) as {
      _user_specified_yaml: string;
    };
    expect(shown).not.toContain('s3cret');
    expect(shown).toContain('run: shown');
    expect(withoutSecrets({ _user_specified_yaml: 'a: [s3cret' })).toEqual({ _user_specified_yaml: '****' });
  });

  it('is found in time in long text', () => {
    const hostile = [`${'_'.repeat(500_000)}token`, `token${' '.repeat(500_000)}`, 'bearer '.repeat(50_000)];
    expect(withoutSecrets(hostile)).toHaveLength(3);
  });
});

it('copies and keeps the structure, whatever the names', () => {
  const value = JSON.parse('{"__proto__":{"token":"s3cret"},"list":[1,{"a":null}],"big":1.5}') as object;
  const before = JSON.stringify(value);
  expect(JSON.stringify(withoutSecrets(value))).toBe(before.replace('s3cret', '****'));
  expect(JSON.stringify(value)).toBe(before);
});
