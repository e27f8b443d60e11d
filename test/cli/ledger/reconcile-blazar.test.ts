import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ledgerCommand } from '../../../src/cli/ledger.ts';
import { copiedLedgers } from '../../ledger/recorded-leases.ts';
import { recorded } from '../../openstack/blazar-world.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { confFile } from '../../support/files.ts';
import { policyServer } from '../../support/policy-server.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';

const newLedger = copiedLedgers(async () => {});

const sends =
  (body: unknown, status = 200) =>
  (response: ServerResponse) =>
    void response.writeHead(status).end(JSON.stringify(body));

/** An empty ledger, the command on it, and a Blazar with the recorded leases. */
async function world(more = '') {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAABour-own', 'service');
  const answers: Record<string, (response: ServerResponse) => void> = {
    '/v1/leases': sends(recorded('leases').body),
    '/v1/os-hosts/allocations': sends(recorded('allocations').body),
    '/v1/os-hosts': sends(recorded('hosts').body),
  };
  const blazar = await policyServer((request, response) =>
    (answers[request.url ?? ''] ?? sends({}, 404))(response),
  );
  const account = `auth_url = ${keystone.url}\nusername = blazar\npassword = blazar\nproject_name = service\nregion_name = RegionOne`;
  const connection = await newLedger();
  const conf = (parts: string) =>
    confFile(`[ledger]\nconnection = ${connection}\n${parts}\n[blazar]\nendpoint = ${blazar.url}\n${more}`);
  const uses = '[enforcement]\nenabled_filters = UsageBudgetFilter\nusage_budget_required = false\n';
  const run = (file: string, args: readonly string[]) =>
    runInProcess(ledgerCommand(), [...args, '--config-file', file]);
  return {
    ...{ answers, keystone },
    reconcile: (...args: string[]) =>
      run(conf(`${uses}[keystone]\n${account}\n`), ['reconcile', '--blazar', ...args]),
    withoutKeystone: () => run(conf(uses), ['reconcile', '--blazar']),
    withoutFilter: () => run(conf(`[keystone]\n${account}\n`), ['reconcile', '--blazar']),
    /** Its open leases. */
    list: async () => {
      const { stdout } = await run(conf(uses), ['list', '--format', 'json']);
      const listed: unknown = JSON.parse(stdout);
      expect(listed).toBeInstanceOf(Array);
      return listed as unknown[];
    },
  };
}

describe('ledger reconcile --blazar', () => {
  it('prints what it would do, does it, and then has nothing to do', async () => {
    const { reconcile, list } = await world();
    const dry = await reconcile('--dry-run');
    expect(dry).toMatchObject({ code: 0, stderr: '' });
    expect(dry.stdout).toMatch(/^recorded .* climate +alice /m);
    expect(dry.stdout).toMatch(/\nNothing was written: --dry-run\.\n$/);
    expect(await list()).toHaveLength(0);
    const { code, stdout } = await reconcile('--format', 'json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      dry_run: false,
      leases: Array(3).fill({ outcome: 'recorded' }),
    });
    expect(await list()).toHaveLength(3);
    expect(await reconcile()).toEqual({ code: 0, stderr: '', stdout: 'The ledger and the list agree.\n' });
  });

  it('needs [keystone], a filter that uses the ledger, and no list', async () => {
    const { reconcile, withoutKeystone, withoutFilter } = await world();
    expect(await withoutKeystone()).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'error: --blazar needs the account for Blazar in [keystone], which has no auth_url\n',
    });
    expect(await withoutFilter()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no enabled filter uses/),
    });
    expect(await reconcile('leases.json')).toMatchObject({
      code: 2,
      stderr: 'error: expected a file or --blazar, not both\n',
    });
    expect(await reconcile('--empty')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--empty is for/),
    });
    expect(await reconcile('--project', 'x')).toMatchObject({ code: 2 });
  });

  it('exits with 3, and changes nothing, when Blazar or Keystone is away', async () => {
    const { reconcile, answers, keystone, list } = await world();
    await reconcile();
    answers['/v1/leases'] = sends({}, 503);
    expect(await reconcile()).toEqual({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(/^error: .*503\n$/),
    });
    await keystone.stop();
    const away = await reconcile();
    expect(away).toMatchObject({ code: 3, stdout: '', stderr: expect.stringMatching(/^error: .*\n$/) });
    expect(away.stderr).not.toMatch(/password|gAAAAAB/);
    expect(await list()).toHaveLength(3);
  });

  it('exits with 3, and says why, when leases are kept because the list is in doubt', async () => {
    const { reconcile, answers, list } = await world();
    await reconcile();
    answers['/v1/leases'] = sends({ leases: [] });
    answers['/v1/os-hosts/allocations'] = sends({ allocations: [] });
    const { code, stdout, stderr } = await reconcile('--older-than', '0s');
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringMatching(/^(error: leases that are not in the list were not released: .*\n)+$/),
    });
    expect(stderr).toMatch(/Blazar lists no lease at all/);
    expect(stdout).toMatch(/^left +#1 /m);
    expect(await list()).toHaveLength(3);
  });
});
