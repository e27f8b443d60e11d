/**
 * `external_service_token = s3cret`, indented by mistake: it is no option then, but continues the one above it. That is
 * an error about the option above, with the indented line as its place, and nothing in it shows what stands there.
 */
import { describe, expect, it } from 'vitest';
import { configuration, shown } from './helpers.ts';

const below = [
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

describe.each(below)('%s', (line) => {
  it.each([
    ['a right integer', 'max_lease_duration = 60'],
    ['a wrong integer', 'max_lease_duration = one day'],
    ['a truth', 'external_service_allow_on_error = true'],
    ['a URL', 'external_service_base_endpoint = http://h/'],
    ['a dictionary', 'max_lease_duration_project_limits = climate:60'],
    ['a list of filters', 'enabled_filters = MaxLeaseDurationFilter'],
    ['a list of filters of which one is wrong', 'enabled_filters = NoSuchFilter, MaxLeaseDurationFilter'],
    ['a list of filters that are tried', 'audit_filters = MaxLeaseDurationFilter'],
    ['a reference', 'external_service_timeout = $max_lease_duration_extension_window'],
    ['a reference to nothing', 'max_lease_duration = $nothing'],
    ['a reference to nothing in a list', 'enabled_filters = MaxLeaseDurationFilter, $nothing'],
    ['a reference to itself', 'max_lease_duration = $max_lease_duration'],
    ['a file', 'external_service_ca_file = /no/such/file'],
    ['a folder', 'filters_path = /no/such/folder'],
  ])('is not shown below %s, and is what is wrong with it', async (_, above) => {
    const [name] = above.split(' ');
    expect(await errors(above, `  ${line}`)).toEqual([
      `blazar.conf:3: [enforcement] ${name}: this indented line continues the option, and looks like one of its own; remove the indentation`,
    ]);
  });

  it('is not shown either where another option refers to the one above it', async () => {
    const above = 'max_lease_duration_extension_window = 60';
    const found = await errors(
      'max_lease_duration = $max_lease_duration_extension_window',
      above,
      `\t${line}`,
    );
    expect(found.map((error) => error.slice(0, 'blazar.conf:2'.length))).toEqual([
      'blazar.conf:2',
      'blazar.conf:4',
    ]);
  });
});

it('the line is named on which the option was swallowed', async () => {
  expect(
    await errors('max_lease_duration =', '  60', '  # a comment', '  max_lease_duration_user_limits = a:5'),
  ).toEqual([
    'blazar.conf:5: [enforcement] max_lease_duration: this indented line continues the option, and looks like one of its own; remove the indentation',
  ]);
});

it.each([
  ['a list', 'max_lease_duration_exempt_project_ids = climate,\n  physics'],
  ['a dictionary', 'max_lease_duration_project_limits = climate:60,\n  physics:120'],
])('%s may go on on indented lines', async (_, lines) => {
  expect(await errors('enabled_filters = MaxLeaseDurationFilter', lines)).toEqual([]);
});

it('of another wrong value of several lines the first is shown, and the others are mentioned', async () => {
  expect(await errors('max_lease_duration = 60', '  s3cret')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "60" and the indented lines below it',
  ]);
});

it('a name behind a "$" is shown where there is one line, and not where there are several', async () => {
  expect(await errors('max_lease_duration = $nothing')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: "$nothing" refers to an option that is not set; write "$$" for a dollar sign',
  ]);
  expect(await errors('max_lease_duration = $nothing', '  $s3cret')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: a "$" in the value refers to an option that is not set; write "$$" for a dollar sign',
  ]);
});
