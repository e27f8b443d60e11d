/** No problem shows a secret, whatever is wrong around it. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import type { ConfigSources } from '../../src/config/sources.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile, service } from './helpers.ts';

/** Letters that no name and no message contains in a row. */
const secret = fc.string({ unit: fc.constantFrom(...'QXZJVKWqxzjvkw'), minLength: 8, maxLength: 40 });

const options = [
  'external_service_token',
  'external_service_bearer_token',
  'tokens',
  'external_service_tokn',
  'External_Service_Token',
];
const headers = [
  '[enforcement]',
  '[Enforcement]',
  '[enforcment]',
  '[service]',
  '[DEFAULT]',
  '[servce',
  '[]',
  '',
];
const delimiters = ['=', ':', ' = ', ': ', ' ', '', '\t'];
const around = [
  ...['', ' ', '"', "'", '$', '$$', `\${`, '}', '\\', ',', ',,', '#', ' # ', ';', '=', '@', 'é', '\t'],
  ...['\0'],
];
const lineBreaks = ['', '\n  ', '\n', '\n\n  ', '\r\n\t'];
const mistakes = [
  'enabled_filters = ExternalServiceFilter, NoSuchFilter',
  'enabled_filters = MaxLeaseDurationFilter',
  'max_lease_duration = one day',
  'external_service_base_endpoint = ftp://h/',
  'broken',
  '  indented',
  '= nothing',
  '[open',
  '[service]',
  '[enforcement]',
];
const references = [
  'max_lease_duration = $external_service_token',
  `external_service_base_endpoint = http://\${enforcement.external_service_token}@h/`,
  `external_service_timeout = \${service.tokens}`,
  'external_service_allow_on_error = $external_service_bearer_token',
  'port = $tokens',
];

/** Options that an indented line continues, with right and wrong values. */
const above = [
  'max_lease_duration = 60',
  'max_lease_duration = one day',
  'max_lease_duration = $nothing',
  'external_service_timeout = $max_lease_duration',
  'external_service_allow_on_error = true',
  'external_service_base_endpoint = http://h/',
  'enabled_filters = MaxLeaseDurationFilter',
  'enabled_filters = ExternalServiceFilter, $nothing',
  'audit_filters = NoSuchFilter, ExternalServiceFilter',
  'exempt_projects = climate, physics',
  'max_lease_duration_user_limits = alice:60',
  '[service]\nport = 80',
];

/** A line that sets a secret and is indented by mistake, so that it continues the option above it. */
const indented = (value: string) =>
  fc
    .tuple(
      fc.constantFrom(...above),
      fc.constantFrom('\n  ', '\n\t', '\r\n '),
      fc.constantFrom(...options),
      fc.constantFrom(...delimiters),
      // After a comma it would be an item of the list above it.
      fc.constantFrom(...around.filter((part) => !part.includes(','))),
      fc.constantFrom(...around),
    )
    .map(([line, indent, option, delimiter, before, after]) =>
      ['[enforcement]\n', line, indent, option, delimiter, before, value, after].join(''),
    );

/** A line that sets a secret, or tries to: the secret between odd characters, perhaps on a line of its own. */
const written = (value: string) =>
  fc
    .tuple(
      fc.constantFrom(...headers),
      fc.constantFrom(...options),
      fc.constantFrom(...delimiters),
      fc.constantFrom(...lineBreaks),
      fc.constantFrom(...around.filter((part) => part !== '=')),
      fc.constantFrom(...around),
    )
    .map(([header, option, delimiter, lineBreak, before, after]) => {
      // On a line of its own, or joined to the name, it is a name if a "=" follows, and problems show names.
      const isName = lineBreak.endsWith('\n') || delimiter === '';
      const end = isName && after === '=' ? '' : after;
      return `${header}\n${option}${delimiter}${lineBreak}${before}${value}${end}`;
    });

/** The secret in a file, and perhaps in other sources that override the file. */
const example = fc.tuple(secret, fc.boolean()).chain(([value, overridden]) => {
  const others = fc.array(fc.constantFrom(...mistakes, ...references), { maxLength: 4 });
  return fc.record({
    value: fc.constant(value),
    overridden: fc.constant(overridden),
    text: fc
      .tuple(others, written(value), others, indented(value), others, written(value), others)
      .map((parts) => parts.flat().join('\n')),
    tail: fc.constantFrom('', '$nothing', ',,', '\n', 'é'),
  });
});

function sources(value: string, tail: string): ConfigSources {
  return {
    environment: {
      OS_ENFORCEMENT__EXTERNAL_SERVICE_TOKEN: value + tail,
      OS_SERVICE__TOKENS: `,${value}`,
      OS_SERVICE__TOKN: value,
    },
    config: [
      `enforcement.external_service_bearer_token=${value}${tail}`,
      `external_service_token=${value}`,
      `enforcement.external_service_tokn=${value}`,
    ],
  };
}

it('no problem shows a secret of a file, a variable or a flag', async () => {
  const folder = temporaryFolder();
  let count = 0;
  let found = 0;
  await fc.assert(
    fc.asyncProperty(example, async ({ value, overridden, text, tail }) => {
      count += 1;
      const configFiles = [configFile(text, `${count}.conf`, folder)];
      const others = overridden ? sources(value, tail) : { environment: {} };
      const { problems } = await readConfiguration({ configFiles, ...others }, [service]);
      found += problems.length;
      for (const problem of problems) {
        expect(formatProblem(problem)).not.toContain(value);
      }
    }),
    { numRuns: 300 },
  );
  expect(found).toBeGreaterThan(count);
});

it('no problem shows a secret of a YAML file or of --config', async () => {
  const around = fc.constantFrom(
    ...['', ' ', '"', "'", '$', '{', '}', '[', ']', ',', ' #', '&', '*', '!', '|', '>', '%', '@', '`'],
    ...['\n    ', 'é', '\u0000'],
  );
  const tokens = ['external_service_token', 'external_service_bearer_token', 'external_service_tokn'];
  const lines = [
    'max_lease_duration: 60',
    'enabled_filters: [NoSuchFilter]',
    'enabled_filters:\n    - A',
    'exempt_projects:',
    'broken',
    '- x',
  ];
  const option = fc.constantFrom(...tokens);
  const line = fc.constantFrom(...lines);
  const folder = temporaryFolder();
  let found = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.record({ secret, option, line, before: around, after: around, isIndented: fc.boolean() }),
      async ({ secret: value, option: name, line: first, before, after, isIndented }) => {
        const text = isIndented ? `    ${name} = ` : `${name}: `;
        const yaml = `enforcement:\n  ${first}\n  ${text}${before}${value}${after}\n`;
        const configFiles = [configFile(yaml, 'x.yaml', folder)];
        const config = [`enforcement.${name}=${before}${value}${after}`];
        const { problems } = await readConfiguration({ configFiles, environment: {}, config }, SECTIONS);
        found += problems.length;
        expect(problems.map(formatProblem).join('\n')).not.toContain(value);
      },
    ),
    { numRuns: 150 },
  );
  expect(found).toBeGreaterThan(150);
});
