import { describe, expect, it } from 'vitest';
import { namesOfUser } from '../../../src/skypilot/index.ts';
import {
  decodeRequest,
  encodeRequest,
  encodeTexts,
  InvalidBodyError,
} from '../../../src/skypilot/request/wire.ts';
import { envelope, inside, received, wireBody } from '../../support/skypilot.ts';

function mistakeOf(value: unknown): string {
  try {
    decodeRequest(value);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(InvalidBodyError);
    return (thrown as Error).message;
  }
  throw new Error('expected the body to be refused');
}

/** The answer to a request that nobody has changed. */
function unchanged(members: object): { task: string; skypilot_config: string } {
  const request = received(members);
  const { task, skypilotConfig } = request;
  const answer = encodeTexts(task.with(task.value), skypilotConfig.with(skypilotConfig.value));
  return inside(answer) as { task: string; skypilot_config: string };
}

describe('a request', () => {
  it('is read from a JSON string', () => {
    const request = decodeRequest(JSON.parse(wireBody('launch-server')));
    expect(request).toMatchObject({
      requestName: 'launch',
      requestOptions: { clusterName: 'fold-west', idleMinutesToAutostop: 15, down: false, dryrun: false },
      atClientSide: false,
      user: { id: '7be31c02', name: 'mina', userType: 'basic', preferredWorkspace: null },
      clientApiVersion: null,
      clientVersion: 'unknown',
    });
    expect(request.task.value).toMatchObject({
      name: 'fold-8',
      resources: { accelerators: { L40S: 2 }, ports: ['8080', '9000-9010'], labels: { approved: 'yes' } },
      num_nodes: 2,
      run: 'python fold.py --seed 012 \\\n  --started "$STARTED"\n',
      envs: { STARTED: '2026-11-21', WINDOW: '1:30', DEBUG: 'no', SEED: '012', NOTE: 'größer · 大' },
    });
    expect(request.skypilotConfig.value).toMatchObject({ active_workspace: 'structure' });
  });

  it('is read from the object itself', () => {
    expect(decodeRequest(inside(wireBody('launch-server')))).toEqual(
      decodeRequest(JSON.parse(wireBody('launch-server'))),
    );
  });

  it("has no user at the client's side", () => {
    const { user, atClientSide } = decodeRequest(JSON.parse(wireBody('launch-client')));
    expect({ user, atClientSide }).toEqual({ user: null, atClientSide: true });
  });

  it.for([
    ['client_api_version', 'clientApiVersion', null],
    ['client_version', 'clientVersion', null],
    ['request_options', 'requestOptions', null],
    ['user', 'user', null],
    ['at_client_side', 'atClientSide', false],
    ['request_name', 'requestName', 'other'],
  ] as const)('may lack %s, as in older versions of SkyPilot', ([name, member, value]) => {
    expect(received({ [name]: undefined })[member]).toEqual(value);
  });

  it('may have options of null', () => {
    const options = { cluster_name: null, idle_minutes_to_autostop: null, down: null, dryrun: null };
    expect(received({ request_options: options }).requestOptions).toEqual({
      clusterName: null,
      idleMinutesToAutostop: null,
      down: false,
      dryrun: false,
    });
  });

  it('may have unknown names and members', () => {
    const request = received({
      request_name: 'volumes.apply',
      trace: { id: [1] },
      request_options: { cluster_name: 'c', retry_until_up: true },
    });
    expect(request.requestName).toBe('volumes.apply');
    expect(request.requestOptions).toEqual({
      clusterName: 'c',
      idleMinutesToAutostop: null,
      down: false,
      dryrun: false,
    });
  });

  it.for([
    ['', null],
    ['# nobody\n', null],
    ['id: 012\nname: yes\n', { id: '012', name: 'yes' }],
    ['id: 1e3\nname: 2026-11-21\nuser_type: system\n', { id: '1e3', name: '2026-11-21', userType: 'system' }],
    ['id: a\nname: null\n', { id: 'a', name: '' }],
    [
      'id: a\nname: b\npreferred_workspace: ml\nteam: [1]\n',
      { id: 'a', name: 'b', preferredWorkspace: 'ml' },
    ],
  ] as const)('reads the user %j as %j', ([user, expected]) => {
    const nobody = { userType: null, preferredWorkspace: null };
    expect(received({ user }).user).toEqual(expected && { ...nobody, ...expected });
  });

  it.for(['', '~\n', '# nothing\n'])('has an empty task if it is %j', (task) => {
    const { task: read, skypilotConfig } = received({ task, skypilot_config: task });
    expect([read.value, skypilotConfig.value]).toEqual([{}, {}]);
  });
});

describe('an invalid request', () => {
  it.for([
    ['text that is no JSON', 'S3CRET {'],
    ['text of a text', JSON.stringify(JSON.stringify('S3CRET'))],
    ['list', []],
    ['null', null],
  ] as const)('is refused: a %s', ([, value]) => {
    expect(mistakeOf(value)).toMatch(/^the body: expected (JSON in the JSON string|an object)$/);
  });

  it.for([
    ['task', { run: 'S3CRET' }, 'a string'],
    ['skypilot_config', undefined, 'a string'],
    ['request_name', 7, 'a string'],
    ['request_options', 'S3CRET', 'an object'],
    ['at_client_side', 'S3CRET', 'true or false'],
    ['user', { id: 'S3CRET' }, 'a string'],
    ['client_api_version', 'S3CRET', 'a number'],
    ['client_api_version', 5.5, 'a whole number'],
    ['request_options.cluster_name', 8, 'a string'],
    ['request_options.idle_minutes_to_autostop', 'S3CRET', 'a number'],
    ['request_options.dryrun', 1, 'true or false'],
  ] as const)('names the invalid member: %s is %j', ([place, value, expected]) => {
    const [name = '', option] = place.split('.');
    const body = envelope({ [name]: option === undefined ? value : { [option]: value } });
    expect(mistakeOf(body)).toBe(`${place}: expected ${expected}`);
  });

  it.for([
    'S3CRET: [',
    'S3CRET: *S3CRET',
    'a: !!python/object/apply:os.system [S3CRET]',
    'a: "S3CRET\u0007"',
    `${'['.repeat(200)}${']'.repeat(200)}`,
  ])('is rejected for invalid YAML without showing it: %j', (yaml) => {
    for (const name of ['task', 'skypilot_config', 'user']) {
      const message = mistakeOf(envelope({ [name]: yaml }));
      expect(message).toMatch(new RegExp(`^${name}: expected YAML, and `));
      expect(message).not.toMatch(/S3CRET|python/);
    }
  });

  it.for(['- S3CRET\n', '12'])('has no mapping in its YAML: %j', (yaml) => {
    expect(mistakeOf(envelope({ task: yaml }))).toBe('task: expected a YAML mapping');
    expect(mistakeOf(envelope({ skypilot_config: yaml }))).toBe('skypilot_config: expected a YAML mapping');
    expect(mistakeOf(envelope({ user: yaml }))).toBe('user: expected a mapping with id and name');
  });

  it.for(['id:\n', 'id: [S3CRET]\n', 'id: ""\nname: S3CRET\n', 'id: a\nname: {S3CRET: 1}\n'])(
    'has an invalid user: %j',
    (user) => {
      expect(mistakeOf(envelope({ user }))).toBe('user: expected a mapping with id and name');
    },
  );
});

describe('an answer', () => {
  it('is a JSON string with two texts', () => {
    const request = received();
    const answer = encodeTexts(request.task.with({ run: 'true' }), request.skypilotConfig.with({}));
    const text: unknown = JSON.parse(answer);
    expect(text).toBeTypeOf('string');
    expect(JSON.parse(text as string)).toEqual({ task: 'run: "true"\n', skypilot_config: '{}\n' });
  });

  it.for(['launch-client', 'launch-server', 'validate-server', 'jobs-launch-server'])(
    'holds what nobody has changed as it came: %s',
    (name) => {
      const { task, skypilot_config } = inside(wireBody(name));
      expect(unchanged({ task, skypilot_config })).toEqual({ task, skypilot_config });
    },
  );

  it('keeps the formatting of unchanged parts', () => {
    const yaml =
      '# why\nenvs:\n  A: 012\n  B: 0x1F   # hex\n  C: 2026-11-21\n  D: 1_000\nrun: |\n  a\n\n  b\n';
    const request = received({ task: yaml });
    const task = { ...(request.task.value as Record<string, unknown>), name: 'yes' };
    const answer = inside(encodeTexts(request.task.with(task), request.skypilotConfig.with({})));
    expect(answer.task).toBe(
      '# why\nenvs:\n  A: 012\n  B: 0x1F # hex\n  C: 2026-11-21\n  D: 1_000\nrun: |\n  a\n\n  b\nname: "yes"\n',
    );
  });
});

it.for(['launch-client', 'launch-server', 'validate-server', 'jobs-launch-server'])(
  'a request for trying policies is read as what it was made of: %s',
  (name) => {
    const request = decodeRequest(JSON.parse(wireBody(name)));
    const written = encodeRequest({
      ...request,
      task: request.task.toString(),
      skypilotConfig: request.skypilotConfig.toString(),
    });
    expect(JSON.parse(written)).toBeTypeOf('string');
    expect(inside(written)).toEqual({ ...inside(wireBody(name)), user: expect.any(String) });
    const again = decodeRequest(JSON.parse(written));
    expect({ ...again, task: again.task.value, skypilotConfig: again.skypilotConfig.value }).toEqual({
      ...request,
      task: request.task.value,
      skypilotConfig: request.skypilotConfig.value,
    });
  },
);

it.each([
  ['a user by id and name', { id: 'a1b2c3d4', name: 'lee' }, ['a1b2c3d4', 'lee']],
  ['a user without a name by id', { id: 'a1b2c3d4', name: '' }, ['a1b2c3d4']],
  [
    'a service account by id, as anybody may call it lee',
    { id: 'sa-1f3870be', name: 'lee' },
    ['sa-1f3870be'],
  ],
  ['a service account in capital letters, too', { id: 'SA-1f3870be', name: 'lee' }, ['SA-1f3870be']],
])('names %s', (_who, user, expected) => {
  expect(namesOfUser(user)).toEqual(expected);
});
