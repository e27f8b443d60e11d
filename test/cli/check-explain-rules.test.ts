import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confWith } from '../support/lease-cases.ts';
import { capturedText } from '../support/requests.ts';
import { folderOf } from '../support/skypilot-cases.ts';

/** Rules that look at a lease with a secret of a plug-in, and a text that would change the screen. */
async function explained(rules: string, ...args: readonly string[]) {
  const folder = folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': rules });
  const body = JSON.parse(capturedText('check-create-physical-host.json'));
  Object.assign(body.lease, { auth_token: 's3cret', note: '\u001b[2Jx', more: { password: 's3cret', n: 1 } });
  writeFileSync(join(folder, 'body.json'), JSON.stringify(body));
  return runProgramInProcess(
    ['check', 'create', 'body.json', '--explain', '--config-file', 'blazar.conf', ...args],
    { cwd: folder },
  );
}

const RULE = (allow: string, more = '') => `rules:\n  - {name: a, allow: '${allow}', message: No.${more}}\n`;

describe('check --explain', () => {
  it('shows every part of a rule with its value', async () => {
    const { code, stdout } = await explained(
      RULE('size(lease, "physical:host") > 100 || hours(lease) < 1.0'),
    );
    expect(code).toBe(1);
    const lines = stdout.split('\n').map((line) => line.trim());
    expect(lines.slice(2).filter((line) => line !== '')).toEqual([
      'rejected  RulesFilter  No.',
      'refused   rule a',
      expect.stringMatching(/^allow: size\(lease, "physical:host"\) = \d+$/),
      'allow: size(lease, "physical:host") > 100 = false',
      expect.stringMatching(/^allow: hours\(lease\) = \d+(?:\.\d+)?$/),
      'allow: hours(lease) < 1.0 = false',
      'allow: size(lease, "physical:host") > 100 || hours(lease) < 1.0 → false',
    ]);
  });

  it('has the same in JSON', async () => {
    const { stdout } = await explained(RULE('hours(lease) < 0.0'), '--format', 'json');
    expect(JSON.parse(stdout).rules).toEqual([
      {
        ...{ rule: 'a', said: 'refused', audit: false, file: 'rules.yaml', line: 2 },
        explanations: [
          {
            of: 'allow',
            parts: [
              { text: 'hours(lease)', value: expect.any(String) },
              { text: 'hours(lease) < 0.0', value: 'false' },
            ],
          },
        ],
      },
    ]);
  });

  it.each([
    '(lease.name == "(" || hours(lease) < 1.0) && hours(lease) < (1.0 + hours(lease))',
    '((hours(lease) < 1.0) || (hours(lease) < 2.0)) == ( hours(lease) < 3.0 )',
  ])('shows parts with the brackets that they begin or end with', async (allow) => {
    const { stdout } = await explained(RULE(allow), '--format', 'json');
    const [{ explanations }] = JSON.parse(stdout).rules;
    const texts = explanations.flatMap(({ parts }: { parts: { text: string }[] }) =>
      parts.map(({ text }) => text),
    );
    expect(texts.at(-1)).toBe(allow);
    expect(texts.filter((text: string) => /^[^(]*\)|\([^)]*$/.test(text.replace('"("', '')))).toEqual([]);
  });

  it('shows no secret, and nothing that changes the screen', async () => {
    const rules = RULE(
      'lease.attributes.auth_token == "x" || lease.attributes.note == "x" || size(lease.attributes.more) == 0',
    );
    const { stdout } = await explained(rules);
    expect(stdout).toContain('lease.attributes.auth_token = ****');
    expect(stdout).toContain('lease.attributes.more = {password: ****, n: 1}');
    expect(stdout).not.toContain('s3cret');
    expect(stdout).not.toContain('\u001b');
  });

  it('says why a part has no value', async () => {
    const { code, stdout } = await explained(RULE('lease.attributes.nothing == "x"'));
    expect(code).toBe(3);
    expect(stdout).toMatch(/failed +rule a/);
    expect(stdout).toContain('lease.attributes.nothing = fails: ');
  });

  it('shows of a rule that does not apply why it does not', async () => {
    const { stdout } = await explained(RULE('false', ', match: hours(lease) < 0.0'));
    expect(stdout).toMatch(/skipped +rule a/);
    expect(stdout).toContain('match: hours(lease) < 0.0 → false');
    expect(stdout).not.toContain('allow:');
  });
});
