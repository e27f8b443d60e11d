import type { Setting } from '../../config/resolve.ts';
import { showValue } from '../../config/secret.ts';
import { valueText } from '../../config/text.ts';
import type { ConfiguredFilter } from '../../enforcement/configuration.ts';
import { formatOrigin } from '../../errors.ts';
import { Table } from './table.tsx';
import { Text } from './text.tsx';

/** Every option with its value and where it comes from, as `config show --origin` prints them. */
export function Configuration({ settings }: { readonly settings: readonly Setting[] }) {
  const sections = [...new Set(settings.map(({ option }) => option.section))];
  return (
    <section aria-labelledby="configuration">
      <h2 id="configuration">Configuration</h2>
      <p class="hint">Options that are set are highlighted. Secrets are hidden.</p>
      {sections.map((section) => (
        <>
          <h3>[{section}]</h3>
          <Table label={`Options of [${section}]`} head={['Option', 'Value', 'Origin']}>
            {settings
              .filter(({ option }) => option.section === section)
              .map((setting) => (
                <SettingRow {...setting} />
              ))}
          </Table>
        </>
      ))}
    </section>
  );
}

function SettingRow(setting: Setting) {
  const { option, origin } = setting;
  const value = shown(setting);
  const isDefault = origin.kind === 'default';
  return (
    <tr class={isDefault ? 'default' : 'set'}>
      <th scope="row">{option.name}</th>
      <td class="value">
        {value === undefined ? (
          <span class="none">not set</span>
        ) : value === '' ? (
          <span class="none">empty</span>
        ) : (
          <Text>{value}</Text>
        )}
        {typeof setting.value === 'number' && option.unit !== undefined && ` ${option.unit}`}
      </td>
      <td class="origin">
        <Text>{formatOrigin(origin)}</Text>
      </td>
    </tr>
  );
}

interface FiltersProps {
  readonly filters: readonly ConfiguredFilter[];
  readonly settings: readonly Setting[];
}

/** The filters in the order in which they run, and the exempt projects. */
export function Filters({ filters, settings }: FiltersProps) {
  const exempt = settings.find(
    ({ option }) => option.section === 'enforcement' && option.name === 'exempt_projects',
  );
  const projects = exempt === undefined ? '' : shown(exempt);
  return (
    <section aria-labelledby="filters">
      <h2 id="filters">Filters</h2>
      {filters.length === 0 ? (
        <p>None is enabled: every lease is allowed.</p>
      ) : (
        <ol class="filters">
          {filters.map(({ installed, audit }) => (
            <li>
              <b>
                <Text>{installed.name}</Text>
              </b>{' '}
              <span class={audit ? 'mode audit' : 'mode'}>
                {audit ? 'audit: tried, not enforced' : 'enforced'}
              </span>
            </li>
          ))}
        </ol>
      )}
      <p>
        <b>Exempt projects:</b> {projects ? <Text>{projects}</Text> : 'none'}
      </p>
    </section>
  );
}

/** A value as it may be shown; `undefined` = not set. */
function shown({ value, secret }: Setting): string | undefined {
  const visible = showValue(value, secret);
  return visible === undefined ? undefined : valueText(visible);
}
