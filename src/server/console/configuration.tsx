/** Every option with its value and where it comes from, as `config show --origin` prints them. */

import { formatOrigin } from '../../base/errors.ts';
import type { Setting } from '../../config/resolve.ts';
import { showValue } from '../../config/secret.ts';
import { valueText } from '../../config/text.ts';
import type { ConsolePage } from './page.ts';
import { type Column, Table, Text } from './parts/parts.tsx';

export const configurationPage: ConsolePage = {
  method: 'GET',
  path: '/configuration',
  action: 'see-configuration',
  label: 'Configuration',
  answer: async ({ generation }) => ({
    title: 'Configuration',
    main: <Configuration settings={generation.configuration.settings} number={generation.number} />,
  }),
};

interface ConfigurationProps {
  readonly settings: readonly Setting[];
  /** Of the generation. */
  readonly number: number;
}

/** What is set stands first; defaults are folded. */
function Configuration({ settings, number }: ConfigurationProps) {
  const sections = [...new Set(settings.map(({ option }) => option.section))];
  return (
    <>
      <p>
        In use since generation {number}: 1 is the configuration of the start, and each reload adds one.
        Secrets are hidden.
      </p>
      {sections.map((section) => (
        <Section section={section} settings={settings.filter(({ option }) => option.section === section)} />
      ))}
    </>
  );
}

function Section({ section, settings }: { readonly section: string; readonly settings: readonly Setting[] }) {
  const set = settings.filter(({ origin }) => origin.kind !== 'default');
  const defaults = settings.filter(({ origin }) => origin.kind === 'default');
  const id = `section-${section}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>[{section}]</h2>
      {set.length === 0 ? <p>Nothing is set.</p> : <Settings label={`Set in [${section}]`} settings={set} />}
      {defaults.length > 0 && (
        <details>
          <summary>
            {defaults.length} with their defaults
            <span class="unseen"> in [{section}]</span>
          </summary>
          <Settings label={`Defaults of [${section}]`} settings={defaults} />
        </details>
      )}
    </section>
  );
}

function Settings({ label, settings }: { readonly label: string; readonly settings: readonly Setting[] }) {
  return (
    <Table
      label={label}
      columns={COLUMNS}
      rows={settings}
      rowProps={({ origin }) => ({ class: origin.kind === 'default' ? 'default' : 'set' })}
    />
  );
}

const COLUMNS: readonly Column<Setting>[] = [
  ['Option', undefined, ({ option }) => option.name],
  ['Value', 'value', (setting) => <Value {...setting} />],
  ['Origin', 'origin', ({ origin }) => <Text>{formatOrigin(origin)}</Text>],
];

function Value(setting: Setting) {
  const value = shownValue(setting);
  const { unit } = setting.option;
  return (
    <>
      {value ? <Text>{value}</Text> : <span class="none">{value === undefined ? 'not set' : 'empty'}</span>}
      {typeof setting.value === 'number' && unit !== undefined && ` ${unit}`}
    </>
  );
}

/** The value of an option as it may be shown: secrets are hidden. `undefined` = not set. */
export function shownValue({ value, secret }: Setting): string | undefined {
  const visible = showValue(value, secret);
  return visible === undefined ? undefined : valueText(visible);
}
