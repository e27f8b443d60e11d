/** The page itself: state of the service, filters, decisions, configuration, and a form to try a request. */

import type { DecisionRecord } from '../../decisions/record.ts';
import type { Configuration as Configured } from '../../enforcement/configuration.ts';
import { formatProblem, type Problem } from '../../errors.ts';
import { Configuration, Filters } from './configuration.tsx';
import { Decisions } from './decisions.tsx';
import { Document } from './document.tsx';
import { JudgeForm, type Judging } from './judging.tsx';
import { Ledger } from './ledger.tsx';
import type { LedgerView } from './ledger-view.ts';
import { Text } from './text.tsx';

export interface OverviewParts {
  readonly generation: number;
  readonly configuration: Configured;
  /** The mistakes of the configuration that was last read, if it is not in use. */
  readonly problems: readonly Problem[];
  readonly isDraining: boolean;
  readonly decisions: readonly DecisionRecord[];
  readonly judging: Judging;
  /** `undefined` = no filter needs a ledger. */
  readonly ledger?: LedgerView | undefined;
  /** Whether there is a session, so that a logout is possible. */
  readonly canLogOut: boolean;
}

export function OverviewPage(parts: OverviewParts) {
  const { generation, configuration, problems, isDraining, decisions, judging, ledger, canLogOut } = parts;
  const { filters, settings } = configuration;
  const warnings = configuration.problems.filter(({ severity }) => severity === 'warning');
  return (
    <Document title={titleOf(judging)}>
      <header>
        <h1>Policy service</h1>
        <nav aria-label="Sections">
          <a href="#filters">Filters</a>
          {ledger !== undefined && <a href="#ledger">Budgets and leases</a>}
          <a href="#judge">Judge</a>
          <a href="#decisions">Decisions</a>
          <a href="#configuration">Configuration</a>
        </nav>
        {canLogOut && (
          <form method="post" action="/logout">
            <button type="submit" class="plain">
              Log out
            </button>
          </form>
        )}
      </header>
      <main>
        <p class="state">
          <State isDraining={isDraining} isValid={problems.length === 0} /> generation {generation}
        </p>
        {isDraining && <p class="notice">The service is stopping: it finishes the requests in progress.</p>}
        {problems.length > 0 && (
          <Problems
            kind="error"
            title={`The last reload was refused. Generation ${generation} is still in use.`}
            problems={problems}
          />
        )}
        {warnings.length > 0 && (
          <Problems kind="notice" title="Warnings of the configuration" problems={warnings} />
        )}
        <Filters filters={filters} settings={settings} />
        {ledger !== undefined && <Ledger {...ledger} />}
        <JudgeForm {...judging} />
        <Decisions decisions={decisions} />
        <Configuration settings={settings} />
      </main>
    </Document>
  );
}

/** In the words of /readyz. */
function State({ isDraining, isValid }: { readonly isDraining: boolean; readonly isValid: boolean }) {
  const state = isDraining ? 'draining' : isValid ? 'ready' : 'configuration not valid';
  return <span class={state === 'ready' ? 'outcome allowed' : 'outcome rejected'}>{state}</span>;
}

/** The title of the tab, which screen readers read first. */
function titleOf({ error, verdict }: Judging): string {
  if (error !== undefined) {
    return 'Not judged · Policy service';
  }
  return verdict === undefined ? 'Policy service' : `Verdict: ${verdict.outcome} · Policy service`;
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
