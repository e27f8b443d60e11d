import type { Setting } from '../../../config/resolve.ts';
import type { ConfiguredFilter } from '../../../enforcement/configuration.ts';
import { shownValue } from '../setting-value.ts';
import { Text } from '../text.tsx';

interface FiltersProps {
  readonly filters: readonly ConfiguredFilter[];
  readonly settings: readonly Setting[];
}

/** The filters in the order in which they run, each with what is set for it, and the exempt projects. */
export function Filters({ filters, settings }: FiltersProps) {
  const own = settings.filter(({ option }) => option.section === 'enforcement');
  const exempt = own.find(({ option }) => option.name === 'exempt_projects');
  const projects = exempt === undefined ? '' : shownValue(exempt);
  return (
    <section aria-labelledby="filters">
      <h2 id="filters">What is enforced</h2>
      {filters.length === 0 ? (
        <p>No filter is enabled: every lease is allowed.</p>
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
              <Limits settings={settingsOf(installed.options, own)} />
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

/** Those that are set; what is a default stands on the page of the configuration. */
function settingsOf(
  options: ConfiguredFilter['installed']['options'],
  settings: readonly Setting[],
): readonly Setting[] {
  const names = new Set(options.map(({ name }) => name));
  return settings.filter(({ option, origin }) => names.has(option.name) && origin.kind !== 'default');
}

function Limits({ settings }: { readonly settings: readonly Setting[] }) {
  return settings.length === 0 ? null : (
    <ul class="limits">
      {settings.map((setting) => (
        <li>
          {setting.option.name} = <Text>{shownValue(setting) ?? 'not set'}</Text>
          {typeof setting.value === 'number' &&
            setting.option.unit !== undefined &&
            ` ${setting.option.unit}`}
        </li>
      ))}
    </ul>
  );
}
