/** Policies that are tried: what they would refuse is a warning, and what they would allow is not allowed by them. */
import { describe, expect, it } from 'vitest';
import {
  ADMISSION,
  creating,
  type KubernetesService,
  policies,
  policiesForAll,
  runKubernetes,
  VALIDATION,
} from '../../support/kubernetes-service.ts';

const WARNED = 'a scheduling policy in audit mode would reject this pod: ';
const anyScheduler = { schedulerNames: [] };
const disks = { required: { nodeSelectors: { disk: ['ssd', 'hdd'] } }, allowed: anyScheduler };
const zones = { required: { nodeSelectors: { zone: ['a'] } }, allowed: anyScheduler };
const classes = { allowed: { priorityClassNames: ['low'] }, default: { priorityClassName: 'low' } };
const ALL = { disks, zones, classes };

const run = (audit: string[], text = policiesForAll(ALL)) => runKubernetes(text, { kubernetes: { audit } });

/** What becomes of a pod with these labels and this class. */
async function asked({ ask }: KubernetesService, nodeSelector: object, priorityClassName?: string) {
  const spec = { nodeSelector, ...(priorityClassName && { priorityClassName }) };
  const { allowed, message, warnings, patch } = await ask(creating(spec));
  return { allowed, message, warnings, patched: patch.map(({ path }) => path) };
}

describe('audit', () => {
  it('of one policy enforces the others, and warns about what all would reject', async () => {
    const service = await run(['disks']);
    expect(await asked(service, { zone: 'a', disk: 'ssd' })).toEqual({
      allowed: false,
      message: expect.stringContaining('nodeSelector disk: expected nothing, got "ssd"'),
      warnings: [],
      patched: [],
    });
    expect(await asked(service, { zone: 'a' }, 'low')).toEqual({
      allowed: true,
      message: undefined,
      warnings: [`${WARNED}nodeSelector disk: expected ssd or hdd, got nothing (scheduling policy disks)`],
      patched: [],
    });
    const refused = await asked(service, { zone: 'b' });
    expect(refused).toMatchObject({ allowed: false, warnings: [] });
    expect(refused.message).toMatch(/zone: .* got "b"/);
    expect(refused.message).not.toContain('disk');
  });

  it('does not warn if a default of the same policy would help, at either endpoint', async () => {
    const disk = {
      required: { nodeSelectors: { disk: ['ssd'] } },
      default: { nodeSelector: { disk: 'ssd' } },
    };
    const any = { allowed: { schedulerNames: [], nodeSelectors: {}, priorityClassNames: [] } };
    const { ask } = await run(['disk'], policiesForAll({ any, disk }));
    for (const path of [ADMISSION, VALIDATION]) {
      expect(await ask(creating({}), path)).toMatchObject({ allowed: true, warnings: [], patch: [] });
      const { warnings } = await ask(creating({ nodeSelector: { disk: 'hdd' } }), path);
      expect(warnings).toEqual([
        `${WARNED}nodeSelector disk: expected ssd, got "hdd" (scheduling policy disk)`,
      ]);
    }
  });

  it.each([[['disks', 'zones', 'classes']], [['*']]])(
    'of %j enforces nothing and adds nothing',
    async (audit) => {
      const service = await run(audit);
      const { warnings, ...came } = await asked(service, { disk: 'tape' }, 'high');
      expect(came).toEqual({ allowed: true, message: undefined, patched: [] });
      expect(warnings).toHaveLength(3);
      const request = creating({ nodeSelector: { disk: 'ssd', zone: 'a' } });
      for (const path of [ADMISSION, VALIDATION]) {
        expect(await service.ask(request, path)).toMatchObject({ allowed: true, warnings: [], patch: [] });
      }
    },
  );

  it('of * includes accounts without policies; of names does not', async () => {
    const text = policies(ALL);
    const named = await run(['disks', 'zones', 'classes'], text);
    expect(await asked(named, { disk: 'tape' })).toMatchObject({ allowed: false, warnings: [] });
    const all = await run(['*'], text);
    expect(await asked(all, { disk: 'tape' })).toMatchObject({
      allowed: true,
      warnings: [expect.stringContaining('no scheduling policy of the account mentions it')],
    });
  });
});

describe('warnings', () => {
  it('are limited to what the API server passes on', async () => {
    const { ask } = await run(['*'], policiesForAll({ disks }));
    const labels = Array.from({ length: 40 }, (_, index) => [`label-${index}-${'x'.repeat(400)}`, 'y']);
    const { allowed, warnings } = await ask(creating({ nodeSelector: Object.fromEntries(labels) }));
    expect({ allowed, count: warnings.length }).toEqual({ allowed: true, count: 10 });
    // The first is about the label that is missing, and is short.
    for (const warning of warnings.slice(1)) {
      expect(warning.length).toBe(256);
      expect(warning.startsWith(WARNED) && warning.endsWith('…')).toBe(true);
    }
  });

  it('are never cut within a character', async () => {
    const { ask } = await run(['*'], policiesForAll({ disks }));
    for (const offset of [0, 1]) {
      const { answer } = await ask(
        creating({ nodeSelector: { disk: 'ssd', [`${'x'.repeat(offset)}${'🚀'.repeat(150)}`]: 'y' } }),
      );
      expect(answer.text).not.toMatch(/\\ud[89a-f]/i);
    }
  });
});
