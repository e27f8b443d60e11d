/** The guide and the reference of `conformance`, held against the code. */
import { describe, expect, it } from 'vitest';
import { conformanceCommand } from '../../src/cli/conformance.ts';
import { PROJECT_ID, USER_ID } from '../../src/conformance/leases.ts';
import { jsonOf } from '../../src/conformance/report.ts';
import { CHECKS, runConformance } from '../../src/conformance/run.ts';
import { namesUnder, pageNamed, tableUnder } from '../docs/markdown.ts';
import { daysLong, endpointsAt, smallService, TOKEN } from './services.ts';

const page = pageNamed('docs/reference/conformance-checks.md');
const text = page.lines.join('\n');
const guide = pageNamed('docs/conformance.md').lines.join('\n');

describe('docs/conformance.md and docs/reference/conformance-checks.md', () => {
  it('names every check and what it proves', () => {
    expect(tableUnder(page, 'The checks')).toEqual(CHECKS.map(({ id, title }) => [`\`${id}\``, title]));
  });

  it('names every field of a JSON line', async () => {
    const { url } = await smallService();
    const [check] = CHECKS;
    const options = { endpoints: endpointsAt(url), credentials: { token: TOKEN }, timeout: 5 };
    const { results } = await runConformance({ ...options, checks: check === undefined ? [] : [check] });
    const [line] = results.map(jsonOf);
    expect(namesUnder(page, 'For programs').filter((name) => !/ /.test(name))).toEqual(
      Object.keys(line ?? {}),
    );
  });

  it('says whose leases the service will see, and of how many requests', async () => {
    const { url, asked } = await smallService();
    const options = { endpoints: endpointsAt(url), credentials: { token: TOKEN }, timeout: 5 };
    const { requests } = await runConformance({
      ...options,
      allowLease: daysLong(1),
      denyLease: daysLong(9),
    });
    const [, shown] = /^About (\d+) requests/m.exec(guide) ?? [];
    expect(Math.round(requests / 10) * 10).toBe(Number(shown));
    const lengths = asked.map((one) => one.text.length);
    expect(Math.round(Math.max(...lengths) / 1e6)).toBe(5);

    const owners = asked
      .flatMap(({ json }) => json ?? [])
      .map(({ context }) => `${context.project_id} ${context.user_id}`);
    expect(new Set(owners)).toEqual(new Set([`${PROJECT_ID} ${USER_ID}`, 'climate alice']));
    expect(guide).toContain(`\`${PROJECT_ID}\``);
    expect(guide).toContain(`\`${USER_ID}\``);
  });

  it('names every flag', () => {
    const flags = conformanceCommand().options.map(({ long }) => long);
    expect(flags.filter((flag) => !text.includes(`${flag}`))).toEqual([]);
  });

  it('names the variables of the tokens', () => {
    const variables = conformanceCommand().options.flatMap(({ envVar }) => envVar ?? []);
    expect(variables.filter((variable) => !text.includes(`\`${variable}\``))).toEqual([]);
  });
});
