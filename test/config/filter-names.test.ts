/** The names that enabled_filters and audit_filters accept. */
import { describe, expect, it } from 'vitest';
import { problemsOf } from './helpers.ts';

const EXPECTED =
  'error: blazar.conf:2: [enforcement] enabled_filters: expected the name of a filter, such as MaxLeaseDurationFilter';

describe('the names of filters', () => {
  it('need commas between them, also on lines of their own', async () => {
    expect(await problemsOf('enabled_filters = MaxLeaseDurationFilter ExternalServiceFilter')).toEqual([
      `${EXPECTED}, got "MaxLeaseDurationFilter ExternalServiceFilter"; names are separated by commas`,
    ]);
    expect(await problemsOf('enabled_filters = MaxLeaseDurationFilter', '  ExternalServiceFilter')).toEqual([
      `${EXPECTED}, got "MaxLeaseDurationFilter" and the indented lines below it; names are separated by commas`,
    ]);
  });

  it.each(['enabled_filters', 'audit_filters'])(
    'may not be repeated in %s, whatever their package',
    async (option) => {
      const names = 'MaxLeaseDurationFilter, pkg#MaxLeaseDurationFilter';
      expect(await problemsOf(`${option} = ${names}`)).toContain(
        `error: blazar.conf:2: [enforcement] ${option}: MaxLeaseDurationFilter is named twice`,
      );
    },
  );

  it('of a package that is not installed are an error', async () => {
    const [problem] = await problemsOf('enabled_filters = no-such-package#XFilter');
    expect(problem).toMatch(
      /^error: blazar\.conf:2: \[enforcement\] enabled_filters: the filter "no-such-package#XFilter" cannot be used: /,
    );
  });
});
