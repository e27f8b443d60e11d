/** Every option with its value and origin, as `config show --origin` prints them. */

import { formatOrigin } from '../../base/errors.ts';
import type { Setting } from '../../config/resolve.ts';
import { showValue } from '../../config/secret.ts';
import { valueText } from '../../config/text.ts';
import type { Generation } from '../configuration/generation.ts';
import type { ConsolePage } from './page.ts';
import { type Column, column, Section, Table, Text } from './parts/parts.tsx';

export const configurationPage: ConsolePage = {
  method: 'GET',
  path: '/configuration',
  action: 'see-configuration',
  label: 'Configuration',
  answer: async ({ generation }) => ({
    title: 'Configuration',
    main: <Configuration {...generation} />,
  }),
};

/** Options that are set come first; defaults are collapsed. */
function Configuration({ number, configuration }: Pick<Generation, 'number' | 'configuration'>) {
  const { settings } = configuration;
  const sections = [...new Set(settings.map(({ option }) => option.section))];
  return (
    <>
      <p>
        In use since generation {number}: 1 is the configuration of the start, and each reload adds one.
        Secrets are hidden.
      </p>
      {sections.map((section) => (
        <OneSection
          section={section}
          settings={settings.filter(({ option }) => option.section === section)}
        />
      ))}
    </>
  );
}

function OneSection({ section, settings }: { section: string; settings: readonly Setting[] }) {
  const set = settings.filter(({ origin }) => origin.kind !== 'default');
  const defaults = settings.filter(({ origin }) => origin.kind === 'default');
  return (
    <Section id={`section-${section}`} title={`[${section}]`}>
      <Table label={`Set in [${section}]`} columns={COLUMNS} rows={set} empty="Nothing is set." />
      {defaults.length > 0 && (
        <details>
          <summary>
            {defaults.length} with their defaults
            <span class="unseen"> in [{section}]</span>
          </summary>
          <Table
            label={`Defaults of [${section}]`}
            columns={COLUMNS}
            rows={defaults}
            rowProps={() => ({ class: 'default' })}
          />
        </details>
      )}
    </Section>
  );
}

const COLUMNS: readonly Column<Setting>[] = [
  column('Option', undefined, ({ option }) => option.name),
  column('Value', 'value', (setting) => <Value {...setting} />),
  column('Origin', 'origin', ({ origin }) => <Text>{formatOrigin(origin)}</Text>),
];

export function Value(setting: Setting) {
  const value = shownValue(setting);
  const { unit } = setting.option;
  return (
    <>
      {value ? <Text>{value}</Text> : <span class="none">{value === undefined ? 'not set' : 'empty'}</span>}
      {typeof setting.value === 'number' && unit !== undefined && ` ${unit}`}
    </>
  );
}

/** The value of an option for display: secrets are hidden. `undefined` = not set. */
export function shownValue({ value, secret }: Setting): string | undefined {
  const visible = showValue(value, secret);
  return visible === undefined ? undefined : valueText(visible);
}
