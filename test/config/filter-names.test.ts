/** The names that enabled_filters and audit_filters accept. */
import { describe, expect, it } from 'vitest';
import { configuration, shown } from './helpers.ts';

/** The problems of a section `[enforcement]` with these lines, the first of them in line 2. */
async function problems(...lines: readonly string[]): Promise<string[]> {
  const { problems: found } = await configuration(['[enforcement]', ...lines].join('\n'));
  return found.map((problem) => `${problem.severity}: ${shown([problem])[0]}`);
}

const EXPECTED =
  'error: blazar.conf:2: [enforcement] enabled_filters: expected the name of a filter, such as MaxLeaseDurationFilter';

describe('the names of filters', () => {
  it('need commas between them, also on lines of their own', async () => {
    expect(await problems('enabled_filters = MaxLeaseDurationFilter ExternalServiceFilter')).toEqual([
      `${EXPECTED}, got "MaxLeaseDurationFilter ExternalServiceFilter"; names are separated by commas`,
    ]);
    expect(await problems('enabled_filters = MaxLeaseDurationFilter', '  ExternalServiceFilter')).toEqual([
      `${EXPECTED}, got "MaxLeaseDurationFilter" and the indented lines below it; names are separated by commas`,
    ]);
  });

  it.each(['enabled_filters', 'audit_filters'])(
    'may not be repeated in %s, whatever their package',
    async (option) => {
      const names = 'MaxLeaseDurationFilter, pkg#MaxLeaseDurationFilter';
      expect(await problems(`${option} = ${names}`)).toContain(
        `error: blazar.conf:2: [enforcement] ${option}: MaxLeaseDurationFilter is named twice`,
      );
    },
  );

  it('of a package that is not installed are an error', async () => {
    const [problem] = await problems('enabled_filters = no-such-package#XFilter');
    expect(problem).toMatch(
      /^error: blazar\.conf:2: \[enforcement\] enabled_filters: the filter "no-such-package#XFilter" cannot be used: /,
    );
  });
});
