import { describe, expect, it } from 'vitest';
import { SecretValues, withoutSecrets } from '../../src/skypilot/secrets.ts';
import { chainOf, received } from '../support/skypilot.ts';

describe('a member with a secret name', () => {
  it.for([
    'token',
    'service_account_token',
    'tokens',
    'DB_PASSWORD',
    'apiKey',
    'private-key',
    'client_secret',
    'credentials',
    'db',
  ])('is hidden: %s', (name) => {
    for (const value of ['s3cret', 12_345, 12_345_678_901_234_567_890n]) {
      expect(withoutSecrets({ a: { [name]: value } })).toEqual({ a: { [name]: '****' } });
    }
    expect(withoutSecrets({ [name]: ['s3cret', 's3cret'] })).toEqual({ [name]: ['****', '****'] });
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
    ['https://policy.example/p?a=b&token=s3cret&c=d#e', 'https://policy.example/p?a=b&token=****&c=d#e'],
    ['https://h/p?sig=s3cret&key=s3cret&signature=s3cret', 'https://h/p?sig=****&key=****&signature=****'],
    ['https://lee:s3cret@h.example/p', 'https://****@h.example/p'],
    ['export HF_TOKEN=s3cret\nls\n', 'export HF_TOKEN=****\nls\n'],
    ['A_PASSWORD="s3 cret" run', 'A_PASSWORD=**** run'],
    ['train --api-key s3cret --token=s3cret', 'train --api-key **** --token=****'],
    ['wget --password=s3cret --http-user=lee', 'wget --password=**** --http-user=lee'],
    [
      'https://h/p?X-Amz-Signature=s3cret&X-Amz-Expires=60',
      'https://h/p?X-Amz-Signature=****&X-Amz-Expires=60',
    ],
    ['curl -s -u lee:s3cret https://h', 'curl -s -u lee:**** https://h'],
    ["curl --user 'lee:s3cret' https://h", "curl --user 'lee:****' https://h"],
    ['docker login -u lee -p s3cret r.example', 'docker login -u lee -p **** r.example'],
    ['sshpass -p s3cret ssh h; wandb login s3cret', 'sshpass -p **** ssh h; wandb login ****'],
    ['curl "https://hooks.slack.com/services/T0/B0/s3cret" -d a', 'curl "https://hooks.slack.com/****" -d a'],
    ['https://discord.com/api/v10/webhooks/1234/s3cret', 'https://discord.com/api/v10/webhooks/****'],
    ['https://a.webhook.office.com/webhookb2/a-b@c/d/s3cret', 'https://a.webhook.office.com/****'],
    ["curl -H 'Authorization: Bearer s3cret' h", "curl -H 'Authorization: Bearer ****' h"],
  ])('is hidden where it looks like a secret: %s', ([text, shown]) => {
    expect(withoutSecrets({ run: text })).toEqual({ run: shown });
  });

  it.for([
    'export HF_TOKEN=$HF_TOKEN',
    'login --token "$TOKEN"',
    'two tokens are enough',
    'docker run -u 1000:1000 -p 8080:80 a',
    'curl -u "$LOGIN" https://h; wandb login --verify',
    'ssh -p 2222 h; docker login r.example',
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
});

it('copies and keeps the structure, whatever the names', () => {
  const value = JSON.parse('{"__proto__":{"token":"s3cret"},"list":[1,{"a":null}],"big":1.5}') as object;
  const before = JSON.stringify(value);
  expect(JSON.stringify(withoutSecrets(value))).toBe(before.replace('s3cret', '****'));
  expect(JSON.stringify(value)).toBe(before);
});

/** Put together here, so that no scanner of sources takes them for real. */
const of = (...parts: string[]) => parts.join('');
const KEY = of('RSA PRIV', 'ATE KEY-----');
const PEM = `-----BEGIN ${KEY}\nMIIEpAIBAAKCAQEA\nq83vEjRWeJCrze8S\n-----END ${KEY}`;
const FORMS = [
  of('ghp', '_16C7e42F292c6912E7710c838347Ae178B4a'),
  of('github', '_pat_11AAAAAAA0aaaaaaaaaaaa_bbbb'),
  of('glp', 'at-20characterslongabcd'),
  of('hf', '_abcdefghijklmnopqrstuvwxyz'),
  of('sk', '-ant-api03-abcdefghijklmnop'),
  of('sk', '_live_4eC39HqLyjWDarjtT1zdp7dc'),
  of('bot', '1234567890:', 'AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc'),
  of('xox', 'b-123456789012-abcdef'),
  of('AKI', 'AIOSFODNN7EXAMPLE'),
  of('AIz', 'aSyA-1234567890abcdefghijklmnopqrstu'),
  of('eyJ', 'hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'),
  PEM,
];

describe('a value', () => {
  it.each(FORMS)('in the form of a secret is hidden everywhere: %s', (secret) => {
    const shown = JSON.stringify(
      withoutSecrets({ envs: { PLAIN: secret }, run: `echo a ${secret} b`, list: [`(${secret})`] }),
    );
    for (const line of secret.split('\n')) {
      expect(shown).not.toContain(line);
    }
    expect(shown).toContain('echo a ****');
  });

  it.each([
    'GITHUB_PAT',
    'SSH_KEY_B64',
    'AWS_REGION',
    'PGPASSFILE',
    'AUTH_JWT_V2',
    'DB_PWD',
    'SESSION_COOKIE',
    'SLACK_WEBHOOK',
    'dbPass',
    'API_TOKEN_2',
  ])('of the variable %s is hidden everywhere', (name) => {
    const task = {
      envs: { [name]: 'opensesame' },
      run: 'login --with opensesame\n',
      setup: `export ${name}=opensesame`,
      name: 'opensesame',
    };
    expect(JSON.stringify(withoutSecrets(task))).not.toContain('opensesame');
    const env = { containers: [{ env: [{ name, value: 'opensesame' }] }], args: ['opensesame'] };
    expect(JSON.stringify(withoutSecrets(env))).not.toContain('opensesame');
  });

  it.each(['MONKEY', 'KEYBOARD', 'TOKENIZERS_PARALLELISM', 'COMPASS_X', 'MODE', 'PATH'])(
    'of the variable %s is shown, or at least nothing else is hidden with it',
    (name) => {
      expect(withoutSecrets({ envs: { [name]: 'on' }, run: 'turn on' })).toMatchObject({ run: 'turn on' });
    },
  );

  it('is hidden in every encoding', () => {
    const secret = 'p@ss "word"/+é';
    const secrets = SecretValues.of({
      secrets: { A: secret, N: 123_456, L: ['first of all', { x: 'second one' }] },
    });
    for (const form of [secret, JSON.stringify(secret), encodeURIComponent(secret), btoa('123456')]) {
      expect(secrets.hideIn(`it is ${form}, is it`)).toMatch(/^it is "?\*\*\*\*"?, is it$/);
    }
    expect(secrets.hideIn('123456, first of all, second one')).toBe('****, ****, ****');
    expect(secrets.hideIn('https://lee:hunter22@host/x and hunter22')).toBe('https://****@host/x and ****');
  });

  it('that is too short is hidden only at its own place', () => {
    expect(withoutSecrets({ secrets: { A: '1', B: true }, num_nodes: 1, run: 'ls -1' })).toEqual({
      secrets: { A: '****', B: true },
      num_nodes: 1,
      run: 'ls -1',
    });
  });

  it('is one of too many, so that texts are hidden as a whole', () => {
    const many = Object.fromEntries(
      Array.from({ length: 3000 }, (_, index) => [`A${index}`, `secret-${index}`]),
    );
    expect(SecretValues.of({ secrets: many }).hideIn('secret-7 and more')).toBe('****');
  });

  it.for([
    ['-----BEGIN A-----', 60_000],
    ['eyJ', 300_000],
    ['eyJ-', 150_000],
    ['docker login ', 80_000],
    ['a_', 500_000],
    ['ghp_', 250_000],
    ['://', 300_000],
    ['A', 1_000_000],
    ['k = ', 250_000],
    ['_', 500_000],
    [' ', 500_000],
    ['bearer ', 50_000],
    ['curl -u ', 50_000],
  ] as const)('is found after %j, %i times', ([text, times]) => {
    expect(new SecretValues().hideIn(`token${text.repeat(times)}=; token: s3cret`)).toMatch(/\*{4}$/);
  });
});

it("a policy's text about a request has no secrets, neither in the reason nor in the logged cause", async () => {
  const TASK = 'name: a\nsecrets: {HF: opensesame}\nenvs: {WANDB_API_KEY: 0123456789}\nrun: x\n';
  const { review, logger } = await chainOf({
    EchoPolicy: `task.secrets.NEW = 'added-by-policy';`,
    TellingPolicy: `const text = JSON.stringify([task, config.toDict(), task._x]);
        if (task.name === 'a') { throw new PolicyRejected('no: ' + text); }
        throw new Error('broken at ' + text);`,
  });
  const config = 'db: postgres://sky:hunter2222@db/x\nadmin_policy: https://h/p?token=door-key\n';
  const SECRET = /opensesame|0123456789|hunter2222|door-key|added-by-policy/;
  const rejected = await review(received({ task: TASK, skypilot_config: config }));
  expect(rejected).toMatchObject({ allowed: false, failed: false, policy: 'TellingPolicy' });
  expect(rejected.message).toMatch(/^no: .*\*\*\*\*/);
  expect(JSON.stringify([rejected.message, rejected.outcomes])).not.toMatch(SECRET);
  await review(received({ task: TASK.replace('name: a', 'name: b'), skypilot_config: config }));
  expect(logger.lines.map(({ level }) => level)).toEqual(['error']);
  expect(JSON.stringify(logger.lines)).toMatch(/broken at .*\*\*\*\*/);
  expect(JSON.stringify(logger.lines)).not.toMatch(SECRET);
});
