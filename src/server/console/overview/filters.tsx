import type { Setting } from '../../../config/resolve.ts';
import type { ConfiguredFilter } from '../../../enforcement/configuration.ts';
import { shownValue } from '../setting-value.ts';
import { Text } from '../text.tsx';

interface FiltersProps {
  readonly filters: readonly ConfiguredFilter[];
  readonly settings: readonly Setting[];
}

/** The filters in the order in which they run, and the exempt projects. */
export function Filters({ filters, settings }: FiltersProps) {
  const exempt = settings.find(
    ({ option }) => option.section === 'enforcement' && option.name === 'exempt_projects',
  );
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
