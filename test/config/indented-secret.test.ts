/**
 * `external_service_token = s3cret`, indented by mistake, continues the option above it. That is an error about the option above, at
 * the indented line, which is not shown.
 */
import { describe, expect, it } from 'vitest';
import { configuration, shown } from './helpers.ts';

const INDENTED = [
  'external_service_token = s3cret',
  'external_service_token: "s3cret"',
  'external_service_token=$s3cret',
  `external_service_token = a\${s3cret}b`,
  'external_service_token = s3cret # $nothing',
];

async function errors(...lines: readonly string[]): Promise<string[]> {
  const { problems } = await configuration(['[enforcement]', ...lines].join('\n'));
  expect(shown(problems).join('\n')).not.toContain('s3cret');
  return shown(problems, 'error');
}

const INDENTATION =
  'this indented line continues the option, and looks like one of its own; remove the indentation';

describe('an indented line that sets a secret', () => {
  it.each([
    ['a right integer', 'max_lease_duration = 60'],
    ['a wrong integer', 'max_lease_duration = one day'],
    ['a boolean', 'external_service_allow_on_error = true'],
    ['a URL', 'external_service_base_endpoint = http://h/'],
    ['a dictionary', 'max_lease_duration_project_limits = climate:60'],
    ['a list of filters', 'enabled_filters = MaxLeaseDurationFilter'],
    ['a list with a wrong filter', 'enabled_filters = NoSuchFilter, MaxLeaseDurationFilter'],
    ['a list of audited filters', 'audit_filters = MaxLeaseDurationFilter'],
    ['a reference', 'external_service_timeout = $max_lease_duration_extension_window'],
    ['a reference to nothing', 'max_lease_duration = $nothing'],
    ['a reference to nothing in a list', 'enabled_filters = MaxLeaseDurationFilter, $nothing'],
    ['a reference to itself', 'max_lease_duration = $max_lease_duration'],
    ['a file', 'external_service_ca_file = /no/such/file'],
    ['a folder', 'filters_path = /no/such/folder'],
  ])('is an error of the option above, and is not shown: %s', async (_, above) => {
    const [name] = above.split(' ');
    for (const line of INDENTED) {
      expect(await errors(above, `  ${line}`)).toEqual([
        `blazar.conf:3: [enforcement] ${name}: ${INDENTATION}`,
      ]);
    }
  });

  it.each(INDENTED)('is not shown when another option refers to the one above: %s', async (line) => {
    const above = 'max_lease_duration_extension_window = 60';
    const found = await errors(
      'max_lease_duration = $max_lease_duration_extension_window',
      above,
      `\t${line}`,
    );
    expect(found.map((error) => error.split(': ', 1)[0])).toEqual(['blazar.conf:2', 'blazar.conf:4']);
  });

  it('is reported at its own line', async () => {
    expect(
      await errors('max_lease_duration =', '  60', '  # a comment', '  max_lease_duration_user_limits = a:5'),
    ).toEqual([`blazar.conf:5: [enforcement] max_lease_duration: ${INDENTATION}`]);
  });
});

it.each([
  ['a list', 'max_lease_duration_exempt_project_ids = climate,\n  physics'],
  ['a dictionary', 'max_lease_duration_project_limits = climate:60,\n  physics:120'],
])('%s may continue on indented lines', async (_, lines) => {
  expect(await errors('enabled_filters = MaxLeaseDurationFilter', lines)).toEqual([]);
});

it('only the first line of any other wrong value is shown', async () => {
  expect(await errors('max_lease_duration = 60', '  s3cret')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "60" and the indented lines below it',
  ]);
});

it('the name after a "$" is shown only in a value of one line', async () => {
  expect(await errors('max_lease_duration = $nothing')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: "$nothing" refers to an option that is not set; write "$$" for a dollar sign',
  ]);
  expect(await errors('max_lease_duration = $nothing', '  $s3cret')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: a "$" in the value refers to an option that is not set; write "$$" for a dollar sign',
  ]);
});
