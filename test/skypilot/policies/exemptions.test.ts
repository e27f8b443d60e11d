import { describe, expect, it } from 'vitest';
import { reviewRecord } from '../../../src/decisions/review-record.ts';
import { chainOn, inside, policyFiles, received, skypilotProblems } from '../../support/skypilot.ts';

const USER = 'id: 1f3870be\nname: lin@example.org\nuser_type: sso\npreferred_workspace: null\n';
const config = (workspace: string, kind = '{private: true, allowed_users: [lin@example.org]}') =>
  `active_workspace: ${workspace}\nworkspaces:\n  research: ${kind}\n  open: {}\n`;

/** Asks a policy that rejects everything. */
async function asked(options: Readonly<Record<string, unknown>>, members: object) {
  const { specifiers } = policyFiles({ NoPolicy: "throw new PolicyRejected('no');" });
  const running = await chainOn({ admin_policies: specifiers, ...options });
  const request = received(members);
  return { ...running, request, answer: await running.review(request) };
}

describe('a request of an exempt user', () => {
  it('is allowed as it is without a call, logged, and recorded as exempt', async () => {
    const { answer, logger, request } = await asked({ exempt_users: ['1F3870BE'] }, { user: USER });
    expect(answer).toMatchObject({ allowed: true, exempt: true, changed: false, outcomes: [] });
    expect(inside(answer.answer ?? '')).toEqual({
      task: 'name: tiny\nrun: hostname\n',
      skypilot_config: '{}\n',
    });
    const reason = 'The user 1f3870be is in exempt_users: no policy was called.';
    expect(answer.warnings).toEqual([reason]);
    expect(logger.lines).toEqual([
      { level: 'info', fields: { request_id: 'req-1', user_id: '1f3870be' }, message: reason },
    ]);
    const record = reviewRecord(answer, { requestId: 'r', generation: 1, milliseconds: 1, request });
    expect(record).toMatchObject({ outcome: 'exempt', filter: null, allowed: true, warnings: [reason] });
  });

  it.for<[string, object]>([
    ['the id as a name', { user: 'id: ffffffff\nname: 1f3870be\nuser_type: sa\n' }],
    ['an id in another spelling', { user: USER.replace('1f3870be', '"1f3870be "') }],
    ['the client side', { user: USER, at_client_side: true }],
    ['a user whom SkyPilot has not authenticated', { user: USER.replace('sso', 'null') }],
  ])('is not that of %s', async ([, members]) => {
    const { answer } = await asked({ exempt_users: ['1f3870be'] }, members);
    expect(answer).toMatchObject({ allowed: false, exempt: false, message: 'no' });
  });

  it('that anybody could have sent is logged', async () => {
    const { answer, logger } = await asked(
      { exempt_users: ['1f3870be'] },
      { user: USER.replace('sso', 'null') },
    );
    const reason =
      'The user 1f3870be is in exempt_users, but SkyPilot has not authenticated the user: policies apply.';
    expect(answer.warnings).toEqual([reason]);
    expect(logger.lines[0]).toMatchObject({ level: 'warn', message: reason });
  });
});

describe('a request of an exempt workspace', () => {
  const options = { exempt_workspaces: ['research', 'open', 'gone', 'default'] };

  it('is exempt if the workspace is private', async () => {
    const { answer } = await asked(options, { skypilot_config: config('research') });
    expect(answer).toMatchObject({
      allowed: true,
      exempt: true,
      warnings: ['The workspace "research" is in exempt_workspaces: no policy was called.'],
    });
  });

  it.for<[string, object]>([
    ['a workspace that every user may choose', { skypilot_config: config('open') }],
    ['one that is not private', { skypilot_config: config('research', '{private: false}') }],
    ['one that is private in words', { skypilot_config: config('research', '{private: "true"}') }],
    ['one in another spelling', { skypilot_config: config('Research') }],
    ['several', { skypilot_config: config('[research]') }],
    ['one that the server does not have', { skypilot_config: config('gone') }],
    ['no workspace', { skypilot_config: '{}\n' }],
    ['the client side', { skypilot_config: config('research'), at_client_side: true }],
    [
      'resources that name another',
      {
        skypilot_config: config('research'),
        task: 'resources: {any_of: [{_cluster_config_overrides: {active_workspace: open}}]}\n',
      },
    ],
  ])('is not that of %s', async ([, members]) => {
    const { answer } = await asked(options, members);
    expect(answer).toMatchObject({ allowed: false, exempt: false, message: 'no' });
  });

  it('may name its workspace in the task too', async () => {
    const task = 'run: x\nconfig: {active_workspace: research}\n';
    const { answer } = await asked(options, { skypilot_config: config('research'), task });
    expect(answer.exempt).toBe(true);
  });

  it('is exempt by its workspace even if its user is not authenticated', async () => {
    const { answer } = await asked(
      { ...options, exempt_users: ['1f3870be'] },
      { skypilot_config: config('research'), user: USER.replace('sso', 'null') },
    );
    expect(answer.exempt).toBe(true);
  });
});

it('exempt_users takes no names', async () => {
  const problemsOf = async (exempt_users: string[]) =>
    (await skypilotProblems({ exempt_users })).filter(({ option }) => option === 'exempt_users');
  expect(await problemsOf(['1f3870be', 'SA-1f3870be'])).toEqual([]);
  expect(await problemsOf(['lin'])).toMatchObject([{ severity: 'warning' }]);
  expect(await problemsOf(['lin@example.org'])).toMatchObject([{ severity: 'error' }]);
});
