/** The small cloud of `examples/openstack`, with a real Keystone and a real Blazar. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { peerProgram } from '../support/peers.ts';

const run = promisify(execFile);
const keystone = peerProgram('KEYSTONE_PEER');
const blazar = peerProgram('BLAZAR_PEER');
const STEPS = process.env.STEPS ?? '30';

describe.skipIf(keystone === undefined || blazar === undefined)('the small OpenStack', () => {
  it(`holds for ${STEPS} random operations`, async () => {
    const env = { ...process.env, KEYSTONE_PEER: keystone, BLAZAR_PEER: blazar, STEPS };
    const { stdout } = await run(process.execPath, [projectFile('examples/openstack/try.js')], { env });
    expect(stdout).toMatch(/^alice asks for 4 hosts for a day: 201$/m);
    expect(stdout).toMatch(/^alice asks for 8 hosts for four days: 400 The lease would cost 768 node-hours/m);
    expect(stdout).toMatch(/^Everything held\.$/m);
  }, 1_800_000);
});

it('says which programs it needs', async () => {
  const env = { ...process.env, KEYSTONE_PEER: '', BLAZAR_PEER: '' };
  const tried = run(process.execPath, [projectFile('examples/openstack/try.js')], { env });
  await expect(tried).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('README.md') });
});
