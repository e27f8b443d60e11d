/** The first page of whoever keeps the service running: what is enforced, and what is refused. */
import { formatProblem, type Problem } from '../../../errors.ts';
import { DecisionTable } from '../decisions/decision-table.tsx';
import { LivePart } from '../live-part.tsx';
import { Message } from '../message.tsx';
import type { ConsolePage, PageRequest } from '../page.ts';
import { Text } from '../text.tsx';
import { Filters } from './filters.tsx';

export const overviewPage: ConsolePage = {
  method: 'GET',
  path: '/',
  action: 'see-service',
  label: 'Overview',
  answer: async (request) => ({ title: 'Overview', main: <Overview {...request} /> }),
};

function Overview({ generation, problems, isDraining, recorder }: PageRequest) {
  const { number, configuration } = generation;
  const { filters, settings } = configuration;
  const warnings = configuration.problems.filter(({ severity }) => severity === 'warning');
  const refused = recorder.recent.list().filter(({ allowed }) => !allowed);
  return (
    <>
      <LivePart name="state">
        <p class="state">
          <State isDraining={isDraining} isValid={problems.length === 0} /> generation {number}
        </p>
        {isDraining && (
          <Message kind="notice">The service is stopping: it finishes the requests in progress.</Message>
        )}
        {problems.length > 0 && (
          <Problems
            kind="error"
            title={`The last reload was refused. Generation ${number} is still in use.`}
            problems={problems}
          />
        )}
        {warnings.length > 0 && (
          <Problems kind="notice" title="Warnings of the configuration" problems={warnings} />
        )}
      </LivePart>
      <Filters filters={filters} settings={settings} />
      <LivePart name="refused">
        <section aria-labelledby="refused">
          <h2 id="refused">Refused lately</h2>
          {refused.length === 0 ? (
            <p>Nothing.</p>
          ) : (
            <DecisionTable label="Refused lately" decisions={refused} />
          )}
        </section>
      </LivePart>
    </>
  );
}

/** In the words of /readyz. */
function State({ isDraining, isValid }: { readonly isDraining: boolean; readonly isValid: boolean }) {
  const state = isDraining ? 'draining' : isValid ? 'ready' : 'configuration not valid';
  return <span class={state === 'ready' ? 'outcome allowed' : 'outcome rejected'}>{state}</span>;
}

interface ProblemsProps {
  readonly kind: 'error' | 'notice';
  readonly title: string;
  readonly problems: readonly Problem[];
}

function Problems({ kind, title, problems }: ProblemsProps) {
  return (
    <section class={kind} aria-label={title}>
      <b>{title}</b>
      <ul>
        {problems.map((problem) => (
          <li>
            <Text>{formatProblem(problem)}</Text>
          </li>
        ))}
      </ul>
    </section>
  );
}
