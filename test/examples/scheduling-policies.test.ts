import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CreateRequest, UsageEnforcement } from '../../src/index.ts';
import { run } from '../cli/scheduling-policy/files.ts';
import { demanding, equals, propertiesOf } from '../filters/lease-policies.ts';
import { projectFile, valuesOnly } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';
import { PROJECT } from '../support/requests.ts';

const LEASES = projectFile('examples/scheduling-policies/leases');
const PODS = projectFile('examples/scheduling-policies/pods');

/** What is added to a lease that is allowed, `null` = nothing; why another is refused. */
async function judge(file: string, request: CreateRequest, project_id = 'other') {
  const enforcement = await UsageEnforcement.load(
    valuesOnly({
      enforcement: {
        enabled_filters: ['SchedulingPolicyFilter'],
        scheduling_policy_path: join(LEASES, file),
      },
    }),
    { logger: recordingLogger() },
  );
  const decision = await enforcement.checkCreate({ ...request, context: { ...request.context, project_id } });
  return decision.allowed ? { added: decision.changed ? propertiesOf(decision)[0] : null } : decision.message;
}

const all = (...demands: string[]) => demanding(`["and", ${demands.join(', ')}]`);
const NOTHING = demanding('');

it('examples/scheduling-policies are valid, each by itself and together', async () => {
  const files = readdirSync(LEASES).map((name) => join(LEASES, name));
  expect(files).toHaveLength(3);
  for (const paths of [...files.map((file) => [file]), [LEASES], [join(PODS, 'policies.yaml')]]) {
    expect(await run('validate', ...paths)).toMatchObject({ code: 0, stderr: '' });
  }
});

describe('gpu-nodes.yaml', () => {
  const file = 'gpu-nodes.yaml';

  it('lets only the project reserve GPU nodes', async () => {
    const gpu = demanding(equals('gpu', 'True'));
    expect(await judge(file, gpu, PROJECT)).toEqual({ added: null });
    expect(await judge(file, gpu)).toContain(
      'gpu: expected False, got "True" (scheduling policy no-gpu-nodes)',
    );
  });

  it('gives everyone nodes without a GPU by default', async () => {
    expect(await judge(file, NOTHING)).toEqual({ added: equals('gpu', 'False') });
    expect(await judge(file, demanding(equals('gpu', 'False')))).toEqual({ added: null });
  });
});

describe('node-type.yaml', () => {
  const file = 'node-type.yaml';

  it('requires a node type', async () => {
    expect(await judge(file, NOTHING)).toContain(
      'node_type: expected a value, got nothing (scheduling policy node-type)',
    );
    expect(await judge(file, demanding(equals('node_type', 'whatever')))).toEqual({ added: null });
  });

  it('allows a host name or a zone, and nothing else', async () => {
    const type = equals('node_type', 'compute_skylake');
    expect(await judge(file, all(type, equals('hypervisor_hostname', 'h1')))).toEqual({ added: null });
    expect(await judge(file, all(type, equals('availability_zone', 'az2')))).toEqual({ added: null });
    expect(await judge(file, all(type, equals('availability_zone', 'az3')))).toContain('expected az1 or az2');
    expect(await judge(file, all(type, equals('rack', '1')))).toContain('rack: expected nothing');
  });
});

describe('default-node-type.yaml', () => {
  it('adds the default node type, and allows any other', async () => {
    const file = 'default-node-type.yaml';
    expect(await judge(file, NOTHING)).toEqual({ added: equals('node_type', 'compute_skylake') });
    expect(await judge(file, demanding(equals('node_type', 'whatever')))).toEqual({ added: null });
  });

  it('adds it together with the other two files', async () => {
    expect(await judge('.', NOTHING)).toEqual({
      added: '["and",["==","$node_type","compute_skylake"],["==","$gpu","False"]]',
    });
    const v100 = all(equals('node_type', 'gpu_v100'), equals('gpu', 'True'));
    expect(await judge('.', v100, PROJECT)).toEqual({ added: null });
    expect(await judge('.', v100)).toContain('gpu: expected False');
  });
});

describe('pods', () => {
  const check = (pod: string, ...flags: string[]) =>
    run('check', join(PODS, pod), '--policies', join(PODS, 'policies.yaml'), ...flags);

  it('web.yaml gets an architecture', async () => {
    const { code, stdout, stderr } = await check('web.yaml');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^allowed for system:serviceaccount:shop:default\n/);
    expect(stdout).toMatch(/\n\+ {2}nodeSelector:\n\+ {4}kubernetes\.io\/arch: amd64\n$/);
  });

  it('train.yaml is allowed for its service account only', async () => {
    expect(await check('train.yaml')).toEqual({
      code: 0,
      stdout: 'allowed for system:serviceaccount:research:trainer\n',
      stderr: '',
    });
    const { code, stdout } = await check('train.yaml', '--service-account', 'default');
    expect(code).toBe(1);
    expect(
      stdout
        .split('\n')
        .slice(2, -1)
        .map((line) => line.split(/ {2,}/)[0]),
    ).toEqual(['priorityClassName', 'nodeSelector accelerator', 'tolerations[0]']);
  });
});
